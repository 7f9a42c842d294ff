// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that are a function of (stream, packet index): what one impairment decides about a
// packet cannot depend on which other impairments are on, nor on what became of earlier packets.
#pragma once
#include <cstdint>

#include "runtime/kernel/splitmix64.h"

namespace rocebox::link {

/// SplitMix64 read at any place: its n-th output depends on seed + n * gamma alone, so nothing has
/// to be drawn for packets that ended before this stream was asked.
class Stream {
 public:
  void seed(std::uint64_t seed) { seed_ = seed; }
  std::uint64_t at(std::uint64_t index) const { return splitmix64::of(seed_ + index * splitmix64::kStep); }

 private:
  std::uint64_t seed_ = 0;
};

/// Uniform in [0, bound), by multiplying high: the bias is below bound / 2^64.
inline std::uint64_t below(std::uint64_t draw, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(draw) * bound >> 64);
}

/// An event of a given probability, in steps of 2^-63; 0 never happens and 1 always does.
class Chance {
 public:
  explicit Chance(double probability) : threshold_(static_cast<std::uint64_t>(probability * 9223372036854775808.0)) {}
  bool possible() const { return threshold_ != 0; }
  bool hits(std::uint64_t draw) const { return draw >> 1 < threshold_; }

 private:
  std::uint64_t threshold_;
};

}  // namespace rocebox::link
