// SPDX-License-Identifier: BSD-3-Clause
// One alarm over timers that cannot be cancelled: knows which are outstanding and arms none twice.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/link/hold_queue.h"
#include "kernels/link/limits.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::link {

class Alarm {
 public:
  explicit Alarm(std::uint64_t tag) : tag_(tag) {}

  /// Makes sure that a timer fires at `at` or before; one that fires too early just asks again.
  void want(Context& context, Nanos at) {
    if (at == kNoTime || (count_ && armed_[count_ - 1] <= at)) return;
    if (count_ == armed_.size()) {  // forgets the latest, which will then fire for nothing
      std::copy(armed_.begin() + 1, armed_.end(), armed_.begin());
      count_--;
    }
    armed_[count_++] = at;
    context.arm(at, tag_);
  }

  void fired(Nanos now) {
    while (count_ && armed_[count_ - 1] <= now) count_--;
  }

 private:
  std::array<Nanos, kAlarmsMax> armed_{};  // falling: a timer is armed only when it is the earliest
  unsigned count_ = 0;
  std::uint64_t tag_;
};

}  // namespace rocebox::link
