// SPDX-License-Identifier: BSD-3-Clause
// What two configurations do not share, for a run that changes from one to the other.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox::config {

/// One option of a kernel or link, or one other thing that was written, whose value is not the same.
struct Difference {
  static constexpr unsigned kElsewhere = ~0u;
  std::string path;              ///< `devices.bump.kernels.wan.loss`
  std::string before, after;     ///< as effective_yaml() writes them; empty: not there
  unsigned device = kElsewhere;  ///< devices first, then links; kElsewhere: it is no kernel's option
  unsigned kernel = 0;           ///< of that device
};

/// In the order of the effective configuration `before`, then what is new in `after`.
std::vector<Difference> differences(const RunConfig& before, const RunConfig& after);

/// The kernel that a Difference names; in the second configuration only when no difference is elsewhere.
const KernelConfig& kernel_of(const RunConfig& config, const Difference& difference);

}  // namespace rocebox::config
