// SPDX-License-Identifier: BSD-3-Clause
// Two NICs whose hosts connect by RDMA CM: side 1 listens, side 0 asks.
#pragma once
#include <gtest/gtest.h>

#include "runtime/roce/build.h"
#include "runtime/roce/mad.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {

using nic_model::ConnectionEvent;
using nic_model::ConnectionEventType;
using nic_model::ConnectionId;
using nic_model::ConnectionOptions;
using nic_model::Host;
using nic_model::PortSpace;
using nic_model::Qp;

inline constexpr std::uint16_t kCmPort = 7174;

using Types = std::vector<ConnectionEventType>;

// Loses, or doubles, MADs of one direction by their PSN: each NIC counts its own from 0.
inline std::string at_mad(const char* direction, unsigned psn, const char* what = "drop") {
  return std::string("delay: 1us\n") + direction + ": {events: [{qpn: 1, psn: " + std::to_string(psn) +
         ", do: " + what + "}]}";
}

inline std::string_view text_of(const ConnectionEvent& event, std::size_t bytes) {
  return {reinterpret_cast<const char*>(event.private_data.data()), bytes};
}
inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class CmBox : public NicBox {
 public:
  explicit CmBox(const std::string& link = "delay: 1us", const std::string& nic = "rate: 100Gbps",
                 std::uint64_t seed = 1, const std::string& far = "")
      : NicBox(nic, link, seed, far) {}

  /// A queue pair that is in no connection yet. The first of a side is that of NicBox::post.
  Qp* make_qp(unsigned side, ibv_qp_type type = IBV_QPT_RC) {
    Qp* qp = nullptr;
    on(side, [&](Host& host) {
      Side& s = sides[side];
      if (!s.cq) {
        s.host = hosts[side].get();
        s.memory.resize(1 << 16);
        s.pd = host.alloc_pd();
        s.key = host.memory().add(s.pd, s.memory.data(), s.memory.size(),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
        s.cq = host.create_cq(1024, s.host->number);
        host.arm(*s.cq);
      }
      nic_model::QpInit init;
      init.type = type;
      init.domain = s.pd;
      init.send_cq = init.receive_cq = s.cq;
      init.capacity = {64, 64, 4, 4, 64};
      qp = host.create_qp(init);
      if (!s.qp) s.qp = qp;
    });
    return qp;
  }
  int listen(unsigned side, PortSpace space = PortSpace::kTcp, std::uint32_t backlog = 16) {
    int error = -1;
    on(side, [&](Host& host) { error = host.connections().listen(hosts[side]->number, space, kCmPort, backlog); });
    return error;
  }
  /// Side `side` accepts all that is asked, with the queue pairs given or new ones.
  void accept_all(unsigned side, const ConnectionOptions& with = {}) {
    hosts[side]->on_connection = [this, side, with](Host& host, const ConnectionEvent& event) {
      if (event.type != ConnectionEventType::kConnectRequest) return;
      ASSERT_FALSE(spare[side].empty());
      EXPECT_EQ(0, host.connections().accept(event.id, *spare[side].back(), with));
      spare[side].pop_back();
    };
  }
  ConnectionId connect(unsigned side, Qp* qp, const ConnectionOptions& with = {}, PortSpace space = PortSpace::kTcp,
                       int expected = 0) {
    ConnectionId id = 0;
    on(side, [&](Host& host) {
      EXPECT_EQ(expected, host.connections().connect(hosts[side]->number, roce::ipv4(10, 0, 0, std::uint8_t(2 - side)),
                                                     space, kCmPort, qp, with, id));
    });
    return id;
  }
  /// A connection of side 0's first queue pair with side 1's.
  void establish(const ConnectionOptions& active = {}, const ConnectionOptions& passive = {}) {
    ASSERT_EQ(0, listen(1));
    make_qp(0);
    spare[1].push_back(make_qp(1));
    accept_all(1, passive);
    connect(0, sides[0].qp, active);
    run(300 * kSecond);
  }
  int disconnect(unsigned side) {
    int error = -1;
    on(side, [&](Host& host) { error = host.connections().disconnect(last(side).id); });
    return error;
  }
  int destroy(unsigned side, ConnectionId id) {
    int error = -1;
    on(side, [&](Host& host) { error = host.connections().destroy(id); });
    return error;
  }

  /// What a stranger at the other side's address sends to QP1 of `side`.
  PacketPtr mad_packet(std::span<const std::uint8_t> mad, unsigned side = 1) {
    const auto near = static_cast<std::uint8_t>(side + 1), far = static_cast<std::uint8_t>(2 - side);
    roce::PacketSpec spec;
    spec.underlay.source_mac = {2, 0x72, 10, 0, 0, far};
    spec.underlay.destination_mac = {2, 0x72, 10, 0, 0, near};
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, far), roce::ipv4(10, 0, 0, near)};
    spec.opcode = IBV_OPCODE_UD_SEND_ONLY;
    spec.destination_qp = spec.source_qp = roce::kGsiQpn;
    spec.qkey = roce::kGsiQkey;
    spec.payload = mad;
    PacketPtr packet = pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    return packet;
  }
  void inject_mad(std::span<const std::uint8_t> mad, unsigned side = 1) {
    fabric.inject({side, 0}, mad_packet(mad, side).release());
    fabric.run(now);
  }

  const ConnectionEvent& last(unsigned side) const {
    static const ConnectionEvent none;
    return hosts[side]->connection_events.empty() ? none : hosts[side]->connection_events.back();
  }
  /// Its events, in order.
  std::vector<ConnectionEventType> events(unsigned side) const {
    std::vector<ConnectionEventType> types;
    for (const ConnectionEvent& event : hosts[side]->connection_events) types.push_back(event.type);
    return types;
  }
  std::size_t held(unsigned side) const { return nics[side]->host().connections().count(); }

  std::vector<Qp*> spare[2];
};

}  // namespace rocebox::test
