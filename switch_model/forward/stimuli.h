// SPDX-License-Identifier: BSD-3-Clause
// Packets that reach every table of the program: strict mode's trial traffic.
#pragma once
#include <vector>

#include "runtime/kernel/stimulus.h"
#include "switch_model/forward/config.h"
#include "switch_model/program.h"

namespace rocebox::switch_model::forward {

/// Packets to an address that nobody knows, to static ones, to the router and into its prefixes.
std::vector<Stimulus> stimuli_of(const Config& config, const SwitchInfo& info);

}  // namespace rocebox::switch_model::forward
