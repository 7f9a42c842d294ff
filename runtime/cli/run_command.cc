// SPDX-License-Identifier: BSD-3-Clause
// `rocebox run`: live traffic through a configuration, until a signal or for a stated time.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "runtime/capture/output_file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/notify.h"
#include "runtime/cli/reloader.h"
#include "runtime/cli/run_observers.h"
#include "runtime/config/printable.h"
#include "runtime/config/units.h"
#include "runtime/drives/live/live.h"
#include "runtime/drives/live/recorder_endpoints.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/process/eal.h"
#include "runtime/process/no_memory.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

// How often it is looked at whether the captures have ended, or an interface is gone.
constexpr Nanos kLook = 10 * kMillisecond;

// The configuration as the command line changes it. Throws ConfigError.
config::RunConfig change(const RunArguments& arguments, config::RunConfig config) {
  refuse_virtual(config, true);
  for (const std::string& port : arguments.ports) config::bind_port(config, port);
  config::Mistakes mistakes = config.further_mistakes();
  refuse_shared_interfaces(config, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  if (!arguments.seed.empty()) config.seed = seed_of(arguments.seed);
  return config;
}

// All that the run reads and writes.
RunFiles files_of(const RunArguments& arguments, const config::RunConfig& config, const ExtraOutputs& outputs,
                  const std::vector<std::string>& traces) {
  RunFiles files(config);
  files.writes(outputs);
  files.writes(ExtraOutputs{traces, {}, false});
  for (const std::string& word : arguments.eal) files.add_devargs(word);
  return files;
}

// What a running configuration is replaced by. Throws ConfigError.
config::RunConfig load_again(const RunArguments& arguments, const config::RunConfig& running) {
  if (running.origin == config::ConfigOrigin::kPipe)
    throw ConfigError(running.file +
                      ": came through a pipe, which cannot be read again; start with a file to reload it");
  if (running.origin == config::ConfigOrigin::kArguments)
    throw ConfigError(
        "the configuration stands in the command line, which does not change; start with a file to reload it");
  Registry registry = make_registry(arguments.plugins);
  return change(arguments, load_or_throw(arguments.config, registry, config::Pipes::kRefused));
}

void tell_of_reload(ServiceManager& manager, bool begins, const std::string& status) {
  if (begins)
    manager.reloading("the configuration is read again");
  else
    manager.ready(status);
}

// Until a signal ends the run, or its time is over; or captures or workloads have ended, or captures failed, which
// nothing tells of.
void serve(Nanos duration, Signals& reloads, const StopRequest& ended, Live& live, Reloader& reloader,
           bool look_often) {
  const Clock clock;
  const Nanos end = duration < 0 ? -1 : clock.now() + duration;
  const Nanos look = look_often ? kLook : INT64_MAX;
  while (!live.ended() && live.failed().empty() && live.lost().empty() && !ended.requested()) {
    const Nanos left = end < 0 ? INT64_MAX : end - clock.now();
    if (left <= 0) return;
    // The signals by which DPDK's TAP driver is told of packets end a wait, too.
    if (reloads.wait(std::min(left, look) == INT64_MAX ? -1 : std::min(left, look), ended.descriptor()) == SIGHUP)
      (void)reloader.reload();
  }
}

// The trace that the command line asks for; empty without one. Throws ConfigError.
std::optional<RecordingRequest> trace_request(const RunArguments& arguments, bool text_to_stdout, int stop) {
  RecordingRequest request;
  request.trace = true;
  request.filter = arguments.trace;
  request.files = trace_files(arguments.trace, arguments.trace_outs, text_to_stdout);
  request.of_command_line = true;
  request.stop = stop;
  if (arguments.trace.empty()) return {};
  const TraceFilter checked(arguments.trace);
  return request;
}

// -1 without one. Throws ConfigError.
Nanos duration_of(const RunArguments& arguments) {
  if (arguments.duration.empty()) return -1;
  const auto parsed = config::parse_duration(arguments.duration);
  if (!parsed) throw ConfigError(fmt::format("--duration {}: write such as 10s", arguments.duration));
  return *parsed;
}

void require_one_core(const config::RunConfig& config, const std::vector<unsigned>& cores) {
  for (const config::DeviceConfig& device : config.devices)
    if (cores.size() > 1 && device.whole() && device.whole()->one_core_because())
      throw ConfigError(fmt::format("{}: device `{}` is a {}, {}: it runs on one core, and {} were asked for",
                                    config.place_text(device.place), device.name, device.kind->name,
                                    device.whole()->one_core_because(), cores.size()));
}

EalOptions eal_options(const RunArguments& arguments, const config::RunConfig& config,
                       const std::vector<unsigned>& cores) {
  EalOptions eal = live_options(config, cores);
  eal.hugepages = true;
  eal.more = arguments.eal;
  for (const config::LiveBinding& binding : config.live_ports)
    if (binding.live.kind == config::PortKind::kPci) eal.pci.push_back(binding.live.pci);
  return eal;
}

std::string status_line(const config::RunConfig& config, const std::vector<unsigned>& cores,
                        const RunObservers& observers) {
  const std::string name = observers.name().empty() ? "" : observers.name() + ": ";
  return fmt::format("{}{}: {} port(s), {} shard(s) on core(s) {}, memory in {}{}", name, config.file,
                     config.live_ports.size() + config.captures.size(), cores.size(), fmt::join(cores, ","),
                     eal_has_hugepages() ? "hugepages" : "ordinary pages", observers.metrics_text());
}

void start(const EalOptions& eal, EndSignals& signals) {
  start_eal(eal);
  signals.share_cores();
}

// What standard output belongs to. As in replay: to a capture or to the JSON when one of them asks for it.
struct StandardOutput {
  StandardOutput(const RunArguments& arguments, const config::RunConfig& config)
      : is_capture(std::ranges::any_of(config.captures, [](const auto& b) { return is_standard_output(b.out); })),
        is_json(is_standard_output(arguments.json)) {}
  bool has_text() const { return !is_capture && !is_json; }

  bool is_capture, is_json;
};

// The end of a run, once all that it had to say is in `report`. Returns the exit status.
int tell_end(const RunArguments& arguments, const Json& report, const Expectations& expectations,
             const StandardOutput& standard_output) {
  if (!standard_output.is_json) print_report(report, standard_output.is_capture ? stderr : stdout, arguments.report);
  std::vector<std::string> failures = expectations.failures(report);
  std::ranges::move(failed_workloads(report, expectations), std::back_inserter(failures));
  tell_placed(failures);
  for (const Json& row : report.value("recordings", Json::array()))  // the first is the command line's
    if (!arguments.trace.empty() && row["id"] == 1 && row.contains("error"))
      throw std::runtime_error(row["error"].get<std::string>());
  return failures.empty() ? 0 : 1;
}

}  // namespace

int run(const RunArguments& arguments) {
  const Nanos duration = duration_of(arguments);
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config = change(arguments, load_or_throw(arguments.config, arguments.line, registry,
                                                             "--between A B -- KERNEL [OPTION=VALUE]..."));
  tell_placed(config.notes);
  const std::vector<unsigned> cores = choose_cores(arguments.cores, config.live);
  require_one_core(config, cores);
  Signals reloads({SIGHUP});
  std::optional<EndSignals> signals(std::in_place);
  const StopRequest& ended = signals->asked();
  EalOptions eal = eal_options(arguments, config, cores);
  const StandardOutput standard_output(arguments, config);
  const ExtraOutputs outputs{{}, arguments.json, standard_output.has_text(), ended.descriptor()};
  const auto trace = trace_request(arguments, standard_output.has_text(), ended.descriptor());
  const std::vector<std::string> traces = trace ? trace->files : std::vector<std::string>();
  check_files(files_of(arguments, config, outputs, traces));
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing
  RunObservers observers(arguments, config);
  observers.add_to(eal);
  start(eal, *signals);
  Pool pool = make_pool(config, true);
  Live live(config, pool, cores, outputs);
  Expectations expectations;
  expectations.read(config, live.report());
  for (const config::PortName& port : config::unbound_ports(config))
    tell(fmt::format("port `{}` is bound to nothing; what leaves there is dropped (drop_unbound)", port.text()));
  live.claim_interfaces(observers.name());
  Recorder recorder(live, config);
  recorder.spare(files_of(arguments, config, outputs, traces));
  if (trace) recorder.start(*trace);
  const RunObservers::Watch watch(live, observers);
  const RecorderEndpoints endpoints(recorder);
  packets_flow();
  live.start();
  live.see_links();  // before it is said to run: who hears that may set one down
  const std::string status = status_line(config, cores, observers);
  if (!arguments.report.quiet) fmt::print(stderr, "rocebox run {}\n", config::printable(status));
  live.watch_links();
  ServiceManager manager;
  manager.ready(status);
  {
    const auto load = [&] {
      config::RunConfig next = load_again(arguments, config);
      const RunFiles files = files_of(arguments, next, outputs, traces);
      files.check();
      recorder.spare(files);
      return next;
    };
    Reloader reloader(live, config, load, [&](bool begins) { tell_of_reload(manager, begins, status); });
    serve(duration, reloads, ended, live, reloader,
          !config.captures.empty() || !config.workloads.empty() || config.live.port_lost != config::PortLost::kWait);
  }
  manager.stopping("what is held leaves");
  live.stop();
  recorder.finish();
  if (const std::string why = live.failed(); !why.empty()) throw std::runtime_error(why);
  Json report = live.report();
  if (const Json recordings = recorder.list(); !recordings.empty()) report["recordings"] = recordings;
  expectations.add_to(report);
  live.publish(report);
  signals.reset();
  std::signal(SIGPIPE, SIG_DFL);
  const int exit_status = tell_end(arguments, report, expectations, standard_output);
  if (const std::string why = live.lost(); !why.empty()) throw std::runtime_error(why);
  return exit_status;
}

}  // namespace rocebox::cli
