// SPDX-License-Identifier: BSD-3-Clause
// What `rocebox sim` writes of its report beside JSON: tables and figures.
#pragma once
#include <string>

#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {

/// Writes a file in one piece. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);

/// Writes workloads.csv, transfers.csv, goodput.csv and links.csv into a folder, which is made. Throws
/// std::runtime_error.
void write_tables(const Json& report, const std::string& folder);

/// Throws ConfigError when figures cannot be drawn here, with what is missing.
void require_plots();
/// Writes report.json and figures as SVG and PNG into a folder, which is made. Throws std::runtime_error.
void write_plots(const Json& report, const std::string& folder);

}  // namespace rocebox::cli
