// SPDX-License-Identifier: BSD-3-Clause
// SDR's receiver: completions to bitmaps, on one core; and the same from packets that pass the kernel `sdr`. The bound
// is 25 million a second; the paper has 15 million with 16 DPA threads and chunks of one packet.
#include <rte_cycles.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "kernels/sdr/backend/queue_pair.h"
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

// A bump that messages of SDR pass, 16 at a time in packets that take turns, IDs and generations going round: from the
// packet alone to its message's bits. What the kernel adds is its time less that of a bump without one.
void observed(benchmark::State& state, const char* path, const char* kernels, std::uint32_t mtu, bool watches) {
  constexpr std::uint32_t kInFlight = 16, kLength = 64, kGenerations = 4;
  static std::map<std::uint32_t, std::vector<Packet>> all;  // they live until the process ends
  std::vector<Packet>& packets = all[mtu];
  if (packets.empty()) {
    std::mt19937 random(1);
    const roce::Underlay below = bench::underlay(4, random);
    const std::vector<std::uint8_t> payload(mtu);
    for (std::uint32_t i = 0; i < kInFlight * kLength * kGenerations; i++) {
      const std::uint32_t packet = i / kInFlight % kLength;
      roce::PacketSpec spec;
      spec.underlay = below;
      spec.opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
      spec.destination_qp = 0x100 + i / (kInFlight * kLength);
      spec.immediate = ImmediateLayout{}.pack({i % kInFlight, packet, 0});
      spec.payload = std::span(payload).first(packet + 1 == kLength ? mtu - 1 : mtu);  // a short one ends a message
      PacketPtr made = bench::pool().allocate(roce::built_bytes(spec));
      roce::build(*made, spec);
      packets.push_back(made.release());
    }
  }
  const std::unique_ptr<Device> device = bench::make_bump(path, kernels);
  if (!device) return state.SkipWithError("its configuration has mistakes");
  device->set_sink([](Port, std::span<Packet>, Nanos) {});
  Nanos now = 0;
  std::size_t at = 0;
  std::int64_t passed = 0;
  for (auto _ : state) {
    const Arrivals arrivals{0, std::span(packets).subspan(at, bench::kBurst)};
    device->step(now += 1000, {&arrivals, 1});
    at = (at + bench::kBurst) % packets.size();
    passed += bench::kBurst;
  }
  state.SetItemsProcessed(passed);
  if (!watches) return;
  std::int64_t counted = -1, late = -1, complete = -1;
  device->books().for_each_counter([&](const CounterView& one) {
    const auto value = static_cast<std::int64_t>(one.value);
    if (one.name == "packets") counted = value;
    if (one.name == "late") late = value;
    if (one.name == "messages_complete") complete = value;
  });
  const std::int64_t rounds = passed / (kInFlight * kLength);
  if (counted != passed || late != 0 || complete < rounds * kInFlight)
    state.SkipWithError("it does not see what has passed");
}
BENCHMARK_CAPTURE(observed, no_kernel, "a <-> b", "{}", 64, false);
BENCHMARK_CAPTURE(observed, chunks_of_1, "a <-> sdr <-> b", "{sdr: {messages: 16, chunk: 1, check_icrc: false}}", 64,
                  true);
BENCHMARK_CAPTURE(observed, chunks_of_16, "a <-> sdr <-> b", "{sdr: {messages: 16, check_icrc: false}}", 64, true);
BENCHMARK_CAPTURE(observed, with_icrc, "a <-> sdr <-> b", "{sdr: {messages: 16}}", 1024, true);

// What a queue pair of the SDK's default takes, and each message ID of it, in the DPA's memory and in the host's.
void memory(benchmark::State& state) {
  QueuePairOptions options;
  options.packets_a_chunk = static_cast<std::uint32_t>(state.range(0));
  MemoryOfQueuePair of;
  for (auto _ : state) benchmark::DoNotOptimize(of = QueuePair::memory_of(options));
  state.counters["device_bytes_a_message"] = static_cast<double>(of.device_a_message);
  state.counters["device_bytes_a_qp"] = static_cast<double>(of.device);
  state.counters["host_bytes_a_message"] = static_cast<double>(of.host_a_message);
  state.counters["host_bytes_a_qp"] = static_cast<double>(of.host);
}
BENCHMARK(memory)->Arg(1)->Arg(16)->Arg(128)->Iterations(1);

}  // namespace
}  // namespace rocebox::sdr
