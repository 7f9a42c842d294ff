// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/ranks.h"
#include "runtime/cli/sim_files.h"
#include "runtime/cli/sweep.h"
#include "runtime/drives/virtual/sim.h"
#include "runtime/packet/huge_pages.h"
#include "runtime/process/file_place.h"
#include "runtime/process/no_memory.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/text_cells.h"

namespace rocebox::cli {
namespace {

constexpr std::int64_t kSeedsMax = 100'000, kJobsMax = 1024;
// Devices of which a report as text tells each; of more only with --full.
constexpr std::size_t kSimDevicesShown = 8;

// Simulated time, speed and, where there is something to judge it by, time left on a terminal, twice a second; silent
// in a pipe.
class RunProgress {
 public:
  explicit RunProgress(bool quiet) : line_(quiet) {}
  bool shown() const { return line_.shown(); }
  void operator()(const SimProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    if (passed < 0.5) return;
    const double events = static_cast<double>(progress.events - last_events_) / passed;
    std::string left;
    if (const double seconds = seconds_left(progress, passed); seconds < kSecondsShown)
      left = fmt::format("  {:.0f} s left", seconds);
    line_.show(fmt::format("sim  {}  {} of {} workloads  {:.2f} M events/s{}", report_value("now_ns", progress.now),
                           progress.finished, progress.workloads, events / 1e6, left));
    last_ = now;
    last_events_ = progress.events;
    last_now_ = progress.now;
  }

 private:
  static constexpr double kSecondsShown = 1e9;
  // What ends first: the run's time, at the speed of now, or what workloads have to carry, at that of the whole run.
  double seconds_left(const SimProgress& progress, double passed) const {
    double seconds = kSecondsShown;
    if (progress.limit > 0 && progress.now > last_now_)
      seconds =
          static_cast<double>(progress.limit - progress.now) / static_cast<double>(progress.now - last_now_) * passed;
    const auto& [bytes, all] = progress.carried;
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - begun_;
    return bytes > 0 ? std::min(seconds, std::max(0.0, all - bytes) / bytes * so_far.count()) : seconds;
  }

  ProgressLine line_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), last_ = begun_;
  std::uint64_t last_events_ = 0;
  Nanos last_now_ = 0;
};

// What a person reads of hundreds of devices: what they came to. What was at each time is for figures.
Json without_devices(Json report, bool full) {
  report.erase("series");
  const std::size_t devices = report["devices"].size();
  if (full || devices <= kSimDevicesShown) return report;
  report["run"]["devices"] = devices;
  report["run"]["links"] = report.contains("links") ? report["links"].size() : 0;
  report.erase("devices");
  report.erase("links");
  return report;
}

}  // namespace

config::RunConfig load_sim(const SimArguments& arguments, Registry& registry) {
  const std::string file = shown_file(arguments.config);
  config::Mistakes mistakes(file);
  config::RunConfig config =
      config::load(arguments.config, registry, mistakes, config::Pipes::kTaken, settings_of(arguments.settings));
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  if (!arguments.seed.empty()) config.seed = seed_of(arguments.seed);
  for (const config::CaptureBinding& binding : config.captures)
    if (!binding.in.empty())
      throw ConfigError(fmt::format("{}: port `{}` reads a capture, which only `rocebox replay` and `rocebox run` do",
                                    config.place_text(binding.place), binding.port.text()));
  if (config.workloads.empty() && config.sim.time == 0)
    throw ConfigError(file + ": nothing says when the run ends: give `workloads:`, or `sim: {time: ...}`");
  return config;
}

int sim(const SimArguments& arguments) {
  for (const auto& [option, number, most] :
       {std::tuple("--seeds", arguments.seeds, kSeedsMax), {"--jobs", arguments.jobs, kJobsMax}})
    if (number < 1 || number > most)
      throw ConfigError(fmt::format("{} {}: must be from 1 to {}", option, number, most));
  if (!arguments.sweeps.empty() || arguments.seeds > 1) return sweep(arguments);
  if (Ranks::started() > 1)
    throw ConfigError(
        "mpirun deals out the runs of a sweep: give --sweep or --seeds, or start a single run without it");
  if (!arguments.plot.empty()) require_plots();
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config = load_sim(arguments, registry);
  if (!arguments.notes_told) tell_placed(config.notes);
  const bool capture_on_stdout = std::any_of(config.captures.begin(), config.captures.end(),
                                             [](const auto& b) { return is_standard_output(b.out); });
  const bool json_on_stdout = is_standard_output(arguments.json);
  RunProgress progress(arguments.report.quiet);
  SimOptions options;
  options.trace = arguments.trace;
  options.outputs = {{}, arguments.json, !capture_on_stdout && !json_on_stdout};
  options.outputs.traces = trace_files(arguments.trace, arguments.trace_outs, options.outputs.text_to_stdout);
  if (progress.shown()) options.progress = [&progress](const SimProgress& how_far) { progress(how_far); };
  RunFiles files(config);
  files.writes(options.outputs);
  for (const std::string* folder : {&arguments.csv, &arguments.plot}) {
    if (folder->empty() || (folder == &arguments.plot && arguments.plot == arguments.csv)) continue;
    for (const std::string& file : table_files(*folder)) files.writes(file, "a table");
  }
  if (!arguments.plot.empty()) files.writes(plotted_report(arguments.plot), "the report beside the figures");
  check_files(files);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing: what is half done is cleared away
  std::optional<EndSignals> signals(std::in_place);
  options.stop = &signals->asked();
  options.outputs.stop = signals->asked().descriptor();
  keep_large_blocks_apart();
  start_for(config);
  Pool pool = make_pool(config);
  Sim run(config, pool, std::move(options));
  if (arguments.only_check) return 0;
  if (!arguments.csv.empty()) make_folder("--csv", arguments.csv);
  if (!arguments.plot.empty()) make_folder("--plot", arguments.plot);
  run.open();
  use_huge_pages_for_heap();  // where hundreds of devices take turns
  packets_flow();
  run.run();

  signals.reset();
  std::signal(SIGPIPE, SIG_DFL);
  for (const std::string& line : run.warnings()) tell(line);
  if (!json_on_stdout)
    print_report(without_devices(run.report(), arguments.report.full), capture_on_stdout ? stderr : stdout,
                 arguments.report);
  tell_placed(run.failures());
  const Transfers transfers = [&run](const auto& each) { run.for_each_transfer(each); };
  if (!arguments.csv.empty()) write_tables(run.report(), transfers, arguments.csv);
  if (!arguments.plot.empty()) write_plots(run.report(), transfers, arguments.plot);
  return run.succeeded() && !run.interrupted() ? 0 : 1;
}

}  // namespace rocebox::cli
