// SPDX-License-Identifier: BSD-3-Clause
// link: the one impairment element, a deterministic netem for RoCE. README.md is its manual.
#pragma once
#include <memory>

#include "kernels/link/config.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox {

Component link_component();

namespace link {
/// A link that is configured in code rather than in YAML.
std::unique_ptr<Kernel> make(const Config& config, Stats& stats);
}  // namespace link
}  // namespace rocebox
