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
#include <optional>

#include "runtime/capture/output_file.h"
#include "runtime/cli/sim_files.h"
#include "runtime/lab/process.h"
#include "runtime/process/file_place.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

namespace fs = std::filesystem;

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

class Runs {
 public:
  Runs(const SimArguments& arguments, std::vector<SweepPoint> points)
      : arguments_(arguments), points_(std::move(points)) {}

  void run(const StopRequest& stop) {
    std::size_t next = 0;
    bool told = false;
    while (next < points_.size() || !running_.empty()) {
      while (!stop.requested() && next < points_.size() && running_.size() < static_cast<std::size_t>(arguments_.jobs))
        start(next++);
      if (stop.requested()) {
        if (!std::exchange(told, true))
          for (lab::Process& one : running_) one.signal(SIGINT);
        next = points_.size();
      }
      wait(stop, told);
    }
    interrupted_ = stop.requested();
  }

  /// The rows of the runs that came to a report, in their order.
  Json rows() const {
    Json rows = Json::array();
    for (std::size_t i = 0; i < points_.size(); i++) {
      std::ifstream file(scratch_.file(i, "json"));
      const Json report = file ? Json::parse(file, nullptr, false) : Json();
      if (report.is_object()) rows.push_back(sweep_row(points_[i], report));
    }
    return rows;
  }
  /// What each run said on standard error.
  void tell_errors() const {
    for (std::size_t i = 0; i < points_.size(); i++) {
      const std::string said = lab::read_tail(scratch_.file(i, "err"), kErrorBytesMax);
      if (said.empty()) continue;
      std::string name;
      for (const auto& [key, value] : points_[i].settings) name += fmt::format("{}={} ", key, value);
      tell(fmt::format("with {}seed={}:", name, points_[i].seed));
      tell_placed(said.substr(0, said.find_last_not_of('\n') + 1));
    }
  }
  int status() const { return std::max(status_, interrupted_ ? 1 : 0); }

 private:
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
  std::vector<SweepPoint> points_;
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
      seed = load_sim(one, registry).seed;
    } catch (const ConfigError& error) {
      if (std::ranges::find(all, error.what()) == all.end()) all.emplace_back(error.what());
    }
  }
  if (!all.empty()) throw ConfigError(fmt::format("{}", fmt::join(all, "\n")));
  return seed;
}

}  // namespace

int sweep(const SimArguments& arguments) {
  if (arguments.config == "-" || !fs::is_regular_file(arguments.config))
    throw ConfigError(shown_file(arguments.config) + ": a sweep reads the configuration for each run: give a file");
  for (const auto& [given, option] :
       {std::pair(!arguments.trace.empty(), "--trace"), {!arguments.plot.empty(), "--plot"}})
    if (given) throw ConfigError(fmt::format("{} is for a single run, and --sweep makes many", option));
  const std::int64_t seed = check_points(arguments);
  Runs runs(arguments, sweep_points(arguments.sweeps, seed, arguments.seeds));
  {
    EndSignals signals;
    runs.run(signals.asked());
  }
  runs.tell_errors();
  Json report = {{"schema_version", kReportSchemaVersion}, {"command", "sim"}, {"config", arguments.config}};
  report["runs"] = runs.rows();
  if (arguments.seeds > 1) report["means"] = sweep_means(report["runs"]);
  if (!arguments.csv.empty()) {
    fs::create_directories(arguments.csv);
    write_file((fs::path(arguments.csv) / "sweep.csv").string(), csv_text(report["runs"]));
  }
  if (!arguments.json.empty()) write_file(arguments.json, json_text(report));
  if (!is_standard_output(arguments.json)) print_report(report, stdout, arguments.report);
  return runs.status();
}

}  // namespace rocebox::cli
