// SPDX-License-Identifier: BSD-3-Clause
// Parsing and classifying bursts of 32 packets that are in cache.
#include "bench/micro/packets.h"
#include "runtime/roce/parse.h"

namespace rocebox::bench {
namespace {

// Requests, responses, every extended header, and CNP.
constexpr std::uint8_t kOpcodes[] = {IBV_OPCODE_RC_SEND_ONLY,
                                     IBV_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE,
                                     IBV_OPCODE_RC_RDMA_WRITE_FIRST,
                                     IBV_OPCODE_RC_RDMA_WRITE_MIDDLE,
                                     IBV_OPCODE_RC_RDMA_WRITE_LAST,
                                     IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
                                     IBV_OPCODE_RC_RDMA_READ_REQUEST,
                                     IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST,
                                     IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
                                     IBV_OPCODE_RC_ACKNOWLEDGE,
                                     IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE,
                                     IBV_OPCODE_RC_COMPARE_SWAP,
                                     IBV_OPCODE_UC_RDMA_WRITE_ONLY,
                                     IBV_OPCODE_UD_SEND_ONLY,
                                     IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE,
                                     roce::kOpcodeCnp};

enum Mix : std::int64_t { kIpv4, kIpv6, kVlan, kQinq, kMixed };
constexpr const char* kMixNames[] = {"ipv4", "ipv6", "vlan", "qinq", "mixed"};

Packet make_one(Mix mix, std::mt19937& random) {
  const bool any = mix == kMixed;
  const bool ipv6 = mix == kIpv6 || (any && draw(random, 2));
  roce::Underlay below = underlay(ipv6 ? 6 : 4, random);
  const unsigned tags = mix == kVlan ? 1 : mix == kQinq ? 2 : any ? draw(random, 3) : 0;
  if (tags > 0) below.vlans[1] = 100;
  if (tags > 1) below.vlans[0] = 200;
  const std::uint8_t opcode = kOpcodes[draw(random, std::size(kOpcodes))];
  // Frames from 64 bytes on: short ones as often as long ones, as a NIC sees requests, data and ACKs.
  const std::uint32_t payload = roce::opcode_info(opcode).has(roce::kHasPayload) ? 4u << draw(random, 11) : 0;
  return make_packet(below, opcode, payload, random);
}

// range(0): what is in the bursts; range(1): how many different bursts, taken in random order. One burst stays in the
// first-level cache and the branch predictor may learn it; sixteen stay in the second and it cannot.
void parse(benchmark::State& state) {
  std::mt19937 random(1);
  const auto mix = static_cast<Mix>(state.range(0));
  const auto bursts = static_cast<unsigned>(state.range(1));
  std::vector<Packet> packets;
  for (unsigned i = 0; i < bursts * kBurst; i++) packets.push_back(make_one(mix, random));
  std::vector<std::uint32_t> order(1024);
  for (std::uint32_t& first : order) first = draw(random, bursts) * kBurst;
  std::uint64_t classes[6] = {};
  std::size_t turn = 0;
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state) {
      const std::span<const Packet> burst(packets.data() + order[turn++ % order.size()], kBurst);
      roce::parse(burst);
      for (Packet packet : burst) classes[static_cast<std::size_t>(roce::class_of(packet.meta().status))]++;
      benchmark::DoNotOptimize(classes);
      benchmark::ClobberMemory();
    }
  }
  if (classes[0] != static_cast<std::uint64_t>(state.iterations()) * kBurst)
    state.SkipWithError("not all packets are RoCE");
  for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
  state.SetLabel(std::string(kMixNames[mix]) + (bursts == 1 ? ", one burst" : ", bursts at random"));
}
BENCHMARK(parse)->ArgNames({"mix", "bursts"})->ArgsProduct({{kIpv4, kIpv6, kVlan, kQinq, kMixed}, {1, 16}});

}  // namespace
}  // namespace rocebox::bench
