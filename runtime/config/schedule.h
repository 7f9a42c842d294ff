// SPDX-License-Identifier: BSD-3-Clause
// Changes at given times as they are written, read against the devices and links that there are.
#pragma once
#include "runtime/config/config.h"
#include "runtime/config/top_fields.h"
#include "runtime/config/topology.h"

namespace rocebox::config {

/// Checks entries of `schedule:` and adds what each changes to `config`, whose devices and links are known. `topology`
/// may be null. Each entry is laid over what was written, and over the entries before it in time.
void add_schedule(const TopFields& top, const Node& root, const Topology* topology, const Registry& registry,
                  RunConfig& config, Mistakes& mistakes);

}  // namespace rocebox::config
