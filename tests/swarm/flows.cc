// SPDX-License-Identifier: BSD-3-Clause
#include "tests/swarm/flows.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "runtime/kernel/splitmix64.h"
#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "tests/unit/contracts/traffic.h"
#include "tests/unit/harness.h"

namespace rocebox::swarm {
namespace {

constexpr std::size_t kRememberedMax = 32;  // packets that go-back-N may send again

enum class Service { kRc, kUc, kUd };

struct Flow {
  Service service;
  unsigned edge, back_edge;
  roce::PacketSpec spec;
  unsigned left = 0;  // packets of the message under way
  bool first = true;
  std::uint32_t mtu;
  std::vector<Sent> sent;  // the last ones, for go-back-N
};

class Generator {
 public:
  Generator(const Scenario& scenario, std::uint64_t seed) : random_(seed), mark_(~seed), edges_(scenario.edges.size()) {
    const unsigned flows = 1 + below(6);
    for (unsigned i = 0; i < flows; i++) add_flow(i);
  }

  Traffic make(std::size_t count, std::uint64_t seed) {
    // What else a wire carries, by ports of its own choice.
    const auto others = test::mixed_traffic(seed, count / 8, static_cast<Port>(edges_));
    auto other = others.begin();
    Nanos at = 1000;
    while (traffic_.packets.size() < count) {
      if (below(5)) at += below(4) ? below(1500) : below(40000);
      for (; other != others.end() && other->at <= at; ++other) add_other(*other);
      Flow& flow = flows_[below(static_cast<unsigned>(flows_.size()))];
      const unsigned burst = below(6) ? 1 : 1 + below(90);
      for (unsigned i = 0; i < burst; i++) send(flow, at);
    }
    return std::move(traffic_);
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  void add_flow(unsigned number) {
    Flow flow{};
    flow.service = static_cast<Service>(below(5) < 3 ? 0 : 1 + below(2));
    flow.edge = below(static_cast<unsigned>(edges_));
    flow.back_edge = (flow.edge + 1 + below(static_cast<unsigned>(std::max<std::size_t>(edges_, 2) - 1))) %
                     static_cast<unsigned>(edges_);
    constexpr std::uint32_t kMtus[] = {256, 1024, 1024, 4096};
    flow.mtu = kMtus[below(4)];
    roce::Underlay& underlay = flow.spec.underlay;
    underlay.ip_version = below(6) ? 4 : 6;
    if (below(8) == 0) underlay.vlans = {7, 0};
    const auto host = static_cast<std::uint8_t>(10 + number);
    underlay.addresses = {roce::ipv4(10, 0, 0, host), roce::ipv4(10, 0, 1, host)};
    if (flow.edge > flow.back_edge) {
      std::swap(underlay.addresses.source, underlay.addresses.destination);
      std::swap(underlay.source_mac, underlay.destination_mac);
    }
    underlay.tos = static_cast<std::uint8_t>(below(2) ? 2 : below(64) << 2 | 2);
    underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + below(0x4000));
    flow.spec.destination_qp = 0x11 + number;
    flow.spec.psn = below(3) ? below(1 << 24) : 0xFFFFFF - below(40);
    flow.spec.dma_length = 1 << 16;
    flows_.push_back(std::move(flow));
  }

  std::uint8_t opcode(Flow& flow) {
    if (flow.service == Service::kUd) return IBV_OPCODE_UD_SEND_ONLY;
    if (flow.left == 0) flow.left = 1 + below(24), flow.first = true;
    const bool first = flow.first, last = --flow.left == 0;
    flow.first = false;
    const auto base = static_cast<std::uint8_t>(flow.service == Service::kUc ? 0x20 : 0);
    const auto write = static_cast<std::uint8_t>(first && last ? IBV_OPCODE_RC_RDMA_WRITE_ONLY
                                                 : first       ? IBV_OPCODE_RC_RDMA_WRITE_FIRST
                                                 : last        ? IBV_OPCODE_RC_RDMA_WRITE_LAST
                                                               : IBV_OPCODE_RC_RDMA_WRITE_MIDDLE);
    return base | write;
  }

  void send(Flow& flow, Nanos at) {
    if (flow.service == Service::kRc && !flow.sent.empty() && below(60) == 0) {  // go-back-N
      const std::size_t back = 1 + below(static_cast<unsigned>(flow.sent.size()));
      for (std::size_t i = flow.sent.size() - back; i < flow.sent.size(); i++) {
        flow.sent[i].at = at;
        traffic_.packets.push_back(flow.sent[i]);
      }
      return;
    }
    if (flow.service == Service::kRc && below(12) == 0) return acknowledge(flow, at);
    roce::PacketSpec spec = flow.spec;
    spec.opcode = opcode(flow);
    std::vector<std::uint8_t> payload(flow.left && flow.service != Service::kUd ? flow.mtu : 8 + below(flow.mtu - 7));
    for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random_());
    Sent sent{at, flow.edge, {}, 0, splitmix64::next(mark_), static_cast<int>(&flow - flows_.data())};
    std::memcpy(payload.data(), &sent.mark, sizeof sent.mark);
    spec.payload = payload;
    sent.bytes = test::frame(spec);
    sent.wire_bytes = static_cast<std::uint32_t>(sent.bytes.size());
    traffic_.payloads[sent.mark] = {digest_of(payload.data(), payload.size()),
                                    static_cast<std::uint32_t>(payload.size()), true};
    flow.spec.psn = (flow.spec.psn + 1) & 0xFFFFFF;
    flow.spec.underlay.ip_identification++;
    traffic_.packets.push_back(sent);
    flow.sent.push_back(std::move(sent));
    if (flow.sent.size() > kRememberedMax) flow.sent.erase(flow.sent.begin());
  }

  void acknowledge(const Flow& flow, Nanos at) {
    roce::PacketSpec spec = flow.spec;
    std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
    std::swap(spec.underlay.source_mac, spec.underlay.destination_mac);
    spec.opcode = below(8) ? static_cast<std::uint8_t>(IBV_OPCODE_RC_ACKNOWLEDGE) : roce::kOpcodeCnp;
    spec.syndrome = below(6) ? 0x1F : 0x60;
    spec.psn = (spec.psn - 1 - below(4)) & 0xFFFFFF;
    Sent sent{at, flow.back_edge, test::frame(spec), 0, 0, -1};
    sent.wire_bytes = static_cast<std::uint32_t>(sent.bytes.size());
    traffic_.packets.push_back(std::move(sent));
  }

  void add_other(const test::TrafficPacket& other) {
    const Nanos at = traffic_.packets.empty() ? other.at : std::max(other.at, traffic_.packets.back().at);
    traffic_.packets.push_back({at, other.in, other.bytes, other.wire_bytes, 0, -1});
  }

  std::mt19937_64 random_;
  std::uint64_t mark_;
  std::size_t edges_;
  std::vector<Flow> flows_;
  Traffic traffic_;
};

// Payloads of what else is sent, as its own generator marks them.
void learn_others(Traffic& traffic, std::uint64_t seed, std::size_t count, Port edges) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  for (const auto& other : test::mixed_traffic(seed, count / 8, edges)) {
    if (!other.mark) continue;
    PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(other.bytes.size()));
    std::memcpy(packet->data(), other.bytes.data(), other.bytes.size());
    roce::parse(*packet);
    const PacketMeta& meta = packet->meta();
    if (meta.status != ParseStatus::kRoce || packet->size() < meta.payload_offset + meta.payload_bytes) continue;
    traffic.payloads[other.mark] = {digest_of(packet->data() + meta.payload_offset, meta.payload_bytes),
                                    meta.payload_bytes, roce::icrc_check(*packet) == roce::IcrcStatus::kGood};
  }
}

}  // namespace

std::uint64_t digest_of(const std::uint8_t* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

Traffic make_traffic(const Scenario& scenario, std::uint64_t seed, std::size_t packets) {
  Traffic traffic = Generator(scenario, seed).make(packets, seed);
  learn_others(traffic, seed, packets, static_cast<Port>(scenario.edges.size()));
  return traffic;
}

}  // namespace rocebox::swarm
