// SPDX-License-Identifier: BSD-3-Clause
// LiveCaptures: the files of a live run, and the threads that read and write them.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/drives/live/capture_feed.h"
#include "runtime/drives/live/capture_port.h"
#include "runtime/drives/replay_outputs.h"

namespace rocebox {

class LiveCaptures {
 public:
  /// Makes a port for each capture binding of the configuration, and adds it to `ports`, which must outlive this.
  /// Checks all that can be checked without waiting for a pipe or creating a file. Throws ConfigError.
  LiveCaptures(const config::RunConfig& config, ExtraOutputs outputs, Pool& pool, const Clock& clock,
               std::vector<std::unique_ptr<LivePort>>& ports);
  ~LiveCaptures();
  LiveCaptures(const LiveCaptures&) = delete;
  LiveCaptures& operator=(const LiveCaptures&) = delete;

  /// Creates the output files. Throws ConfigError.
  void open() { outputs_.open({}); }
  /// Starts the threads, and waits a moment for the first packets to be read.
  void start();
  /// Whether every packet of every input was received. False when there is no input.
  bool ended() const;
  /// Why a file cannot be used any further; empty: all is well.
  std::string failed() const;
  /// Reads no more; what was read ahead may still be received.
  void stop_reading();
  /// Writes what has left, after the cores have stopped. Whoever fails then is known to failed().
  void finish_writing();
  /// Adds inputs, outputs: as they were before the start or are after the end.
  void report(Json& report) const;
  /// Gives all outputs their names, with the report as JSON among them. Throws std::runtime_error.
  void publish(const std::function<std::string()>& json_report) { outputs_.finish(json_report); }

 private:
  void add_feeds(const config::RunConfig& config, Pool& pool);
  void write();
  bool write_one();

  std::vector<CapturePort*> ports_;  // by capture binding
  ReplayOutputs outputs_;
  std::vector<std::unique_ptr<CaptureFeed>> feeds_;
  std::vector<Packet> heads_;  // by port: sent, not yet written
  std::atomic<bool> no_more_{false}, write_failed_{false};
  std::string write_failure_;  // written before write_failed_
  std::thread writer_;
};

}  // namespace rocebox
