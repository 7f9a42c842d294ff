// SPDX-License-Identifier: BSD-3-Clause
// Software-Controlled RDMA on one core: events through collector, queue, multiplexer and the fair scheduler's law, by
// number of flows; and what the interfaces add to one call of a program, beside the same function called directly.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "bench/micro/packets.h"
#include "kernels/scr/engine.h"
#include "nic_model/dpa/library.h"
#include "nic_model/dpa/program.h"
#include "nic_model/pcc/events.h"
#include "nic_model/pcc/process.h"
#include "runtime/kernel/counter_set.h"

namespace rocebox::bench {
namespace {

namespace dpa = nic_model::dpa;

constexpr std::uint64_t kLine = 100'000'000'000;
constexpr std::string_view kApi[] = {"scr_"};

class Nobody final : public scr::EngineOwner {
 public:
  void act(const scr_action&, Nanos) override { acted++; }
  void on_stop(Nanos) override { std::abort(); }
  std::uint64_t acted = 0;
};

// Packets of 1098 bytes at 100 Gbps, flow after flow. `threads` of the fabric, with the paper's latencies: 64 are quick
// enough to handle each event by itself, 16 are not, and events are taken together. 0: no latencies.
void events(benchmark::State& state, unsigned threads) {
  scr::FrameworkConfig config;
  config.flows = 1024;
  const bool timing = threads != 0;
  if (timing)
    config.threads[0] = threads;
  else
    config.timing = {0, 0, 0, 0, 0, 0, 0};
  CounterSet stats;
  Nobody owner;
  const std::string path = dpa::library_path("fair");
  scr::Engine engine(config, path, dpa::Program::read(path), kLine, stats);
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  Nanos now = 0;
  scr::Event event{};
  event.bytes = 1098;
  event.count = 1;
  event.kind = SCR_TX;
  std::uint32_t flow = 0;
  for (auto _ : state) {
    now += 88;
    event.time = event.since = now;
    event.flow = flow;
    flow = flow + 1 == flows ? 0 : flow + 1;
    if (engine.due() <= now) engine.run(now, owner);
    engine.put(event);
    if (!timing) engine.run(now, owner);
  }
  const auto handled = static_cast<double>(stats.read("scr_tx_events_handled"));
  state.SetItemsProcessed(state.iterations());
  state.counters["events_per_call"] = handled > 0 ? static_cast<double>(state.iterations()) / handled : 0;
  state.counters["bytes_per_event"] =
      handled > 0 ? static_cast<double>(stats.read("scr_tx_bytes_handled")) / handled : 0;
}

void each_event(benchmark::State& state) { events(state, 0); }
void with_latencies(benchmark::State& state) { events(state, 64); }
void with_coalescing(benchmark::State& state) { events(state, 16); }
BENCHMARK(each_event)->Arg(64)->Arg(256)->Arg(1024)->Repetitions(5)->ReportAggregatesOnly(false);
BENCHMARK(with_latencies)->Arg(64)->Arg(256)->Arg(1024)->Repetitions(5)->ReportAggregatesOnly(false);
BENCHMARK(with_coalescing)->Arg(64)->Arg(256)->Arg(1024)->Repetitions(5)->ReportAggregatesOnly(false);

scr::Event rtt_event(Nanos now) {
  scr::Event event{};
  event.time = event.since = now;
  event.kind = SCR_RTT;
  event.count = 1;
  event.rtt = event.network_rtt = 4000 + static_cast<std::uint32_t>(now % 512);
  return event;
}

// Swift's law, through the interface and without.
void swift_through_the_interface(benchmark::State& state) {
  const std::string path = dpa::library_path("swift");
  scr::Policy policy(path, dpa::Program::read(path), {64, kLine, 100 * kMillisecond}, {});
  scr::Event event{};
  event.kind = SCR_TX;
  policy.handle(event, 0);
  Nanos now = 1000;
  PerItem per_call(state, 1);
  for (auto _ : state) {
    now += 4000;
    benchmark::DoNotOptimize(policy.handle(rtt_event(now), now));
  }
}
void swift_called_directly(benchmark::State& state) {
  const std::string path = dpa::library_path("swift");
  const dpa::Program program(path, dpa::Program::read(path), kApi);
  const auto init = reinterpret_cast<void (*)(scr_node*)>(program.find("scr_init"));
  const auto handle = reinterpret_cast<void (*)(scr_node*, const scr_event*)>(program.find("scr_handle"));
  scr_node node{};
  scr_action actions[64];
  node.actions = actions;
  node.action_most = 64;
  node.line_rate = kLine;
  node.flows = 64;
  const auto* rows = static_cast<const scr_parameter*>(program.find("scr_parameters"));
  for (unsigned i = 0; rows[i].name; i++) node.parameters[i] = rows[i].at_first;
  init(&node);
  scr::Event event{};
  event.kind = SCR_TX;
  handle(&node, &event);
  PerItem per_call(state, 1);
  for (auto _ : state) {
    event = rtt_event(node.now += 4000);
    node.action_count = 0;
    handle(&node, &event);
    benchmark::DoNotOptimize(node.action_count);
  }
}
// The same of a program for PCC: an answer to a probe, by swift_control, whose state and rate are the same each time.
constexpr std::uint16_t kCalls = 1000;  // without the interface, in one with it

class PccCall {
 public:
  explicit PccCall(std::uint16_t times = 1)
      // 1000 s: callgrind does not bear the tick of the watchdog.
      : process_(ROCEBOX_PCC_REPEAT, dpa::Program::read(ROCEBOX_PCC_REPEAT), {64, kLine, 0, 64, 1000 * kSecond}) {
    process_.new_flow(0, 0);
    if (!process_.mail({static_cast<std::uint8_t>(times & 255), static_cast<std::uint8_t>(times >> 8), 0, 0}, {}))
      std::abort();
  }
  doca_pcc_dev_event_t& event() {
    now_ += 4000;
    event_ = nic_model::pcc::event_of(DOCA_PCC_DEV_EVNT_RTT, now_, 17, ++serial_);
    nic_model::pcc::set_rtt(event_, now_ - 4000, now_ - 2000, now_ - 2000);
    results_.rate = DOCA_PCC_DEV_MAX_RATE / 2;
    results_.rtt_req = 0;
    return event_;
  }
  bool handle() { return process_.handle(0, event(), results_, {now_, 1, 1}); }

 private:
  nic_model::pcc::Process process_;
  doca_pcc_dev_results_t results_{};
  Nanos now_ = 1000;
  std::uint32_t serial_ = 0;
  doca_pcc_dev_event_t event_{};
};

void pcc_through_the_interface(benchmark::State& state) {
  PccCall call;
  PerItem per_call(state, 1);
  for (auto _ : state) benchmark::DoNotOptimize(call.handle());
}
// The program asks for its tables by calls that need a process around them: one call of the interface, many of the
// program.
void pcc_called_directly(benchmark::State& state) {
  PccCall call(kCalls);
  PerItem per_call(state, kCalls);
  for (auto _ : state) benchmark::DoNotOptimize(call.handle());
}
// What both have before they call.
void pcc_events_alone(benchmark::State& state) {
  PccCall call;
  PerItem per_call(state, 1);
  for (auto _ : state) benchmark::DoNotOptimize(call.event());
}

void call_benchmarks() {
  constexpr std::pair<const char*, void (*)(benchmark::State&)> kAll[] = {
      {"swift_through_the_interface", swift_through_the_interface},
      {"swift_called_directly", swift_called_directly},
      {"pcc_through_the_interface", pcc_through_the_interface},
      {"pcc_called_directly", pcc_called_directly},
      {"pcc_events_alone", pcc_events_alone}};
  for (const auto& [name, function] : kAll) {
    benchmark::RegisterBenchmark(name, function)->Repetitions(5)->ReportAggregatesOnly(false);
    // For instructions.py, which takes the difference.
    for (const int iterations : {20, 520})
      benchmark::RegisterBenchmark((std::string(name) + "/counted").c_str(), function)->Iterations(iterations);
  }
}
const int kRegistered = (call_benchmarks(), 0);

}  // namespace
}  // namespace rocebox::bench
