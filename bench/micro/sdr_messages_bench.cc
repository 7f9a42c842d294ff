// SPDX-License-Identifier: BSD-3-Clause
// SDR's receiver: completions to bitmaps, on one core. The bound is 25 million a second; the paper has 15 million with
// 16 DPA threads and chunks of one packet.
#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace rocebox::sdr
