// SPDX-License-Identifier: BSD-3-Clause
// Signals as events, for commands that end, or read their configuration again, on one.
#pragma once
#include <chrono>
#include <csignal>
#include <initializer_list>
#include <thread>

#include "runtime/capture/input_stream.h"
#include "runtime/component/fields.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// Takes signals from the calling thread, and those that it makes from then on; other threads are not disturbed. The
/// destructor lets them through again.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The next signal, or 0 when none came within that time (rounded up to milliseconds); negative: for ever. May return
  /// 0 earlier, when another signal was handled or `also`, a descriptor, is readable.
  int wait(Nanos nanos, int also = -1);
  /// Readable when a signal has come; wait() takes it then.
  int descriptor() const { return descriptor_; }

 private:
  sigset_t before_;
  int descriptor_;
};

/// A signal that comes so soon after one says the same again: timeout(1) signals the process, and then its group.
inline constexpr Nanos kSameWish = 200 * kMillisecond;

/// SIGINT and SIGTERM while this lives: the first asks for the end of the run; the second, whichever of both, ends the
/// process at once, whatever it is doing or waiting for. One that comes within `same_wish` of the first says the same
/// again. A thread of its own waits for them; those that are made later are not disturbed. The destructor lets signals
/// through again.
class EndSignals {
 public:
  explicit EndSignals(Nanos same_wish = kSameWish);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Binds the thread to the cores of the caller's, which DPDK has kept off those that poll.
  void share_cores();
  /// Whether the first has come.
  const StopRequest& asked() const { return asked_; }

 private:
  void listen();
  bool says_the_same() const;

  const Nanos same_wish_;
  std::chrono::steady_clock::time_point asked_at_;  // of the thread, while it lives
  StopRequest asked_, enough_;
  Signals signals_;
  std::thread thread_;  // the last: it uses all the others
};

}  // namespace rocebox
