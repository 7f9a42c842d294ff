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
  std::int64_t seed = 0;
};
/// The name of the table's column that has it.
inline constexpr const char* kSeedColumn = "seed";

/// The values of `KEY=V1,V2`; commas within brackets part none. Throws ConfigError.
std::pair<std::string, std::vector<std::string>> parse_sweep(const std::string& text);
/// Every combination of values, without a seed yet: the last sweep goes round first. Throws ConfigError, also when
/// each with so many seeds would be too many runs.
std::vector<SweepPoint> sweep_points(const std::vector<std::string>& sweeps, std::int64_t seeds);
/// Each of them so many times, with one seed after the other from its own on.
std::vector<SweepPoint> with_seeds(const std::vector<SweepPoint>& points, std::int64_t seeds);
/// What is set, for messages: `loss=1% bytes=10kB`.
std::string settings_text(const SweepPoint& point);
/// The same with the seed.
std::string run_text(const SweepPoint& point);
/// What a row of the table has of a run's report.
Json sweep_row(const SweepPoint& point, const Json& report);
/// For each combination the means of its seeds' rows. Of each workload `finished_runs` of these finished, and durations
/// are over them; `counted_runs` have a transfer that is done, and completion times and slowdowns are over those. A
/// mean of none is left out.
Json sweep_means(const Json& rows);
/// Rows for a person, as far as a line of so many columns has room: what is set, the seed, and of what runs came to
/// that which differs between them and says something new, what matters most first.
Json sweep_brief(const Json& rows, std::size_t width);
/// A row as a line of comma-separated values (RFC 4180), and the line of its names.
std::string csv_line(const Json& row);
std::string csv_names(const Json& row);
/// Rows as comma-separated values (RFC 4180), with a line of names: those of all rows. What a row lacks is empty.
std::string csv_text(const Json& rows);

/// Runs them all; returns the exit status.
int sweep(const SimArguments& arguments);

}  // namespace rocebox::cli
