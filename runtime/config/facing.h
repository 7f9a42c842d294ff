// SPDX-License-Identifier: BSD-3-Clause
// Kernels that are one end of a pair, and how they stand to each other.
#pragma once
#include "runtime/config/config.h"

namespace rocebox::config {

/// Adds a mistake for every two kernels of a type that work in pairs (Fields::faces_its_like) of which one gets at its
/// wrong side what the other makes for its like, and for every two that turn their wrong sides to each other and have
/// nobody behind them. Only what the configuration itself joins is seen.
void check_facing(const RunConfig& config, Mistakes& mistakes);

}  // namespace rocebox::config
