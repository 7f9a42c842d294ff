// SPDX-License-Identifier: BSD-3-Clause
// Workloads as they are written, checked against the devices that there are.
#pragma once
#include "runtime/config/config.h"
#include "runtime/config/top_fields.h"

namespace rocebox::config {

/// Checks rows of `workloads:` and adds them to `config`, whose devices are known.
void add_workloads(const TopFields& top, const Node& root, RunConfig& config, Mistakes& mistakes);

}  // namespace rocebox::config
