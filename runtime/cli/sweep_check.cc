// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "runtime/capture/output_file.h"
#include "runtime/cli/sweep_runs.h"
#include "runtime/config/units.h"
#include "runtime/process/file_place.h"
#include "runtime/process/signals.h"

namespace rocebox::cli {
namespace {

// No two runs may write one capture: the one that ends last would leave its own.
class Captures {
 public:
  // Of one combination; `again`: it is run with several seeds.
  void add(const config::RunConfig& config, bool again) {
    std::set<std::string> own;  // which ports of one run may share
    for (const config::CaptureBinding& binding : config.captures) {
      if (binding.out.empty()) continue;
      const bool printed = is_standard_output(binding.out);
      const std::string key = RunFiles::key_of(binding.out);
      if (key.empty() && !printed) continue;  // as /dev/null
      if (printed || again || others_.contains(key))
        throw ConfigError(fmt::format(
            "{}: port `{}` has its capture in {}, which several runs of the sweep would write: leave it out, or give "
            "each run a file of its own, whose name has a parameter that --sweep changes",
            config.place_text(binding.place), binding.port.text(), shown_output(binding.out)));
      own.insert(key);
    }
    others_.merge(own);
  }

 private:
  std::set<std::string> others_;
};

// The column `seed` of the table has the runs' seeds.
void check_seed(const SimArguments& arguments, const SweepPoint& point, const config::RunConfig& config) {
  for (const auto& [key, value] : point.settings)
    if (key == kSeedColumn && config::parse_integer(value) != config.seed)
      throw ConfigError(fmt::format(
          "{}: --sweep {}={}: the parameter `{}` is not the seed of the run, which the table has under that "
          "name: give the parameter another one",
          config.file, key, value, key));
  if (point.seed > INT64_MAX - (arguments.seeds - 1))
    throw ConfigError(fmt::format("--seeds {}: from seed {} on there are not as many", arguments.seeds, point.seed));
}

void add_new(std::vector<std::string>& texts, const std::string& text) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

// What is wrong with any combination as far as loading tells, and what there is to note. Each gets the seed of its own
// configuration.
std::vector<std::string> load_points(const SimArguments& arguments, std::vector<SweepPoint>& points,
                                     std::vector<std::string>& notes) {
  std::vector<std::string> mistakes;
  std::set<std::int64_t> seeds;
  Captures captures;
  for (SweepPoint& point : points) {
    Registry registry = make_registry(arguments.plugins);  // the configuration's plugins come into it once
    SimArguments one = arguments;
    one.seed.clear();
    for (const auto& [key, value] : point.settings) one.settings.push_back(fmt::format("{}={}", key, value));
    try {
      const config::RunConfig config = load_sim(one, registry);
      for (const std::string& note : config.notes) add_new(notes, note);
      seeds.insert(config.seed);
      point.seed = arguments.seed.empty() ? config.seed : seed_of(arguments.seed);
      check_seed(arguments, point, config);
      RunFiles files(config);
      files.writes(arguments.json, "the JSON report");
      if (!arguments.csv.empty())
        files.writes((std::filesystem::path(arguments.csv) / kSweepTable).string(), "a table");
      files.check();
      captures.add(config, arguments.seeds > 1);
    } catch (const ConfigError& error) {
      add_new(mistakes, error.what());
    }
  }
  if (!arguments.seed.empty() && seeds.size() > 1)
    add_new(mistakes, fmt::format("--seed {}: the values of --sweep give the runs seeds of their own: give one of both",
                                  arguments.seed));
  return mistakes;
}

// What devices, workloads and changes at their times make of their options is known when they are made. A process each:
// one DPDK environment has the memory that one run asks for.
Json make_points(const SimArguments& arguments, const std::vector<SweepPoint>& points, const Ranks& ranks,
                 bool& interrupted) {
  SweepRuns checks(arguments, points, ranks, SweepRuns::Extent::kCheck);
  {
    EndSignals signals;
    checks.run(signals.asked());
  }
  interrupted = checks.interrupted();
  return checks.mistakes();
}

// Mistakes of all ranks, each once, those of making with the first combination that has it, whoever made that.
std::vector<std::string> gathered(const std::vector<Json>& found, const std::vector<SweepPoint>& points) {
  std::vector<std::string> all;
  std::map<std::size_t, std::string> made;
  for (const Json& rank : found) {
    for (const Json& text : rank["loaded"]) add_new(all, text.get<std::string>());
    for (const Json& one : rank["made"]) made.emplace(one[0].get<std::size_t>(), one[1].get<std::string>());
  }
  std::set<std::string> told;
  for (auto& [number, text] : made) {
    text.erase(text.find_last_not_of('\n') + 1);
    if (!told.insert(text).second) continue;
    const std::string with = settings_text(points[number]);
    all.push_back(with.empty() ? text : fmt::format("{} (with {})", text, with));
  }
  return all;
}

}  // namespace

CheckedSweep check_sweep(const SimArguments& arguments, Ranks& ranks) {
  CheckedSweep checked;
  std::vector<SweepPoint>& points = checked.points;
  Json own = {{"loaded", Json::array()}, {"made", Json::array()}, {"interrupted", false}};
  try {
    points = sweep_points(arguments.sweeps, arguments.seeds);
    own["loaded"] = load_points(arguments, points, checked.notes);
  } catch (const ConfigError& error) {
    own["loaded"].push_back(error.what());
  }
  if (own["loaded"].empty()) {
    bool interrupted = false;
    own["made"] = make_points(arguments, points, ranks, interrupted);
    own["interrupted"] = interrupted;
  }
  std::vector<Json> found;
  for (const std::string& text : ranks.exchange(own.dump(-1, ' ', false, Json::error_handler_t::replace)))
    found.push_back(Json::parse(text));
  const std::vector<std::string> mistakes = gathered(found, points);
  if (!mistakes.empty()) {
    if (ranks.is_first()) throw ConfigError(fmt::format("{}", fmt::join(mistakes, "\n")));
    return {.status = 2};
  }
  if (std::ranges::any_of(found, [](const Json& rank) { return rank["interrupted"].get<bool>(); })) {
    if (ranks.is_first()) tell("a signal ended the sweep before its first run");
    return {.status = 1};
  }
  return checked;
}

}  // namespace rocebox::cli
