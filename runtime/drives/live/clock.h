// SPDX-License-Identifier: BSD-3-Clause
// The live drive's time: the CPU's time-stamp counter, read once per burst.
#pragma once
#include <rte_cycles.h>
#include <time.h>

#include "runtime/packet/packet.h"

namespace rocebox {

/// Nanoseconds since the epoch as of the start, going on with the time-stamp counter: monotonic, the same on every
/// core, and comparable with captures. One read costs 20 to 45 cycles.
class Clock {
 public:
  Clock() : started_tsc_(rte_rdtsc()), nanos_per_tick_((std::uint64_t{kSecondNanos} << kShift) / rte_get_tsc_hz()) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    started_ = now.tv_sec * kSecondNanos + now.tv_nsec;
  }
  Nanos now() const { return at(rte_rdtsc()); }
  Nanos at(std::uint64_t tsc) const {
    __extension__ using Wide = unsigned __int128;
    return started_ + static_cast<Nanos>(Wide{tsc - started_tsc_} * nanos_per_tick_ >> kShift);
  }
  Nanos started() const { return started_; }

 private:
  static constexpr unsigned kShift = 32;
  static constexpr Nanos kSecondNanos = 1'000'000'000;
  std::uint64_t started_tsc_, nanos_per_tick_;  // nanoseconds, as a fraction of 2^32
  Nanos started_ = 0;
};

}  // namespace rocebox
