// SPDX-License-Identifier: BSD-3-Clause
// The ICRC: in full, beside ISA-L's CRC-32 over as many bytes in one piece; and its update by edit().
#include <isa-l/crc.h>

#include <algorithm>

#include "bench/micro/packets.h"
#include "runtime/roce/icrc.h"

namespace rocebox::bench {
namespace {

const std::vector<std::int64_t> kPayloads = {0, 64, 256, 1024, 4096};

std::vector<Packet> burst_of(std::uint8_t ip_version, std::uint32_t payload, std::mt19937& random) {
  std::vector<Packet> packets;
  for (unsigned i = 0; i < kBurst; i++)
    packets.push_back(make_packet(underlay(ip_version, random), IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, payload, random));
  return packets;
}

// What the ICRC covers: eight bytes for the LRH that is not there, then from the IP header on.
std::uint32_t covered_bytes(Packet packet) {
  return 8 + packet.meta().datagram_end - roce::kIcrcBytes - packet.meta().l3_offset;
}

void release(std::vector<Packet>& packets) {
  for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
}

// One call after the other, each waiting for the last one's result as little as its caller would.
void icrc_full(benchmark::State& state) {
  std::mt19937 random(2);
  std::vector<Packet> packets =
      burst_of(static_cast<std::uint8_t>(state.range(1)), static_cast<std::uint32_t>(state.range(0)), random);
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state)
      for (Packet packet : packets) benchmark::DoNotOptimize(roce::icrc_compute(packet));
  }
  for (Packet packet : packets)
    if (roce::icrc_check(packet) != roce::IcrcStatus::kGood) state.SkipWithError("wrong ICRC");
  release(packets);
}
BENCHMARK(icrc_full)->ArgNames({"payload", "ip"})->ArgsProduct({kPayloads, {4, 6}});

// The same packets, as many bytes, the same addresses: from eight bytes before the IP header on.
void isal_same_bytes(benchmark::State& state) {
  std::mt19937 random(2);
  std::vector<Packet> packets =
      burst_of(static_cast<std::uint8_t>(state.range(1)), static_cast<std::uint32_t>(state.range(0)), random);
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state)
      for (Packet packet : packets)
        benchmark::DoNotOptimize(
            crc32_gzip_refl(0, packet.data() + packet.meta().l3_offset - 8, covered_bytes(packet)));
  }
  release(packets);
}
BENCHMARK(isal_same_bytes)->ArgNames({"payload", "ip"})->ArgsProduct({kPayloads, {4, 6}});

// What edit() is called for.
enum Field { kPsn, kDestinationQp, kSourcePort, kIpv4Address, kIpv6Address, kEcn };
constexpr const char* kFieldNames[] = {"PSN",          "destination QP", "UDP source port",
                                       "IPv4 address", "IPv6 address",   "ECN (ToS)"};

struct Place {
  std::uint32_t offset, size;
};
template <Field field>
Place place_of(Packet packet) {
  const PacketMeta& meta = packet.meta();
  switch (field) {
    case kPsn:
      return {meta.bth_offset + 9u, 3};
    case kDestinationQp:
      return {meta.bth_offset + 5u, 3};
    case kSourcePort:
      return {meta.udp_offset, 2};
    case kIpv4Address:
      return {meta.l3_offset + 12u, 4};
    case kIpv6Address:
      return {meta.l3_offset + 8u, 16};
    case kEcn:
      return {meta.l3_offset + 1u, 1};
  }
  return {};
}

constexpr std::int64_t kAnyPayload = -1;

// range(0): payload bytes, or kAnyPayload: from 0 to 4096 at random.
template <Field field>
void icrc_edit(benchmark::State& state) {
  std::mt19937 random(3);
  std::vector<Packet> packets;
  for (unsigned i = 0; i < kBurst; i++) {
    const auto payload =
        state.range(0) == kAnyPayload ? draw(random, 4097) : static_cast<std::uint32_t>(state.range(0));
    packets.push_back(
        make_packet(underlay(field == kIpv6Address ? 6 : 4, random), IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, payload, random));
  }
  std::uint8_t values[2][16];
  for (auto& value : values)
    for (std::uint8_t& byte : value) byte = static_cast<std::uint8_t>(random());
  unsigned turn = 0;
  {
    PerItem per_edit(state, packets.size());
    for (auto _ : state) {
      const std::uint8_t* value = values[turn++ % 2];
      for (Packet packet : packets) {
        const Place place = place_of<field>(packet);
        roce::edit(packet, place.offset, {value, place.size});
      }
    }
  }
  for (Packet packet : packets)
    if (roce::icrc_check(packet) != roce::IcrcStatus::kGood) state.SkipWithError("wrong ICRC after edits");
  release(packets);
  state.SetLabel(kFieldNames[field]);
}
void payloads(benchmark::internal::Benchmark* bench) {
  bench->ArgName("payload")->Arg(kAnyPayload)->Arg(0)->Arg(1024)->Arg(4096);
}
BENCHMARK_TEMPLATE(icrc_edit, kPsn)->Apply(payloads);
BENCHMARK_TEMPLATE(icrc_edit, kDestinationQp)->Apply(payloads);
BENCHMARK_TEMPLATE(icrc_edit, kSourcePort)->Apply(payloads);
BENCHMARK_TEMPLATE(icrc_edit, kIpv4Address)->Apply(payloads);
BENCHMARK_TEMPLATE(icrc_edit, kIpv6Address)->Apply(payloads);
BENCHMARK_TEMPLATE(icrc_edit, kEcn)->Apply(payloads);

}  // namespace
}  // namespace rocebox::bench
