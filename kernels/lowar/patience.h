// SPDX-License-Identifier: BSD-3-Clause
// Patience: how long a stream's packets wait for a lost one, from how its packets came so far.
#pragma once
#include <algorithm>

#include "kernels/lowar/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox::lowar {

/// Within a message packets come as fast as they can, but for stalls of the sender; between messages the application
/// may wait. So only distances within messages count.
class Patience {
 public:
  /// A packet came. `within_message`: right behind the one before it, which is of the same message. A distance counts
  /// for `hold_max` at most.
  void arrived(bool within_message, Nanos now, Nanos hold_max) {
    if (within_message && last_) {
      const Nanos gap = std::min(now - last_, hold_max);
      if (gaps_ < kGapsMin) gaps_++;
      spacing_16_ += spacing_16_ ? gap - spacing_16_ / 16 : gap * 16;
      stall_ = std::max(static_cast<std::uint32_t>(gap), stall_ - stall_ / kStallPackets);
    }
    last_ = now;
  }
  /// The next packet's distance from the last one says nothing.
  void interrupt() { last_ = 0; }

  /// Twice the time that `packets` packets take, and twice the longest stall of late, since what is waited for may lie
  /// behind the next one; `hold_max` until enough is known.
  Nanos wait_time(Nanos packets, Nanos hold_min, Nanos hold_max) const {
    if (gaps_ < kGapsMin) return hold_max;
    return std::clamp(2 * (packets * spacing_16_ / 16 + stall_), hold_min, hold_max);
  }

 private:
  Nanos last_ = 0;           // when the last packet came; 0: unknown
  Nanos spacing_16_ = 0;     // mean distance, in 1/16 ns
  std::uint32_t stall_ = 0;  // longest distance of late, in ns
  std::uint8_t gaps_ = 0;    // distances that both come from, up to kGapsMin
};

}  // namespace rocebox::lowar
