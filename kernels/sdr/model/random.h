// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of the model's samples: equal seeds give equal samples.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/kernel/splitmix64.h"

namespace rocebox::sdr {

/// Meets UniformRandomBitGenerator.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : state_(splitmix64::of(seed)) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return splitmix64::next(state_); }

  /// In (0, 1].
  double uniform() { return (static_cast<double>((*this)() >> 11) + 1) * 0x1p-53; }
  /// Failures before the first success, each trial being a success with that probability; infinity where it never is.
  double failures_before_success(double success) {
    if (success <= 0) return std::numeric_limits<double>::infinity();
    return success >= 1 ? 0 : std::floor(std::log(uniform()) / std::log1p(-success));
  }

 private:
  std::uint64_t state_;
};

}  // namespace rocebox::sdr
