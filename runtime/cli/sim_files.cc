// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sim_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "runtime/capture/output_file.h"
#include "runtime/cli/sweep.h"
#include "runtime/config/text_file.h"
#include "runtime/lab/process.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "plot.py";

// The script that draws; empty: it is nowhere.
std::string script() {
  std::error_code ignored;
  for (const std::string& folder : config::data_folders("sim", "configs/sim"))
    if (const fs::path file = fs::path(folder) / kScript; fs::exists(file, ignored)) return file.string();
  return "";
}

// The Python that draws; empty: none can. Debian's packages are for its own python3, which is not always the first on
// PATH.
std::string plotting_python() {
  for (const std::string& python : {lab::find_program("python3"), std::string("/usr/bin/python3")})
    if (!python.empty() && lab::call({python, "-c", "import matplotlib"}).status == 0) return python;
  return "";
}

// A row of what a workload came to, groups taken apart.
Json flat_row(const std::string& name, const Json& workload) {
  Json row = {{"workload", name}};
  for (const auto& [key, value] : workload.items()) {
    if (value.is_array()) continue;
    if (!value.is_object()) {
      row[key] = value;
      continue;
    }
    if (key == "completion" || key == "slowdown")
      for (const auto& [inner, number] : value.items()) row[key + "_" + inner] = number;
    if (key != "collectives") continue;
    row["collectives"] = value["count"];
    row["collectives_done"] = value["done"];
    for (const char* what : {"completion", "slowdown"})
      for (const auto& [inner, number] : value[what].items())
        row[fmt::format("collective_{}_{}", what, inner)] = number;
  }
  return row;
}

// Columns of equal length, side by side with the times; the same columns in all runs of a configuration would be mostly
// zeros, so each run has those that it needs.
Json rows_of(const Json& at, std::initializer_list<const Json*> groups) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < at.size(); i++) {
    Json& row = rows.emplace_back(Json{{"at_ns", at[i]}});
    for (const Json* group : groups)
      for (const auto& [name, column] : group->items()) row[name] = column[i];
  }
  return rows;
}

// Row by row: there may be millions.
void write_transfers(const std::string& path, const Transfers& transfers) {
  OutputFile file(path);
  bool has_names = false;
  transfers([&](const Json& row) {
    const std::string text = (std::exchange(has_names, true) ? "" : csv_names(row)) + csv_line(row);
    file.write(text.data(), text.size());
  });
  file.close();
  file.publish();
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.close();
  file.publish();
}

std::vector<std::string> table_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const char* name : {"workloads.csv", "transfers.csv", "goodput.csv", "links.csv", "series.csv", "load.csv"})
    files.push_back((fs::path(folder) / name).string());
  return files;
}

void make_folder(std::string_view option, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("{} {}: the folder cannot be made: {}", option, folder, error.message()));
}

void write_tables(const Json& report, const Transfers& transfers, const std::string& folder) {
  Json workloads = Json::array();
  for (const auto& [name, workload] : report["workloads"].items()) workloads.push_back(flat_row(name, workload));
  const fs::path path(folder);
  write_file(path / "workloads.csv", csv_text(workloads));
  write_transfers(path / "transfers.csv", transfers);
  write_file(path / "goodput.csv", csv_text(report["goodput"]));
  write_file(path / "links.csv", csv_text(report["utilisation"]));
  if (!report.contains("series")) return;  // it ended as it began
  const Json& series = report["series"];
  write_file(path / "series.csv", csv_text(rows_of(series["at_ns"], {&series["counts"], &series["levels"]})));
  write_file(path / "load.csv", csv_text(rows_of(series["at_ns"], {&series["utilisation"]})));
}

void require_plots() {
  if (script().empty())
    throw ConfigError(fmt::format("--plot: {} does not lie where the command looks for it", kScript));
  if (plotting_python().empty())
    throw ConfigError("--plot needs matplotlib for python3, which is not here: Debian has it as python3-matplotlib");
}

std::string plotted_report(const std::string& folder) { return (fs::path(folder) / "report.json").string(); }

void write_plots(const Json& report, const Transfers& transfers, const std::string& folder) {
  write_tables(report, transfers, folder);
  write_figures(report, folder);
}

void write_figures(const Json& report, const std::string& folder) {
  const std::string json = plotted_report(folder);
  write_file(json, json_text(report));
  const lab::CallResult drawn = lab::call({plotting_python(), script(), json, folder});
  if (drawn.status != 0) throw std::runtime_error("--plot: " + lab::last_lines(drawn.said, 3));
}

}  // namespace rocebox::cli
