// SPDX-License-Identifier: BSD-3-Clause
// Where the cycles of a packet go in a switch with `forward` as a router and Themis behind it. Programs that do nothing
// but read the time-stamp counter stand before, between and behind these two: what lies between two readings is one
// control of one of them, on a batch of 32 packets. A reading costs a batch 20 to 45 cycles, a packet about one.
#include <array>
#include <deque>

#include "bench/micro/themis_options.h"
#include "bench/micro/traffic.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/pipeline_device.h"
#include "runtime/roce/parse.h"
#include "switch_model/datapath.h"

namespace rocebox::bench {
namespace {

using switch_model::Pass;

// What lies before each reading.
enum Stage : std::uint8_t {
  kEnter,
  kForwardIngress,
  kThemisIngress,
  kTrafficManager,
  kForwardEgress,
  kThemisEgress,
  kLeave,
  kStages
};
constexpr const char* kStageNames[kStages] = {
    "parse, enter the switch", "forward ingress", "themis ingress", "traffic manager",
    "forward egress",          "themis egress",   "leave"};

// Cycles of each stage in the step that runs. A switch that cuts a batch runs its egress controls several times.
std::array<std::uint64_t, kStages> step_cycles;
std::uint64_t last_reading;

void reach(Stage stage) {
  const std::uint64_t now = rte_rdtsc();
  step_cycles[stage] += now - last_reading;
  last_reading = now;
}

template <Stage kIngress, Stage kEgress>
class Marker {
 public:
  struct Config {
    void fields(Fields&, const switch_model::SwitchInfo&) {}
  };
  Marker(const Config&, const switch_model::Build&) {}
  template <class Access>
  void ingress(Access&, Pass&) {
    reach(kIngress);
  }
  template <class Access>
  void egress(Access&, Pass&) {
    reach(kEgress);
  }
};

// The tree's components, and the markers.
const Registry& with_markers() {
  static const std::vector<Component> markers = {
      switch_model::program<Marker<kEnter, kTrafficManager>>("before", "reads the time"),
      switch_model::program<Marker<kForwardIngress, kForwardEgress>>("between", "reads the time"),
      switch_model::program<Marker<kThemisIngress, kThemisEgress>>("behind", "reads the time")};
  static const Registry registry = [] {
    Registry all;
    for (const Component& marker : markers) all.add(marker, "the benchmark");
    return all;
  }();
  return registry;
}

// A switch with these options, as the drives make it, and markers among its programs. Null when they have mistakes.
std::unique_ptr<Device> make_marked(const std::string& written) {
  config::Mistakes mistakes("stages");
  const config::Node node =
      config::parse_yaml(with(written, "[forward, themis]", "[before, forward, between, themis, behind]"), mistakes);
  config::FieldsReader reader(&node, mistakes);
  const std::unique_ptr<Options> filled = with_markers().find("switch")->options(with_markers());
  filled->fields(reader);
  reader.finish();
  if (!mistakes.none()) return nullptr;
  const auto& options = static_cast<const DeviceOptions&>(*filled);
  std::vector<Edge> inputs, outputs;
  for (Port port = 0; port < options.inputs(); port++) {
    inputs.push_back({0, port});
    outputs.push_back({Edge::kOutside, port});
  }
  std::vector<KernelPlan> plans;
  plans.push_back(
      {"switch", "switch", Shape::kOneWay, outputs, [&options](Stats& stats) { return options.make(stats); }});
  return std::make_unique<PipelineDevice>("d", options.ports(), std::move(inputs), std::move(plans), pool(), 1);
}

struct Case {
  const char* label;
  const char* options;
  Port in;
};
constexpr Case kCases[] = {{"Themis-S", kThemisSource, 0}, {"Themis-D", kThemisDestination, 1}};

// Cycles of each stage, summed over bursts.
struct Sums {
  std::array<std::uint64_t, kStages> stages{};
  std::uint64_t bursts = 0, parse = 0, bursts_parsed = 0;

  void add_step() {
    for (unsigned i = 0; i < kStages; i++) stages[i] += step_cycles[i];
    bursts++;
  }
  void report(benchmark::State& state) const {
    const double packets = static_cast<double>(bursts) * kBurst;
    std::uint64_t all = 0;
    for (unsigned i = 0; i < kStages; i++) {
      state.counters[std::string("cycles/") + kStageNames[i]] = static_cast<double>(stages[i]) / packets;
      all += stages[i];
    }
    state.counters["cycles/parse"] = static_cast<double>(parse) / static_cast<double>(bursts_parsed * kBurst);
    state.counters["cycles/all"] = static_cast<double>(all) / packets;
    state.counters["hz"] = static_cast<double>(rte_get_tsc_hz());
  }
};

// A burst of data at a time; at the receiver's ToR its ACKs after it, whose cycles are not counted, nor are those of
// bursts in which a packet that has gone round too often ends for its TTL. Every other burst is parsed once more
// before, and that is all that is timed of it: without it, what stands before ingress is the engine and the switch's
// own bookkeeping.
void stages(benchmark::State& state) {
  const Case& which = kCases[state.range(0)];
  const auto flows = static_cast<std::size_t>(state.range(1));
  state.SetLabel(std::string(which.label) + ", " + std::to_string(flows) + (flows == 1 ? " QP" : " QPs"));
  Traffic traffic(flows);
  const std::unique_ptr<Device> device = make_marked(with_connections(which.options, traffic, which.in != 0));
  if (!device) return state.SkipWithError("its configuration has mistakes");
  device->set_sink([&](Port, std::span<Packet> out, Nanos) { traffic.back(out); });
  Nanos now = 0;
  Sums sums;
  const auto burst = [&](bool parse_alone) {
    const Arrivals arrivals{which.in, traffic.next()};
    if (parse_alone) {
      const std::uint64_t before = rte_rdtsc();
      roce::parse(arrivals.packets);
      sums.parse += rte_rdtsc() - before;
      sums.bursts_parsed++;
    }
    const std::uint64_t dropped = device->books().conservation().dropped;
    step_cycles = {};
    last_reading = rte_rdtsc();
    device->step(now += kBurstNanos, {&arrivals, 1});
    reach(kLeave);
    if (!parse_alone && device->books().conservation().dropped == dropped) sums.add_step();
    traffic.restore(device->books().conservation().dropped);
    const Arrivals responses{0, which.in ? traffic.acks() : std::span<Packet>()};
    if (!responses.packets.empty()) device->step(now += 1, {&responses, 1});
  };
  for (std::size_t i = 0; i < traffic.warm_up_bursts() && traffic.can(); i++) burst(false);
  sums = {};
  for (auto _ : state) {
    for (const bool parse_alone : {false, true}) {
      if (!traffic.can()) return state.SkipWithError("the packets ran out");
      burst(parse_alone);
    }
  }
  if (sums.bursts == 0) return state.SkipWithError("no burst went through whole");
  sums.report(state);
  while (device->next_deadline() != kNever) device->step(device->next_deadline(), {});
  if (device->books().conservation().held() != 0) state.SkipWithError("packets went missing");
}
BENCHMARK(stages)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kCases) - 1, 1), {1, 512, 8192}})
    ->Repetitions(2);

}  // namespace
}  // namespace rocebox::bench
