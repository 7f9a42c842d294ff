// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/sim.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "runtime/config/units.h"
#include "runtime/drives/virtual/flow_report.h"
#include "runtime/drives/virtual/signals.h"

namespace rocebox {
namespace {

// Events between two looks at the world outside: some milliseconds, whatever an instant is worth. Where devices run
// ahead, one can be thousands of events.
constexpr std::uint64_t kWorkPerLook = 1 << 14;
// Instants between two times at which workloads are asked whether their hosts act alone.
constexpr std::uint64_t kInstantsPerAsking = 64;
// Devices stepped and packets handed over while draining, beyond as many as there were before: timers that are armed
// again for ever must not keep a run going that has nothing to do.
constexpr std::uint64_t kDrainWork = 1 << 20;
// Lines of each workload that say what waits for what, and devices that are named with what they hold.
constexpr unsigned kWaitingLines = 16, kHoldersShown = 16;

// What a workload waits for, as reports have it as text.
void add_waiting(const std::string& workload, const Json& waiting, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("  workload {}:", workload));
  std::istringstream text(report_text(waiting, {}));
  for (std::string line; std::getline(text, line);) lines.push_back("    " + line);
}

std::string_view end_text(int end) {
  constexpr std::string_view kTexts[] = {"not yet", "all workloads had finished", "its time was over",
                                         "nothing advanced any more", "a signal ended it"};
  return kTexts[end];
}

}  // namespace

Sim::Sim(const config::RunConfig& config, Pool& pool, SimOptions options)
    : config_(config),
      pool_(pool),
      options_(std::move(options)),
      testbed_(config, pool, static_cast<std::uint64_t>(config.seed),
               [this](FabricPort from, std::span<Packet> packets, Nanos now) { leave(from, packets, now); }),
      workloads_(config, testbed_),
      schedule_(config, testbed_),
      series_(config, testbed_, workloads_),
      tier_traffic_(config, testbed_),
      watchdog_(config.sim.watchdog),
      outputs_(config, options_.outputs, [this](const config::PortName& name) { return testbed_.port(name); }) {
  testbed_.fabric().let_output_share();
  testbed_.fabric().count_late();
  testbed_.tap_joined(config, [this](FabricPort from, std::span<const Packet> packets, Nanos now) {
    for (const Packet packet : packets) outputs_.write(from, now, packet);
  });
  if (config.schedule.empty()) testbed_.fabric().let_send_ahead();
  if (!options_.trace.empty()) trace_filter_.emplace(options_.trace);
  expectations_.read(config_, config_.expectations.empty() ? Json() : report());
}

void Sim::open() {
  std::vector<std::string> devices;
  for (unsigned i = 0; i < testbed_.device_count(); i++) devices.push_back(testbed_.device(i).name());
  outputs_.open(devices);
  if (!outputs_.trace()) return;
  for (unsigned i = 0; i < testbed_.device_count(); i++) {
    tracers_.push_back(std::make_unique<Tracer>(*trace_filter_, *outputs_.trace(), testbed_.device(i), i, 0));
    testbed_.device(i).set_trace(tracers_.back().get());
  }
}

void Sim::leave(FabricPort from, std::span<Packet> packets, Nanos now) {
  packets_out_ += packets.size();
  for (const Packet packet : packets) {
    outputs_.write(from, now, packet);
    rte_pktmbuf_free(packet.mbuf());
  }
}

// Devices inside the network run ahead of the hosts, and hosts of each other where they act alone, but not beyond what
// is looked at or starts at a known time, and not while a workload waits for another one: when that finishes is not
// known, and then all traffic so far is told apart. That hosts have come to act alone may be seen some instants late.
void Sim::set_ahead(Nanos now, Nanos limit, std::uint64_t instant) {
  Fabric& fabric = testbed_.fabric();
  const bool starts = workloads_.next_start() <= now;
  RunsAhead who = runs_ahead_;
  if (!config_.schedule.empty() || workloads_.any_waits())
    who = RunsAhead::kNone;
  else if (starts || runs_ahead_ == RunsAhead::kNone)
    who = RunsAhead::kInnerDevices;
  else if (instant % kInstantsPerAsking == 0 && workloads_.hosts_act_alone())
    who = RunsAhead::kAll;
  let_run_ahead(who);
  fabric.limit_ahead(std::min({limit, series_.next(), workloads_.next_start()}));
}

void Sim::let_run_ahead(RunsAhead who) {
  if (who == std::exchange(runs_ahead_, who)) return;
  testbed_.fabric().run_in_time();
  if (who != RunsAhead::kNone) testbed_.fabric().let_run_ahead(who == RunsAhead::kAll);
}

// One instant: what changes and what starts in it, what is due in it, and what starts because something finished in it.
void Sim::step(Nanos now) {
  now_ = now;
  watchdog_.begin(now);
  if (schedule_.next() <= now) {
    schedule_.apply_due(now);
    watchdog_.wait_again(now);
  }
  Nanos happened = now;  // what was before this
  do {
    if (workloads_.next_start() <= now) {
      testbed_.fabric().settle(happened);
      tier_traffic_.begin_phase(now, workloads_);
      workloads_.start_due(now);
    }
    testbed_.fabric().run(now);
    happened = now + 1;
  } while (workloads_.next_start() <= now);
  if (testbed_.fabric().work() >= look_at_work_) look_outside();
}

void Sim::look_outside() {
  look_at_work_ = testbed_.fabric().work() + kWorkPerLook;
  outputs_.check();
  if (!options_.progress) return;
  std::size_t finished = 0;
  for (const SimWorkloads::Row& row : workloads_.rows()) finished += row.finished != kNever;
  options_.progress({now_, config_.sim.time, testbed_.fabric().work(), finished, workloads_.rows().size(),
                     workloads_.share_carried()});
}

// Looked at behind the last instant, however long after it the next one comes. What runs ahead may have advanced later.
bool Sim::nothing_advances() {
  watchdog_.look(workloads_.progress(), workloads_.next_start() != kNever || schedule_.next() != kNever, now_,
                 testbed_.fabric().ran_ahead_to() - 1);
  return watchdog_.has_stood_still(now_);
}

// Nothing happens before `next`, and that may be long after what stands still should have been told of. Packets that
// are under way may arrive then; of those that nothing is due for none is.
bool Sim::stands_still_until(Nanos next) {
  Fabric& fabric = testbed_.fabric();
  if (watchdog_.is_off() || next - now_ < watchdog_.patience()) return false;
  if (fabric.next_deadline() != kNever && fabric.held() > 0) return false;
  if (nothing_advances()) return true;
  if (workloads_.next_start() != kNever || schedule_.next() != kNever) return false;
  if (watchdog_.told_at() >= next) return false;
  now_ = watchdog_.told_at();
  return true;
}

void Sim::run_workloads() {
  Fabric& fabric = testbed_.fabric();
  const Nanos limit = config_.sim.time == 0 ? kNever : config_.sim.time;
  if (watchdog_.patience() == 0 || config_.workloads.empty()) watchdog_.turn_off();
  for (std::uint64_t instants = 1; end_ == End::kNotYet; instants++) {
    const Nanos next = std::min({fabric.next_deadline(), workloads_.next_start(), schedule_.next()});
    if (workloads_.all_finished() && !config_.workloads.empty()) {
      end_ = End::kFinished;
      now_ = std::max(now_, workloads_.finished_at());
    } else if (next == kNever && limit == kNever) {
      end_ = config_.workloads.empty() ? End::kFinished : End::kStuck;
      nothing_advances();  // since when that is
    } else if (stands_still_until(std::min(next, limit)) ||
               (next < limit && watchdog_.is_due(next) && nothing_advances())) {
      end_ = End::kStuck;
    } else if (next >= limit) {
      now_ = limit;
      end_ = End::kTime;
    } else {
      sample_until(next);
      set_ahead(next, limit, instants);
      step(next);
      if (stop_requested()) end_ = End::kSignal;
    }
  }
}

// Each sample has what happened before its time.
void Sim::sample_until(Nanos now) {
  while (series_.next() <= now) {
    testbed_.fabric().settle(series_.next());
    series_.sample_until(series_.next());
  }
}

// What is on its way still arrives; a timer that is armed again and again must not keep the run going.
void Sim::drain() {
  Fabric& fabric = testbed_.fabric();
  const Nanos limit = now_ + config_.drain;
  const std::uint64_t work_max = 2 * fabric.work() + kDrainWork;
  fabric.limit_ahead(kNever);
  workloads_.start_no_more();
  // Hosts' timers go by time: those behind the end of draining are not to have gone off.
  if (runs_ahead_ == RunsAhead::kAll) let_run_ahead(RunsAhead::kInnerDevices);
  const std::uint64_t steps_per_look = std::max(64u, testbed_.device_count());
  held_at_end_ = fabric.held();
  for (std::uint64_t steps = 1; held_at_end_ > 0 && fabric.next_deadline() <= limit; steps++) {
    step(fabric.next_deadline());
    if (steps % steps_per_look != 0) continue;
    held_at_end_ = fabric.held();
    if (stop_requested() || fabric.work() > work_max) break;
  }
  held_at_end_ = fabric.held();
  drain_cut_ = held_at_end_ > 0 && fabric.next_deadline() != kNever;
  if (stop_requested()) end_ = End::kSignal;
}

// Where devices take turns of some time, who finished last may be ahead of others.
void Sim::catch_up(Nanos ended) {
  Fabric& fabric = testbed_.fabric();
  fabric.limit_ahead(ended + 1);
  while (fabric.next_deadline() <= ended) fabric.run(fabric.next_deadline());
}

void Sim::run() {
  run_workloads();
  const Nanos ended = now_;
  if (end_ == End::kFinished) catch_up(ended);
  sample_until(ended);
  // At the end of its time what would have happened then has not.
  testbed_.fabric().settle(end_ == End::kTime ? ended : ended + 1);
  series_.finish(ended);
  utilisation_ = utilisation(config_, testbed_, ended);  // without what drains, as the time is
  if (end_ == End::kFinished && !workloads_.any_goes_on()) drain();
  held_at_end_ = testbed_.fabric().held();
  now_ = ended;  // what drained is no part of the time that the workloads took
  outputs_.check();
  outputs_.finish([this] { return json_text(report()); });
}

bool Sim::succeeded() const {
  return (end_ == End::kFinished || end_ == End::kTime) && !drain_cut_ && failures().empty();
}

// Expectations that do not hold, and workloads that tell of an error.
std::vector<std::string> Sim::failures() const {
  const Json all = report();
  std::vector<std::string> lines = expectations_.failures(all);
  std::ranges::move(failed_workloads(all, expectations_), std::back_inserter(lines));
  return lines;
}

// Who waits for what, and where packets are.
Json Sim::waiting() const {
  Json waiting = Json::object();
  for (const SimWorkloads::Row& row : workloads_.rows()) {
    if (row.finished != kNever) continue;
    Json& one = waiting["workloads"][row.config->name];
    JsonReport report(one);
    if (row.started == kNever)
      report.text("state", "has not started");
    else
      row.workload->explain_waiting(report, kWaitingLines);
  }
  Json& holders = waiting["holders"] = Json::array();
  for (unsigned i = 0; i < testbed_.device_count() && holders.size() < kHoldersShown; i++)
    if (const std::uint64_t held = testbed_.device(i).books().conservation().held(); held > 0)
      holders.push_back({{"device", testbed_.device(i).name()}, {"packets", held}});
  return waiting;
}

std::vector<std::string> Sim::warnings() const {
  std::vector<std::string> lines;
  if (end_ == End::kStuck) {
    lines.push_back(fmt::format("nothing advances any more {}{}", watchdog_.since(),
                                testbed_.fabric().next_deadline() == kNever ? ": nothing is due" : ""));
    const Json all = waiting();
    if (all.contains("workloads"))
      for (const auto& [name, one] : all["workloads"].items()) add_waiting(name, one, lines);
    for (const Json& one : all["holders"]) {
      const auto packets = one["packets"].get<std::uint64_t>();
      lines.push_back(
          fmt::format("  {} holds {} packet{}", one["device"].get<std::string>(), packets, packets == 1 ? "" : "s"));
    }
  }
  if (end_ == End::kFinished && held_at_end_ > 0 && !workloads_.any_goes_on())
    lines.push_back(drain_cut_
                        ? fmt::format("{} packets were still held {} after all workloads had finished: a longer "
                                      "`drain:` lets them leave",
                                      held_at_end_, config::format_duration(config_.drain))
                        : fmt::format("{} packets are still held, and no timer would let them go", held_at_end_));
  if (pool_.dry() > 0)
    lines.push_back(
        fmt::format("the pool had no packet left {} times, so that senders waited for what no real one waits "
                    "for, and copies were not made: raise `pool:` (headers: {}, small: {}, large: {})",
                    pool_.dry(), config_.pool.headers, config_.pool.small, config_.pool.large));
  return lines;
}

// Over every counter of every device, every transfer, when each workload began and ended, and the run: equal runs have
// equal ones, and what differs on the way differs in these.
std::string Sim::hash() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (unsigned i = 0; i < testbed_.device_count(); i++)
    testbed_.device(i).books().for_each_counter(
        [&](const CounterView& counter) { XXH3_64bits_update(state.get(), &counter.value, sizeof counter.value); });
  for (const SimWorkloads::Row& row : workloads_.rows()) {
    const Nanos times[] = {row.started, row.finished};
    XXH3_64bits_update(state.get(), times, sizeof times);
    for (const FlowRecord& flow : row.workload->flows()) {
      const std::uint64_t words[] = {std::uint64_t{flow.source} << 32 | flow.destination, flow.bytes,
                                     static_cast<std::uint64_t>(flow.start), static_cast<std::uint64_t>(flow.end)};
      XXH3_64bits_update(state.get(), words, sizeof words);
    }
  }
  XXH3_64bits_update(state.get(), &now_, sizeof now_);
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

Json Sim::report() const {
  Json report = {
      {"schema_version", kReportSchemaVersion}, {"command", "sim"}, {"config", config_.file}, {"seed", config_.seed}};
  report["run"] = {{"span_ns", now_},
                   {"end", end_text(static_cast<int>(end_))},
                   {"events", testbed_.fabric().work()},
                   {"packets_out", packets_out_},
                   {"held_at_end", held_at_end_},
                   {"interrupted", interrupted()},
                   {"drain_cut", drain_cut_},
                   {"pool_packets_max", pool_.in_use_max()},
                   {"pool_dry", pool_.dry()}};
  if (end_ == End::kStuck) report["waiting"] = waiting();
  schedule_.report(report);
  report["signals"] = signals(testbed_);
  report_flows(config_, workloads_, now_, series_, report);
  series_.report(report);
  tier_traffic_.report(report);
  report["utilisation"] = utilisation_.is_null() ? utilisation(config_, testbed_, now_) : utilisation_;
  outputs_.report(report["outputs"]);
  testbed_.report(report);
  expectations_.add_to(report);
  report["hash"] = hash();
  return report;
}

}  // namespace rocebox
