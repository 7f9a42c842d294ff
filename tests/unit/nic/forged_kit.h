// SPDX-License-Identifier: BSD-3-Clause
// A NIC that forged packets come to.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "runtime/roce/build.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::forged {

inline constexpr std::uint32_t kPsn = 0x100, kMtu = 1024;
using roce::PacketSpec;

// The second NIC of two that are connected, and what comes to it.
class Victim {
 public:
  /// `shared_receives`: requests of its shared receive queue; 0: it has its own. `recovery`: in place of the NIC's.
  explicit Victim(ibv_qp_type type = IBV_QPT_RC, const std::string& nic = "rate: 100Gbps",
                  std::uint32_t shared_receives = 0, std::optional<nic_model::LossRecovery> recovery = {})
      : box(nic) {
    PairOptions options;
    options.type = type;
    options.psn = kPsn;
    options.shared_receives = shared_receives;
    options.recovery = recovery;
    box.connect(options);
    box.run(10 * kMillisecond);  // both know the way
  }
  // A WRITE of 8 bytes that the victim would execute.
  PacketSpec good() const {
    PacketSpec spec;
    spec.underlay.source_mac = {2, 0x72, 10, 0, 0, 1};
    spec.underlay.destination_mac = {2, 0x72, 10, 0, 0, 2};
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    spec.opcode = box.sides[1].qp->is(IBV_QPT_UC)   ? IBV_OPCODE_UC_RDMA_WRITE_ONLY
                  : box.sides[1].qp->is(IBV_QPT_UD) ? IBV_OPCODE_UD_SEND_ONLY
                                                    : IBV_OPCODE_RC_RDMA_WRITE_ONLY;
    spec.pkey = 0xFFFF;
    spec.destination_qp = box.sides[1].qp->number();
    spec.source_qp = box.sides[0].qp->number();
    spec.psn = kPsn;
    spec.qkey = 0x1234;
    spec.virtual_address = box.sides[1].address();
    spec.rkey = box.sides[1].key;
    spec.payload = std::span(payload).first(8);
    spec.dma_length = 8;
    return spec;
  }
  PacketPtr build(const PacketSpec& spec) {
    PacketPtr packet = box.pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    return packet;
  }
  // Another one, which nobody has taken apart yet.
  PacketPtr spoiled(Packet packet, const std::function<void(Packet)>& spoil) {
    spoil(packet);
    PacketPtr other = box.pool.allocate(packet.size());
    std::memcpy(other->data(), packet.data(), packet.size());
    return other;
  }
  // A receive request; `key` is what is wrong with that of its memory.
  void post_receive(std::uint64_t id, std::uint64_t offset, std::uint32_t bytes, std::uint32_t key = 0) {
    box.on(1, [&](nic_model::Host& host) {
      Side& side = box.sides[1];
      ibv_sge sge{side.address() + offset, bytes, side.key ^ key};
      ibv_recv_wr wr{id, nullptr, &sge, 1};
      EXPECT_EQ(
          0, side.shared ? host.post_receive(*side.shared, &wr, nullptr) : host.post_receive(*side.qp, &wr, nullptr));
    });
  }
  using Statuses = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;
  Statuses statuses() {
    box.run(kMillisecond);
    Statuses all;
    for (const ibv_wc& wc : std::exchange(box.completions(1), {})) all.emplace_back(wc.wr_id, wc.status);
    return all;
  }
  void inject(PacketPtr packet) {
    std::vector<Packet> one = {packet.release()};
    box.fabric.inject({1, 0}, one);
    box.fabric.run(box.now);
  }
  // What is really sent still arrives.
  void expect_alive() {
    ASSERT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 3000, 4096));
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
    EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS) << box.state();
  }

  std::vector<std::uint8_t> payload = std::vector<std::uint8_t>(4096, 0xAB);
  NicBox box;
};

}  // namespace rocebox::test::forged
