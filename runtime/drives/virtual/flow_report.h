// SPDX-License-Identifier: BSD-3-Clause
// What the report of the virtual drive says of workloads, their transfers, and links.
#pragma once
#include <functional>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/virtual/series.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Adds `workloads`, each with its completion times, slowdowns, transfers (of more than 20,000 as many at even steps,
/// and how many these leave out) and what it says itself (`details`), and `goodput` over time, in the steps of the
/// series. Bytes are those that are with their receivers. `now`: the end of the run so far.
void report_flows(const config::RunConfig& config, const SimWorkloads& workloads, Nanos now, const Series& series,
                  Json& report);

using EachRow = std::function<void(const Json& row)>;
/// Calls `each` with every transfer of every workload: a row of the report's `flows`, behind the workload's name.
void for_each_transfer(const config::RunConfig& config, const SimWorkloads& workloads, const EachRow& each);

/// A table of the directions of all links: what went in up to `now`, the present, and which share of its rate that is.
Json utilisation(const config::RunConfig& config, const Testbed& testbed, Nanos now);

}  // namespace rocebox
