// SPDX-License-Identifier: BSD-3-Clause
// What the reports of a lab's appliances will hold, before anything of the lab is built.
#pragma once
#include "runtime/lab/lab_config.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {

/// The report of every appliance as it is before its run begins, by name: each is made, with ports that lead nowhere,
/// in a process of its own, so that it is seen to be possible. Throws ConfigError with the mistake of the first that is
/// not.
Json appliance_skeletons(const lab::LabConfig& config);

}  // namespace rocebox::cli
