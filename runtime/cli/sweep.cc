// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "runtime/capture/output_file.h"
#include "runtime/cli/ranks.h"
#include "runtime/cli/sim_files.h"
#include "runtime/cli/sweep_check.h"
#include "runtime/cli/sweep_runs.h"
#include "runtime/process/file_place.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

namespace fs = std::filesystem;

// Rows and what runs said, in the order of the points, whoever ran them.
Json gathered(const std::vector<std::string>& outcomes, const std::vector<SweepPoint>& points, int& status) {
  std::map<std::size_t, Json> rows, said;
  std::size_t begun = 0;
  for (const std::string& text : outcomes) {
    const Json outcome = Json::parse(text);
    for (const Json& row : outcome["rows"]) rows.emplace(row[0].get<std::size_t>(), row[1]);
    for (const Json& one : outcome["said"]) said.emplace(one[0].get<std::size_t>(), one[1]);
    status = std::max(status, outcome["status"].get<int>());
    begun += outcome["begun"].get<std::size_t>();
  }
  if (begun < points.size())
    tell(fmt::format("a signal ended the sweep: {} of {} runs did not begin", points.size() - begun, points.size()));
  for (const auto& [number, text] : said) {
    tell(fmt::format("with {}:", run_text(points[number])));
    const auto lines = text.get<std::string>();
    tell_placed(lines.substr(0, lines.find_last_not_of('\n') + 1));
  }
  Json all = Json::array();
  for (auto& [number, row] : rows) all.push_back(std::move(row));
  return all;
}

// What a sweep cannot have beside it.
void refuse_contradictions(const SimArguments& arguments) {
  for (const auto& [given, option] : {std::pair(!arguments.trace.empty(), "--trace"),
                                      {!arguments.trace_outs.empty(), "--trace-out"},
                                      {!arguments.plot.empty(), "--plot"}})
    if (given) throw ConfigError(fmt::format("{} is for a single run, and --sweep and --seeds make many", option));
  std::set<std::string> keys;
  for (const std::string& sweep : arguments.sweeps) {
    const std::string key = parse_sweep(sweep).first;
    if (!keys.insert(key).second)
      throw ConfigError(fmt::format("--sweep {}: `{}` has values by another --sweep: give all in one", sweep, key));
    for (const std::string& setting : arguments.settings)
      if (config::parse_setting(setting, "--set").key == key)
        throw ConfigError(
            fmt::format("--set {} and --sweep {} both say what `{}` is: give one of both", setting, sweep, key));
    if (key != kSeedColumn) continue;
    if (!arguments.seed.empty())
      throw ConfigError(fmt::format("--seed {} and --sweep {} both say which seed a run has: give one of both",
                                    arguments.seed, sweep));
    if (arguments.seeds > 1)
      throw ConfigError(fmt::format("--seeds {} counts from one seed on, and --sweep {} names each: give one of both",
                                    arguments.seeds, sweep));
  }
}

// A line for each run, instead of some twenty values.
Json briefly(Json report) {
  report["columns"] = "those that differ between runs; --full, --csv and --json have all";
  for (const char* table : {"runs", "means"})
    if (report.contains(table)) report[table] = sweep_brief(report[table], ReportStyle().width);
  return report;
}

// What all ranks do together.
int sweep_among(const SimArguments& arguments, Ranks& ranks) {
  const CheckedSweep checked = check_sweep(arguments, ranks);
  if (checked.status != 0) return checked.status;
  if (ranks.is_first()) tell_placed(checked.notes);
  const std::vector<SweepPoint> points = with_seeds(checked.points, arguments.seeds);
  if (!arguments.csv.empty() && ranks.is_first()) make_folder("--csv", arguments.csv);
  SweepRuns runs(arguments, points, ranks, SweepRuns::Extent::kRun);
  {
    EndSignals signals;
    runs.run(signals.asked());
  }
  const std::vector<std::string> outcomes =
      ranks.exchange(runs.outcome().dump(-1, ' ', false, Json::error_handler_t::replace));
  int status = 0;
  if (!ranks.is_first()) return status;
  Json report = {{"schema_version", kReportSchemaVersion}, {"command", "sim"}, {"config", arguments.config}};
  report["runs"] = gathered(outcomes, points, status);
  if (arguments.seeds > 1) report["means"] = sweep_means(report["runs"]);
  if (!arguments.csv.empty()) write_file((fs::path(arguments.csv) / kSweepTable).string(), csv_text(report["runs"]));
  if (!arguments.json.empty()) write_file(arguments.json, json_text(report));
  if (!is_standard_output(arguments.json))
    print_report(arguments.report.full ? report : briefly(report), stdout, arguments.report);
  return status;
}

}  // namespace

int sweep(const SimArguments& arguments) {
  if (arguments.config == "-" || !fs::is_regular_file(arguments.config))
    throw ConfigError(shown_file(arguments.config) + ": a sweep reads the configuration for each run: give a file");
  refuse_contradictions(arguments);
  Ranks ranks;
  try {
    return sweep_among(arguments, ranks);
  } catch (const std::exception& why) {
    ranks.abandon(why);
    throw;
  }
}

}  // namespace rocebox::cli
