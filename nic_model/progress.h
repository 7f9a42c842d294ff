// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/kernel/kernel.h"

namespace rocebox::nic_model {

/// How far what programs do has come, for a watchdog: Workload::progress and Workload::waits_until.
struct Progress {
  std::uint64_t steps = 0;  ///< differs when something has been done or tried
  Nanos waits_until = 0;    ///< something is due then by itself; in the past: nothing is

  void add(std::uint64_t more, Nanos until) {
    steps += more;
    waits_until = std::max(waits_until, until);
  }
  void add(const Progress& other) { add(other.steps, other.waits_until); }
};

}  // namespace rocebox::nic_model
