// SPDX-License-Identifier: BSD-3-Clause
// Reload: a run takes over the options of another configuration without losing a packet.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/differences.h"
#include "runtime/drives/live/live.h"

namespace rocebox {

/// Gives what differs in `next` to the kernels of every shard, each between two of its bursts. `running` is the
/// configuration in force. Returns what was changed. Throws ConfigError with every reason why `next` cannot be taken
/// over in mid-run; then nothing was changed at all. For one caller at a time.
std::vector<config::Difference> reload(Live& live, const config::RunConfig& running, const config::RunConfig& next);

}  // namespace rocebox
