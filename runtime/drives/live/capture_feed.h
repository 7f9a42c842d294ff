// SPDX-License-Identifier: BSD-3-Clause
// CaptureFeed: the thread that reads captures ahead of a live run.
#pragma once
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runtime/drives/live/capture_port.h"
#include "runtime/drives/replay_input.h"

namespace rocebox {

/// Reads the captures of ports that have one pace, merged by time as in replay, so that what two ports of one trace had
/// between them stays. The pool dry, or enough read ahead: it waits, since a file can.
class CaptureFeed {
 public:
  /// `ports` are those of `bindings`, in that order. Throws ConfigError with the places of every mistake.
  CaptureFeed(std::vector<config::CaptureBinding> bindings, std::vector<CapturePort*> ports, Pool& pool);
  ~CaptureFeed() { stop(); }
  CaptureFeed(const CaptureFeed&) = delete;
  CaptureFeed& operator=(const CaptureFeed&) = delete;

  void start();
  /// Reads no more, and returns when the thread has ended.
  void stop();

  /// Whether it has read as far ahead as it can for now.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  /// Whether all was read, and received by the cores.
  bool ended() const;
  /// Why it ended too early; empty: it did not. Once ended().
  const std::string& failed() const { return failure_; }
  /// Adds a row for each file. Not between start() and stop().
  void report(Json& inputs) const;

 private:
  void read();
  bool read_pass(Nanos& base);
  bool put(const CaptureRecord& record, CapturePort& port, Nanos offset);
  bool pause(unsigned tries);

  std::vector<config::CaptureBinding> bindings_;
  std::vector<CapturePort*> ports_;
  Pool& pool_;
  StopRequest stop_;
  ReplayInput input_;  // refers to bindings_ and stop_
  std::atomic<Nanos> start_{0};
  std::atomic<bool> ready_{false}, done_{false};
  std::string failure_;  // written before done_
  std::thread thread_;
};

}  // namespace rocebox
