// SPDX-License-Identifier: BSD-3-Clause
// PsnCell: a PSN in a 32-bit register cell, shifted left by 8 so that the sign of a difference is the order modulo
// 2^24, with flags in the bits below. All zero is: no PSN.
#pragma once
#include <cstdint>

#include "runtime/roce/psn.h"

namespace rocebox::themis {

struct PsnCell {
  static constexpr std::uint32_t kValid = 1, kFlag = 2;
  std::uint32_t bits = 0;

  static constexpr PsnCell of(std::uint32_t psn, bool flag = false) {
    return {(psn & roce::kPsnMask) << 8 | (flag ? kFlag : 0) | kValid};
  }
  constexpr bool valid() const { return bits & kValid; }
  constexpr bool flag() const { return bits & kFlag; }
  constexpr std::uint32_t psn() const { return bits >> 8; }
  /// Whether it holds this PSN.
  constexpr bool is(std::uint32_t psn_) const { return valid() && psn() == psn_; }
  /// Whether it holds a PSN that is ahead of `psn_`.
  constexpr bool ahead_of(std::uint32_t psn_) const { return valid() && roce::psn_after(psn(), psn_); }
  /// Whether it holds none, or one that `psn_` is ahead of.
  constexpr bool behind(std::uint32_t psn_) const { return !valid() || roce::psn_after(psn_, psn()); }
};
static_assert(sizeof(PsnCell) == 4);

}  // namespace rocebox::themis
