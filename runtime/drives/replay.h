// SPDX-License-Identifier: BSD-3-Clause
// The replay drive: captures in, captures out, time is the captures' timestamps.
#pragma once
#include <xxhash.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/replay_input.h"
#include "runtime/drives/replay_outputs.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/tracer.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox {

struct ReplayOptions {
  std::string trace;                  ///< a TraceFilter; empty: no trace
  ExtraOutputs outputs;               ///< files beside the captures of the configuration
  bool more_files_may_come = false;   ///< expectations may speak of inputs and outputs that are not there yet
  const StopRequest* stop = nullptr;  ///< requested from outside: stop reading, drain, report
  /// Called now and then with bytes read, bytes in all (0: unknown) and packets.
  std::function<void(std::uint64_t, std::uint64_t, std::uint64_t)> progress;
};

class Replay {
 public:
  /// Makes the devices and checks all that can be checked without waiting for a pipe or creating a file: filters,
  /// captures, outputs, expectations. Throws ConfigError.
  Replay(const config::RunConfig& config, Pool& pool, ReplayOptions options);
  /// Opens the outputs and waits for the inputs. Throws ConfigError, and then nothing has happened.
  void open();

  /// Runs to the end. Throws std::runtime_error when the run fails (a broken capture, a full disk); no output file
  /// has its final name then.
  void run();

  /// The report: of a run that has not begun, with zeros.
  Json report() const;
  /// Whether every expectation held and nothing was lost to the end of `drain:`. After run().
  bool succeeded() const;
  bool interrupted() const { return interrupted_; }
  /// The expectations that did not hold, one a line. After run().
  std::vector<std::string> failures() const { return expectations_.failures(report()); }
  /// What a user would want to hear of, one a line. After run().
  std::vector<std::string> warnings() const;

 private:
  void parse_expectations();
  void leave(FabricPort from, std::span<Packet> packets, Nanos now);
  bool stop_requested() const { return options_.stop && options_.stop->requested(); }
  void inject_instant(CaptureRecord& record, FabricPort& to, bool& more);
  bool advance_to(Nanos now);
  void feed();
  void drain(Nanos last);
  std::string drain_note() const;

  const config::RunConfig& config_;
  Pool& pool_;
  ReplayOptions options_;
  Expectations expectations_;
  Testbed testbed_;
  ReplayInput input_;
  ReplayOutputs outputs_;
  std::optional<TraceFilter> trace_filter_;
  std::vector<std::unique_ptr<Tracer>> tracers_;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_{XXH3_createState(), &XXH3_freeState};
  std::uint64_t packets_in_ = 0, packets_out_ = 0, dropped_pool_empty_ = 0, held_at_end_ = 0;
  Nanos ended_at_ = 0;
  bool interrupted_ = false, drain_cut_ = false;
};

}  // namespace rocebox
