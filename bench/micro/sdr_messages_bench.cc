// SPDX-License-Identifier: BSD-3-Clause
// SDR's receiver: completions to bitmaps, on one core. The bound is 25 million a second; the paper has 15 million with
// 16 DPA threads and chunks of one packet.
#include <rte_cycles.h>

#include <algorithm>
#include <cstring>

#include "bench/micro/packets.h"
#include "kernels/sdr/messages/message_table.h"

namespace rocebox::sdr {
namespace {

constexpr std::uint32_t kMessages = 16, kPackets = 4096;  // 16 Writes of 16 MiB in flight, as in the paper's Figure 14

void completions(benchmark::State& state) {
  MessageTable table({{}, kMessages, kPackets, static_cast<std::uint32_t>(state.range(0)), 4});
  std::vector<std::uint8_t> chunks(std::size_t{kMessages} * kPackets);
  std::vector<Completion> arriving(kMessages * kPackets);
  std::uint64_t first = 0;
  for (auto _ : state) {
    // Posting is timed too: it is what a message costs.
    for (std::uint64_t i = 0; i < kMessages; i++) table.post(first + i, kPackets, &chunks[i * kPackets]);
    const std::uint32_t generation = table.generation_of(first);
    unsigned complete = 0;
    for (std::uint32_t packet = 0; packet < kPackets; packet++)
      for (std::uint32_t message = 0; message < kMessages; message++) {
        Completion& one = arriving[packet * kMessages + message];
        one = {ImmediateLayout{}.pack({message, packet, 0}), 4096, generation};
        complete += table.arrive(one) == Arrival::kMessage;
      }
    if (complete != kMessages) return state.SkipWithError("a message is not complete");
    for (std::uint64_t i = 0; i < kMessages; i++) table.complete(first + i);
    first += kMessages;
  }
  state.SetItemsProcessed(state.iterations() * kMessages * kPackets);
  state.counters["bytes_a_slot"] = static_cast<double>(table.bytes_a_slot());
}
BENCHMARK(completions)->Arg(1)->Arg(16)->Arg(64);

// From a packet in memory to its bit, its payload placed: parse, copy, arrive. `to_memcpy` is its bandwidth to that of
// memcpy on the same buffers, in turn with it in the same run, the best of each; 0.6 is the bound.
void placed(benchmark::State& state) {
  constexpr std::uint32_t kMtu = 4096, kInMemory = 1024, kMessage = 256;  // 4 MiB of packets, and as much where they go
  static const std::vector<Packet> packets = [] {
    std::mt19937 random(1);
    const roce::Underlay below = bench::underlay(4, random);
    std::vector<Packet> all;
    for (std::uint32_t i = 0; i < kInMemory; i++) {
      all.push_back(bench::make_packet(below, IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, kMtu, random));
      roce::immdt(all.back())->data = ImmediateLayout{}.pack({i / kMessage, i % kMessage, 0});
    }
    return all;
  }();
  MessageTable table({{}, kInMemory / kMessage, kMessage, static_cast<std::uint32_t>(state.range(0)), 4});
  std::vector<std::uint8_t> chunks(kInMemory), memory(std::size_t{kInMemory} * kMtu);
  std::uint64_t first = 0, best_placed = UINT64_MAX, best_copied = UINT64_MAX;
  for (auto _ : state) {
    const std::uint64_t begin = rte_rdtsc();
    for (std::uint64_t i = 0; i < kInMemory / kMessage; i++) table.post(first + i, kMessage, &chunks[i * kMessage]);
    unsigned complete = 0;
    for (const Packet& packet : packets) {
      roce::parse(packet);
      const auto immediate = static_cast<std::uint32_t>(roce::immdt(packet)->data);
      const Immediate parts = ImmediateLayout{}.unpack(immediate);
      std::memcpy(&memory[(std::size_t{parts.message} * kMessage + parts.offset) * kMtu],
                  packet.data() + packet.meta().payload_offset, packet.meta().payload_bytes);
      complete +=
          table.arrive({immediate, packet.meta().payload_bytes, table.generation_of(first)}) == Arrival::kMessage;
    }
    for (std::uint64_t i = 0; i < kInMemory / kMessage; i++) table.complete(first + i);
    first += kInMemory / kMessage;
    const std::uint64_t middle = rte_rdtsc();
    for (std::size_t i = 0; i < packets.size(); i++)
      std::memcpy(&memory[i * kMtu], packets[i].data() + packets[i].meta().payload_offset, kMtu);
    const std::uint64_t end = rte_rdtsc();
    best_placed = std::min(best_placed, middle - begin);
    best_copied = std::min(best_copied, end - middle);
    if (complete != kInMemory / kMessage) return state.SkipWithError("a message is not complete");
  }
  const double seconds = static_cast<double>(best_placed) / static_cast<double>(rte_get_tsc_hz());
  state.counters["GB_a_second"] = kInMemory * kMtu / seconds / 1e9;
  state.counters["packets_a_second"] = kInMemory / seconds;
  state.counters["to_memcpy"] = static_cast<double>(best_copied) / static_cast<double>(best_placed);
}
BENCHMARK(placed)->Arg(1)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rocebox::sdr
