// SPDX-License-Identifier: BSD-3-Clause
// Slot: what has come of the message that has an ID now.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/sdr/observer/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox::sdr::observer {

/// All zeros: nothing has come.
struct alignas(64) Slot {
  std::uint64_t number;         ///< of the message, counted on beyond its ID; 0: none
  Nanos first, last, complete;  ///< times of packets; of the one that made it complete
  std::uint64_t bytes;          ///< of distinct packets
  std::uint32_t packets;        ///< distinct ones
  std::uint32_t high;           ///< highest offset that has come, plus 1
  std::uint32_t end;            ///< packets of the message; 0: not known yet
  std::uint32_t chunks;         ///< complete ones; a short last chunk only when the end is known
  std::uint32_t duplicates, late, outside;
  std::uint32_t empty;      ///< Writes without bytes
  std::uint32_t fragments;  ///< of the user's immediate that have come
  std::uint32_t user;       ///< what they make up
  std::uint32_t conflicts;  ///< fragments that came again with another value
  std::uint32_t group, generation;

  /// Packets that it has, as far as is known.
  std::uint32_t expected() const { return end ? end : high; }
  std::uint32_t missing() const { return expected() - std::min(packets, expected()); }
};
static_assert(sizeof(Slot) == 128);

/// Packets that have not come, from `first` to before `end`.
struct MissingRun {
  std::uint32_t first, end;
};
/// The first runs of a message, in order; behind the last one both ends are 0.
struct MissingRuns {
  std::array<MissingRun, kMissingRunsMax> runs;
  bool has_more;
};

/// A message whose ID was used again.
struct EndedMessage {
  Slot slot;
  MissingRuns missing;
};

}  // namespace rocebox::sdr::observer
