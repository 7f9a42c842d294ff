// SPDX-License-Identifier: BSD-3-Clause
// What `rocebox sim` and `rocebox model` write of their reports beside JSON: tables and figures.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {

/// Writes a file in one piece. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);

/// Makes the folder that `option` names where there is none yet, before a run whose results go there. Throws
/// ConfigError.
void make_folder(std::string_view option, const std::string& folder);
/// The files that write_tables() writes into a folder.
std::vector<std::string> table_files(const std::string& folder);
/// Calls what it is given with each transfer of a run, as rows of one table.
using Transfers = std::function<void(const std::function<void(const Json& row)>& each)>;
/// Writes workloads.csv, transfers.csv, goodput.csv, links.csv and, over time, series.csv and load.csv into a folder.
/// Throws std::runtime_error.
void write_tables(const Json& report, const Transfers& transfers, const std::string& folder);

/// Throws ConfigError when figures cannot be drawn here, with what is missing.
void require_plots();
/// The report that write_plots() writes into a folder.
std::string plotted_report(const std::string& folder);
/// Writes report.json and figures as SVG and PNG into a folder. Throws std::runtime_error.
void write_figures(const Json& report, const std::string& folder);
/// The same of a simulation, and its tables. Throws std::runtime_error.
void write_plots(const Json& report, const Transfers& transfers, const std::string& folder);

}  // namespace rocebox::cli
