// SPDX-License-Identifier: BSD-3-Clause
// Sweeps: one configuration again and again, with other values; each run is a process, and all come to one table.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/commands.h"

namespace rocebox::cli {

/// A run of a sweep: what is set, in the order of the options, and the seed.
struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> settings;
  std::int64_t seed;
};

/// The values of `KEY=V1,V2`; commas within brackets part none. Throws ConfigError.
std::pair<std::string, std::vector<std::string>> parse_sweep(const std::string& text);
/// Every combination of values with every seed: the last sweep goes round first, seeds before all.
std::vector<SweepPoint> sweep_points(const std::vector<std::string>& sweeps, std::int64_t first_seed,
                                     std::int64_t seeds);
/// What a row of the table has of a run's report.
Json sweep_row(const SweepPoint& point, const Json& report);
/// For each combination the means of its seeds' rows, where there are several.
Json sweep_means(const Json& rows);
/// Rows as comma-separated values (RFC 4180), with a line of names. All rows have the same columns.
std::string csv_text(const Json& rows);

/// Runs them all; returns the exit status.
int sweep(const SimArguments& arguments);

}  // namespace rocebox::cli
