// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/kernel/kernel.h"

namespace rocebox {

/// How far something has come, for a watchdog.
struct Progress {
  std::uint64_t steps = 0;  ///< in a unit of its own; differs when something has been done or tried
  /// Until when it may stand still although all is well: something is due then by itself, such as another try. In the
  /// past: nothing is.
  Nanos waits_until = 0;

  void add(std::uint64_t more, Nanos until) {
    steps += more;
    waits_until = std::max(waits_until, until);
  }
  void add(const Progress& other) { add(other.steps, other.waits_until); }
};

}  // namespace rocebox
