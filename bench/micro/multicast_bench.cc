// SPDX-License-Identifier: BSD-3-Clause
// What the kernel `allgather` costs: datagrams of 4 KiB chunks of which the headers alone are held, as in a capture
// that was cut, from 1, 64 and 1024 sources in turn; beside a bump without kernels.
#include <fmt/format.h>

#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "runtime/roce/parse.h"

namespace rocebox::bench {
namespace {

constexpr Case kCases[] = {
    {"no kernel", "a <-> b", "{}"},
    {"allgather", "a <-> allgather <-> b", "{allgather: {window: 65536, restart_after: 1s}}"},
    {"allgather, no staging model", "a <-> allgather <-> b",
     "{allgather: {window: 65536, restart_after: 1s, staging_slots: 0}}"},
};
constexpr std::uint32_t kChunkBytes = 4096, kWindow = 65536;
// A datagram at 400 Gbps: staging that is copied at half of that fills, and its ring goes round.
constexpr Nanos kPacketNanos = 85;
constexpr std::size_t kPacketsLeast = 1024;

// Datagrams that go round, each source's chunks one behind the other.
class Datagrams {
 public:
  explicit Datagrams(std::size_t sources) : next_(sources) {
    std::mt19937 random(7);
    for (std::size_t i = 0; i < std::max(sources, kPacketsLeast); i++) {
      roce::Underlay from = underlay(4, random);
      const std::size_t source = i % sources;
      from.addresses = {roce::ipv4(10, 1, static_cast<std::uint8_t>(source >> 8), static_cast<std::uint8_t>(source)),
                        roce::ipv4(239, 1, 0, 1)};
      const Packet packet = make_packet(from, IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE, kChunkBytes, random);
      const std::uint32_t wire = packet.wire_bytes();
      const std::uint32_t head = packet.meta().bth_offset + 12u + 8u + 4u;
      rte_pktmbuf_trim(packet.mbuf(), static_cast<std::uint16_t>(packet.size() - head));
      packet.meta().wire_bytes = wire;
      roce::deth(packet)->source_qp = 0x100u;
      all_.push_back(packet);
    }
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;
  ~Datagrams() {
    for (const Packet& packet : all_) rte_pktmbuf_free(packet.mbuf());
  }
  // True: numbers begin anew, and so must time.
  bool burst(std::vector<Packet>& to) {
    to.clear();
    bool anew = false;
    for (unsigned i = 0; i < kBurst; i++) {
      const std::size_t at = at_++ % all_.size();
      std::uint32_t& chunk = next_[at % next_.size()];
      roce::immdt(all_[at])->data = chunk;
      anew |= ++chunk == kWindow;
      if (chunk == kWindow) chunk = 0;
      to.push_back(all_[at]);
    }
    return anew;
  }

 private:
  std::vector<Packet> all_;
  std::vector<std::uint32_t> next_;
  std::size_t at_ = 0;
};

void allgather(benchmark::State& state) {
  const Case& which = kCases[state.range(0)];
  const auto sources = static_cast<std::size_t>(state.range(1));
  state.SetLabel(which.label);
  std::unique_ptr<Device> device = make_bump(which.path, which.options);
  if (!device) return state.SkipWithError("its configuration has mistakes");
  device->set_sink([](Port, std::span<Packet>, Nanos) {});
  Datagrams datagrams(sources);
  std::vector<Packet> packets;
  packets.reserve(kBurst);
  Nanos now = kSecond;
  const auto burst = [&] {
    const bool anew = datagrams.burst(packets);
    const Arrivals arrivals{0, packets};
    device->step(now += kBurst * kPacketNanos, {&arrivals, 1});
    if (anew) now += 2 * kSecond;
  };
  for (std::size_t i = 0; i < 2 * std::max(sources, kPacketsLeast) / kBurst; i++) burst();
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state) burst();
  }
  state.counters["mpps"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBurst / 1e6, benchmark::Counter::kIsRate);
}
BENCHMARK(allgather)
    ->ArgNames({"case", "sources"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kCases) - 1, 1), {1, 64, 1024}});

}  // namespace
}  // namespace rocebox::bench
