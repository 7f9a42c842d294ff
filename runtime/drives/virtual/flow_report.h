// SPDX-License-Identifier: BSD-3-Clause
// What the report of the virtual drive says of workloads, their transfers, and links.
#pragma once
#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Adds `workloads`, each with its completion times, slowdowns, transfers and what it says itself (`details`), and
/// `goodput` over time, in steps of `width`, or 0: in a hundred. `now`: the end of the run so far.
void report_flows(const config::RunConfig& config, const SimWorkloads& workloads, Nanos now, Nanos width, Json& report);

/// Adds `utilisation`, a table of the directions of all links.
void report_utilisation(const config::RunConfig& config, const Testbed& testbed, Nanos now, Json& report);

}  // namespace rocebox
