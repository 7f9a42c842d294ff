// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <optional>

#include "runtime/capture/output_file.h"
#include "runtime/cli/ranks.h"
#include "runtime/cli/sim_files.h"
#include "runtime/lab/process.h"
#include "runtime/process/file_place.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSweepTable = "sweep.csv";
constexpr std::size_t kErrorBytesMax = std::size_t{1} << 16;

// A folder for what the runs write, which goes with this.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "rocebox-sweep-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for what the runs of a sweep write");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(std::size_t run, const char* what) const {
    return (path_ / fmt::format("{}.{}", run, what)).string();
  }

 private:
  fs::path path_;
};

// Those of one rank: every so many, so that long and short ones are dealt out evenly.
class Runs {
 public:
  Runs(const SimArguments& arguments, const std::vector<SweepPoint>& points, const Ranks& ranks)
      : arguments_(arguments), points_(points) {
    for (std::size_t i = static_cast<std::size_t>(ranks.rank()); i < points.size();
         i += static_cast<std::size_t>(ranks.count()))
      mine_.push_back(i);
  }

  void run(const StopRequest& stop) {
    std::size_t next = 0;
    bool told = false;
    while (next < mine_.size() || !running_.empty()) {
      while (!stop.requested() && next < mine_.size() && running_.size() < static_cast<std::size_t>(arguments_.jobs))
        start(mine_[next++]);
      if (stop.requested()) {
        if (!std::exchange(told, true))
          for (lab::Process& one : running_) one.signal(SIGINT);
        next = mine_.size();
      }
      wait(stop, told);
    }
    interrupted_ = stop.requested();
  }

  /// What came of them, for the first rank: the rows of those that came to a report, what they said on standard error,
  /// each with its number, and the exit status.
  Json outcome() const {
    Json outcome = {{"rows", Json::array()}, {"said", Json::array()}, {"status", status()}};
    for (const std::size_t i : mine_) {
      std::ifstream file(scratch_.file(i, "json"));
      const Json report = file ? Json::parse(file, nullptr, false) : Json();
      if (report.is_object()) outcome["rows"].push_back({i, sweep_row(points_[i], report)});
      if (const std::string said = lab::read_tail(scratch_.file(i, "err"), kErrorBytesMax); !said.empty())
        outcome["said"].push_back({i, said});
    }
    return outcome;
  }

 private:
  int status() const { return std::max(status_, interrupted_ ? 1 : 0); }
  void start(std::size_t run) {
    lab::Command command;
    command.words = {"/proc/self/exe",  "sim",
                     arguments_.config, "--quiet",
                     "--json",          scratch_.file(run, "json"),
                     "--seed",          fmt::format("{}", points_[run].seed)};
    for (const std::string& setting : arguments_.settings)
      command.words.insert(command.words.end(), {"--set", setting});
    for (const auto& [key, value] : points_[run].settings)
      command.words.insert(command.words.end(), {"--set", fmt::format("{}={}", key, value)});
    for (const std::string& plugin : arguments_.plugins)
      command.words.insert(command.words.end(), {"--plugin", plugin});
    command.error = scratch_.file(run, "err");
    command.environment = Ranks::no_rank();
    running_.emplace_back(command);
  }

  void wait(const StopRequest& stop, bool told) {
    std::vector<pollfd> descriptors;
    for (const lab::Process& one : running_) descriptors.push_back({one.descriptor(), POLLIN, 0});
    if (!told) descriptors.push_back({stop.descriptor(), POLLIN, 0});
    if (!descriptors.empty()) poll(descriptors.data(), descriptors.size(), -1);
    std::erase_if(running_, [this](lab::Process& one) {
      const std::optional<int> status = one.status();
      if (status) status_ = std::max(status_, *status > 2 ? 1 : *status);
      return status.has_value();
    });
  }

  const SimArguments& arguments_;
  const std::vector<SweepPoint>& points_;
  std::vector<std::size_t> mine_;
  Scratch scratch_;
  std::list<lab::Process> running_;
  int status_ = 0;
  bool interrupted_ = false;
};

// Mistakes of any run are told before the first one starts.
std::int64_t check_points(const SimArguments& arguments) {
  std::vector<std::string> all;
  std::int64_t seed = 1;
  for (const SweepPoint& point : sweep_points(arguments.sweeps, 0, 1)) {
    Registry registry = make_registry(arguments.plugins);  // the configuration's plugins come into it once
    SimArguments one = arguments;
    for (const auto& [key, value] : point.settings) one.settings.push_back(fmt::format("{}={}", key, value));
    try {
      const config::RunConfig config = load_sim(one, registry);
      seed = config.seed;
      RunFiles files(config);
      files.writes(arguments.json, "the JSON report");
      if (!arguments.csv.empty()) files.writes((fs::path(arguments.csv) / kSweepTable).string(), "a table");
      files.check();
    } catch (const ConfigError& error) {
      if (std::ranges::find(all, error.what()) == all.end()) all.emplace_back(error.what());
    }
  }
  if (!all.empty()) throw ConfigError(fmt::format("{}", fmt::join(all, "\n")));
  return seed;
}

// All ranks have the same configuration, or one that cannot read it says so. Returns the first seed; empty: the first
// rank has told what is wrong.
std::optional<std::int64_t> check_together(const SimArguments& arguments, Ranks& ranks) {
  std::int64_t seed = 1;
  std::string mistakes;
  try {
    seed = check_points(arguments);
  } catch (const ConfigError& error) {
    mistakes = error.what();
  }
  std::vector<std::string> all = ranks.exchange(mistakes);
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::erase(all, "");
  if (all.empty()) return seed;
  if (ranks.is_first()) throw ConfigError(fmt::format("{}", fmt::join(all, "\n")));
  return std::nullopt;
}

// Rows and what runs said, in the order of the points, whoever ran them.
Json gathered(const std::vector<std::string>& outcomes, const std::vector<SweepPoint>& points, int& status) {
  std::map<std::size_t, Json> rows, said;
  for (const std::string& text : outcomes) {
    const Json outcome = Json::parse(text);
    for (const Json& row : outcome["rows"]) rows.emplace(row[0].get<std::size_t>(), row[1]);
    for (const Json& one : outcome["said"]) said.emplace(one[0].get<std::size_t>(), one[1]);
    status = std::max(status, outcome["status"].get<int>());
  }
  for (const auto& [number, text] : said) {
    std::string name;
    for (const auto& [key, value] : points[number].settings) name += fmt::format("{}={} ", key, value);
    tell(fmt::format("with {}seed={}:", name, points[number].seed));
    const auto lines = text.get<std::string>();
    tell_placed(lines.substr(0, lines.find_last_not_of('\n') + 1));
  }
  Json all = Json::array();
  for (auto& [number, row] : rows) all.push_back(std::move(row));
  return all;
}

// What all ranks do together.
int sweep_among(const SimArguments& arguments, Ranks& ranks) {
  const std::optional<std::int64_t> seed = check_together(arguments, ranks);
  if (!seed) return 2;
  const std::vector<SweepPoint> points = sweep_points(arguments.sweeps, *seed, arguments.seeds);
  Runs runs(arguments, points, ranks);
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
  if (!arguments.csv.empty()) {
    fs::create_directories(arguments.csv);
    write_file((fs::path(arguments.csv) / kSweepTable).string(), csv_text(report["runs"]));
  }
  if (!arguments.json.empty()) write_file(arguments.json, json_text(report));
  if (!is_standard_output(arguments.json)) print_report(report, stdout, arguments.report);
  return status;
}

}  // namespace

int sweep(const SimArguments& arguments) {
  if (arguments.config == "-" || !fs::is_regular_file(arguments.config))
    throw ConfigError(shown_file(arguments.config) + ": a sweep reads the configuration for each run: give a file");
  for (const auto& [given, option] :
       {std::pair(!arguments.trace.empty(), "--trace"), {!arguments.plot.empty(), "--plot"}})
    if (given) throw ConfigError(fmt::format("{} is for a single run, and --sweep makes many", option));
  Ranks ranks;
  try {
    return sweep_among(arguments, ranks);
  } catch (const std::exception& why) {
    ranks.abandon(why);
    throw;
  }
}

}  // namespace rocebox::cli
