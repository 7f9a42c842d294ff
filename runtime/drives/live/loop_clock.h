// SPDX-License-Identifier: BSD-3-Clause
// LoopClock: the time of one core's loops.
#pragma once
#include <utility>

#include "runtime/drives/live/clock.h"
#include "runtime/kernel/counter.h"

namespace rocebox {

/// Read once a loop, and once for each burst of packets and each host that acts in it. What goes by from one loop to
/// the next counts as busy when the loop between them was, so that nothing is lost between loops.
class LoopClock {
 public:
  explicit LoopClock(const Clock& clock) : clock_(clock) {}

  Nanos now() const { return now_; }
  Nanos read() {
    now_ = clock_.now();
    const Nanos before = std::exchange(loop_began_, now_);
    if (std::exchange(loop_was_busy_, false)) busy_nanos_.add(static_cast<std::uint64_t>(now_ - before));
    return now_;
  }
  /// Within a loop, when packets have been taken from a port: none came later than this, even where the core did other
  /// things since read(). So what delays them never lets them go early.
  Nanos read_again() { return now_ = clock_.now(); }
  /// The time since the last read() was well spent.
  void count_busy() { loop_was_busy_ = true; }
  std::uint64_t busy_nanos() const { return busy_nanos_.read(); }
  const Clock& clock() const { return clock_; }

 private:
  const Clock& clock_;
  Nanos now_ = 0, loop_began_ = 0;
  bool loop_was_busy_ = false;
  Counter busy_nanos_;
};

}  // namespace rocebox
