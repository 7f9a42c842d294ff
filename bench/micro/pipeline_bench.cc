// SPDX-License-Identifier: BSD-3-Clause
// What the engine itself costs: chains of kernels that let everything pass.
#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "runtime/engine/pipeline_device.h"

namespace rocebox::bench {
namespace {

// As little as a kernel can do: the default verdict is *pass*.
class Nothing final : public Kernel {
 public:
  void process(Context&, Port, Batch&) override {}
};

// Kernel i's right side leads to kernel i + 1, and the last one's outside.
std::vector<Edge> outputs_of(int kernel, int kernels) {
  const Edge left = kernel == 0 ? Edge{Edge::kOutside, 0} : Edge{kernel - 1, 1};
  const Edge right = kernel + 1 == kernels ? Edge{Edge::kOutside, 1} : Edge{kernel + 1, 0};
  return {left, right};
}
std::vector<Edge> inputs_of(int kernels) {
  if (kernels == 0) return {{Edge::kOutside, 1}, {Edge::kOutside, 0}};
  return {{0, 0}, {kernels - 1, 1}};
}

std::vector<Packet> packets_of(std::int64_t count) {
  std::mt19937 random(4);
  std::vector<Packet> packets;
  for (std::int64_t i = 0; i < count; i++)
    packets.push_back(make_packet(underlay(4, random), IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 1024, random));
  return packets;
}

// Steps an object with the same burst over and over; the sink leaves the packets where they are.
template <class Stepped>
void run(benchmark::State& state, Stepped& stepped) {
  std::vector<Packet> packets = packets_of(state.range(1));
  std::uint64_t left = 0;
  stepped.set_sink([&left](Port, std::span<Packet> out, Nanos) { left += out.size(); });
  Nanos now = 0;
  {
    PerItem per_packet(state, packets.size());
    for (auto _ : state) {
      const Arrivals arrivals{0, packets};
      stepped.step(++now, {&arrivals, 1});
      benchmark::ClobberMemory();
    }
  }
  if (left != static_cast<std::uint64_t>(state.iterations()) * packets.size())
    state.SkipWithError("packets went missing");
  for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
}

void pipeline(benchmark::State& state) {
  const int kernels = static_cast<int>(state.range(0));
  CounterSet stats;
  std::vector<Stage> stages;
  for (int i = 0; i < kernels; i++)
    stages.push_back(
        {"nothing" + std::to_string(i), std::make_unique<Nothing>(), Shape::kTwoSided, outputs_of(i, kernels), 0});
  Pipeline stepped(std::move(stages), inputs_of(kernels), pool(), stats);
  run(state, stepped);
}
BENCHMARK(pipeline)->ArgNames({"kernels", "burst"})->ArgsProduct({{1, 4}, {1, 8, 32, 64}});

// The same behind a device's ports: with parsing, metadata and port counters.
void bump(benchmark::State& state) {
  const int kernels = static_cast<int>(state.range(0));
  std::vector<KernelPlan> plans;
  for (int i = 0; i < kernels; i++)
    plans.push_back({"nothing" + std::to_string(i), "nothing", Shape::kTwoSided, outputs_of(i, kernels),
                     [](Stats&) { return std::make_unique<Nothing>(); }});
  PipelineDevice stepped("bump", {"a", "b"}, inputs_of(kernels), std::move(plans), pool(), 1);
  run(state, stepped);
}
BENCHMARK(bump)->ArgNames({"kernels", "burst"})->ArgsProduct({{0, 1, 4}, {1, 8, 32, 64}});

// Packets to a multicast group of a switch: three replicas each, with their bytes together or copied. Each packet that
// comes in is a copy of one that is kept, so the first row is to be taken off the others.
enum Replicas : std::int64_t { kNone, kTogether, kCopied };
void replicas(benchmark::State& state) {
  const std::int64_t how = state.range(1);
  const std::unique_ptr<Device> device = device_of(
      "{switch: {ports: [a, b, c, d], multicast_groups: [{group: 5, ports: [b, c, d]}], forward: {learning: false, "
      "macs: [{mac: '01:00:5e:00:00:01', group: 5}]}}}");
  if (!device) return state.SkipWithError("its configuration has mistakes");
  state.SetLabel(how == kNone       ? "copies that come in"
                 : how == kTogether ? "three replicas, together"
                                    : "three, copied");
  std::mt19937 random(4);
  roce::Underlay to_group = underlay(4, random);
  to_group.destination_mac = {0x01, 0, 0x5E, 0, 0, 1};
  PacketPtr kept(
      make_packet(to_group, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, static_cast<std::uint32_t>(state.range(0)), random));
  for (Port port = 0; port < 4 && how == kTogether; port++) device->allow_shared(port);
  std::uint64_t left = 0;
  const auto free = [&left](Port, std::span<Packet> out, Nanos) {
    left += out.size();
    for (Packet packet : out) rte_pktmbuf_free(packet.mbuf());
  };
  device->set_sink(free);
  std::vector<Packet> packets(kBurst);
  Nanos now = 0;
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state) {
      for (Packet& packet : packets) packet = pool().copy(*kept).release();
      const Arrivals arrivals{0, packets};
      if (how == kNone)
        free(0, packets, now);
      else
        device->step(++now, {&arrivals, 1});
    }
  }
  if (left != static_cast<std::uint64_t>(state.iterations()) * kBurst * (how == kNone ? 1 : 3))
    state.SkipWithError("packets went missing");
}
BENCHMARK(replicas)->ArgNames({"payload", "how"})->ArgsProduct({{256, 1024, 4096}, {kNone, kTogether, kCopied}});

}  // namespace
}  // namespace rocebox::bench
