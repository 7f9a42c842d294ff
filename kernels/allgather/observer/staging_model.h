// SPDX-License-Identifier: BSD-3-Clause
// StagingModel: how many slots of a receiver's staging ring (III-B, III-D) would be taken, if each chunk were copied to
// the user's buffer one behind the other, and its slot free when its copy is done.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/packet/packet.h"

namespace rocebox::allgather {

/// Of one group. Its memory is the caller's: times at which slots will be free, `slots` of them.
struct StagingModel {
  struct Speed {
    std::uint64_t bits_per_second;
    Nanos latency;
    std::uint32_t slots, slot_bytes;
  };
  std::uint32_t first = 0, taken = 0, taken_max = 0;
  Nanos copied_at = 0;  ///< when the copy of the last one ends
  Nanos held_max = 0;   ///< the longest that a slot was taken
  std::uint64_t held_sum = 0, chunks = 0, overruns = 0;

  /// A chunk of `bytes` has come; false: no slot was free, and the receiver would not have got it.
  bool receive(Nanos* free_at, const Speed& speed, std::uint32_t bytes, Nanos now) {
    while (taken > 0 && free_at[first] <= now) {
      first = first + 1 == speed.slots ? 0 : first + 1;
      taken--;
    }
    if (taken == speed.slots) {
      overruns++;
      return false;
    }
    const auto nanos =
        static_cast<Nanos>((std::uint64_t{bytes} * 8'000'000'000 + speed.bits_per_second - 1) / speed.bits_per_second);
    copied_at = std::max(copied_at, now) + nanos;
    const std::uint32_t last = first + taken >= speed.slots ? first + taken - speed.slots : first + taken;
    free_at[last] = copied_at + speed.latency;
    taken_max = std::max(taken_max, ++taken);
    held_max = std::max(held_max, free_at[last] - now);
    held_sum += static_cast<std::uint64_t>(free_at[last] - now);
    chunks++;
    return true;
  }
};

}  // namespace rocebox::allgather
