// SPDX-License-Identifier: BSD-3-Clause
// Signals as events, for commands that end, or read their configuration again, on one.
#pragma once
#include <csignal>
#include <initializer_list>

#include "runtime/packet/packet.h"

namespace rocebox::cli {

/// Takes signals from the calling thread, and those that it makes from then on; other threads are not disturbed. The
/// destructor lets them through again.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The next signal, or 0 when none came within that time (rounded up to milliseconds); negative: for ever. May return
  /// 0 earlier, when another signal was handled.
  int wait(Nanos nanos);
  /// Readable when a signal has come; wait() takes it then.
  int descriptor() const { return descriptor_; }

 private:
  sigset_t before_;
  int descriptor_;
};

}  // namespace rocebox::cli
