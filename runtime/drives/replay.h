// SPDX-License-Identifier: BSD-3-Clause
// The replay drive: captures in, captures out, time is the captures' timestamps.
#pragma once
#include <xxhash.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/capture_writer.h"
#include "runtime/drives/replay_input.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/tracer.h"
#include "runtime/telemetry/expect.h"

namespace rocebox {

struct ReplayOptions {
  std::string trace;                        ///< a TraceFilter; empty: no trace
  std::vector<std::string> trace_outs;      ///< files for the trace: .pcapng gets packets with comments, others text
  std::FILE* trace_text = nullptr;          ///< where text goes when no file is named
  const std::atomic<bool>* stop = nullptr;  ///< set from outside: stop reading, drain, report
  /// Called now and then with bytes read, bytes in all (0: unknown) and packets.
  std::function<void(std::uint64_t, std::uint64_t, std::uint64_t)> progress;
};

class Replay {
 public:
  /// Opens everything that the run needs. Throws ConfigError, and then nothing has happened.
  Replay(const config::RunConfig& config, Pool& pool, ReplayOptions options);

  /// Runs to the end. Throws std::runtime_error when the run fails (a broken capture, a full disk); no output file
  /// has its final name then.
  void run();

  /// The report: of a run that has not begun, with zeros.
  Json report() const;
  /// Whether every expectation held; true when there are none. After run().
  bool expectations_hold() const;

 private:
  struct Output {
    std::string path;  ///< empty: nowhere
    std::unique_ptr<CaptureWriter> writer;
    std::vector<std::string> interfaces;
  };
  struct OutPort {
    int output = -1;  ///< index of outputs_; -1: counted only
    unsigned interface = 0;
  };

  void open_outputs();
  void check_expectations() const;
  void deliver(FabricPort from, std::span<Packet> packets, Nanos now);
  void feed();
  void drain(Nanos last);
  void check_outputs() const;

  const config::RunConfig& config_;
  Pool& pool_;
  ReplayOptions options_;
  std::vector<Expectation> expectations_;
  std::vector<Output> outputs_;
  std::vector<std::vector<OutPort>> out_ports_;  ///< by device, by port
  Testbed testbed_;
  ReplayInput input_;
  std::optional<TraceFilter> trace_filter_;
  std::optional<TraceOutput> trace_output_;
  std::vector<std::unique_ptr<Tracer>> tracers_;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_{XXH3_createState(), &XXH3_freeState};
  std::uint64_t packets_in_ = 0, packets_out_ = 0, dropped_pool_empty_ = 0, held_at_end_ = 0, pool_high_water_ = 0;
  Nanos ended_at_ = 0;
  bool interrupted_ = false;
};

}  // namespace rocebox
