// SPDX-License-Identifier: BSD-3-Clause
// The virtual drive: devices with hosts, joined by links; workloads; time is a queue of events.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/capture/input_stream.h"
#include "runtime/config/config.h"
#include "runtime/drives/replay_outputs.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/tracer.h"
#include "runtime/drives/virtual/flow_report.h"
#include "runtime/drives/virtual/schedule.h"
#include "runtime/drives/virtual/series.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/drives/virtual/tier_traffic.h"
#include "runtime/drives/virtual/watchdog.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox {

/// How far a simulation has come.
struct SimProgress {
  Nanos now, limit;      ///< simulated; limit 0: there is none
  std::uint64_t events;  ///< devices stepped, and packets handed to them
  std::size_t finished, workloads;
  Carrier::Share carried;  ///< of 0: how much that will be is not known
};

struct SimOptions {
  std::string trace;                                   ///< a TraceFilter; empty: no trace
  ExtraOutputs outputs;                                ///< files beside the captures of the configuration
  const StopRequest* stop = nullptr;                   ///< requested from outside: end, and report what there is
  std::function<void(const SimProgress&)> progress{};  ///< called now and then
};

class Sim {
 public:
  /// Makes devices and workloads, and checks all that can be checked without creating a file. Throws ConfigError.
  Sim(const config::RunConfig& config, Pool& pool, SimOptions options);
  /// Opens the outputs. Throws ConfigError, and then nothing has happened.
  void open();
  /// Runs to the end. Throws std::runtime_error when the run fails: a full disk, devices that hand packets round
  /// without end in one instant.
  void run();

  /// The report: of a run that has not begun, with zeros.
  Json report() const;
  /// Every transfer as a row, of which the report may have a part only. After run().
  void for_each_transfer(const EachRow& each) const { rocebox::for_each_transfer(config_, workloads_, each); }
  /// Whether all workloads finished, or the time of the configuration was over; nothing was lost to the end of `drain:`
  /// and every expectation held. After run().
  bool succeeded() const;
  bool interrupted() const { return end_ == End::kSignal; }
  /// The expectations that did not hold, one a line. After run().
  std::vector<std::string> failures() const;
  /// What a user would want to hear of, one a line: who waits for what where nothing advances any more. After run().
  std::vector<std::string> warnings() const;

 private:
  enum class End : std::uint8_t { kNotYet, kFinished, kTime, kStuck, kSignal };
  enum class RunsAhead : std::uint8_t { kNone, kInnerDevices, kAll };

  void leave(FabricPort from, std::span<Packet> packets, Nanos now);
  void run_workloads();
  void sample_until(Nanos now);
  void catch_up(Nanos ended);
  void drain();
  void let_run_ahead(RunsAhead who);
  void set_ahead(Nanos now, Nanos limit, std::uint64_t instant);
  void step(Nanos now);
  bool nothing_advances();
  bool stands_still_until(Nanos next);
  void look_outside();
  bool stop_requested() const { return options_.stop && options_.stop->requested(); }
  Json waiting() const;
  std::string hash() const;

  const config::RunConfig& config_;
  Pool& pool_;
  SimOptions options_;
  Expectations expectations_;
  Testbed testbed_;
  SimWorkloads workloads_;
  Schedule schedule_;
  Series series_;
  TierTraffic tier_traffic_;
  Watchdog watchdog_;
  ReplayOutputs outputs_;
  std::optional<TraceFilter> trace_filter_;
  std::vector<std::unique_ptr<Tracer>> tracers_;
  std::uint64_t packets_out_ = 0, held_at_end_ = 0, look_at_work_ = 0;
  Nanos now_ = 0;
  End end_ = End::kNotYet;
  Json utilisation_;  // of links, once the run has ended
  RunsAhead runs_ahead_ = RunsAhead::kNone;
  bool drain_cut_ = false;
};

}  // namespace rocebox
