// SPDX-License-Identifier: BSD-3-Clause
// Trial: packets that lead a connection through each of Themis's tables and arrays, for `rocebox check --strict`.
#pragma once
#include <vector>

#include "kernels/themis/config.h"
#include "runtime/kernel/stimulus.h"

namespace rocebox::themis {

/// Adds a connection between a NIC of this rack and one that `hosts` does not name, by ways that the programs before
/// know: its handshake, requests both ways, NACKs that are stashed, resolved and avoided for, and its end. Nothing when
/// no two such ways are known.
void add_trial(const Config& config, const switch_model::SwitchInfo& info, std::vector<Stimulus>& all);

}  // namespace rocebox::themis
