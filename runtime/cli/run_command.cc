// SPDX-License-Identifier: BSD-3-Clause
// `rocebox run`: live traffic through a configuration, until a signal or for a stated time.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <stdexcept>

#include "runtime/cli/commands.h"
#include "runtime/cli/no_memory.h"
#include "runtime/cli/notify.h"
#include "runtime/cli/reloader.h"
#include "runtime/cli/run_observers.h"
#include "runtime/cli/signals.h"
#include "runtime/config/printable.h"
#include "runtime/config/units.h"
#include "runtime/drives/live/live.h"
#include "runtime/drives/live/recorder_endpoints.h"
#include "runtime/drives/output_file.h"
#include "runtime/packet/eal.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

// How often it is looked at whether the captures have ended, or an interface is gone.
constexpr Nanos kLook = 10 * kMillisecond;

// The configuration as the command line changes it. Throws ConfigError.
config::RunConfig load_for_run(const RunArguments& arguments, Registry& registry) {
  config::RunConfig config = load_or_throw(arguments.config, registry);
  for (const std::string& port : arguments.ports) config::bind_port(config, port);
  config::Mistakes mistakes(config.file);
  refuse_shared_interfaces(config, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  if (!arguments.seed.empty()) config.seed = seed_of(arguments.seed);
  return config;
}

// Until a signal ends the run, or its time is over; or captures have ended or failed, which nothing tells of.
void serve(const RunArguments& arguments, Nanos duration, Signals& signals, Live& live, ServiceManager& manager,
           const std::string& status, const config::RunConfig& config) {
  const auto load = [&] {
    Registry registry = make_registry(arguments.plugins);
    return load_for_run(arguments, registry);
  };
  Reloader reloader(live, config, load, [&](bool begins) {
    begins ? manager.reloading("the configuration is read again") : manager.ready(status);
  });
  const Clock clock;
  const Nanos end = duration < 0 ? -1 : clock.now() + duration;
  const bool waits = config.captures.empty() && config.live.port_lost == config::PortLost::kWait;
  const Nanos look = waits ? INT64_MAX : kLook;
  while (!live.ended() && live.failed().empty() && live.lost().empty()) {
    const Nanos left = end < 0 ? INT64_MAX : end - clock.now();
    if (left <= 0) return;
    const int signal = signals.wait(std::min(left, look) == INT64_MAX ? -1 : std::min(left, look));
    if (signal == 0) continue;  // the signals by which DPDK's TAP driver is told of packets end a wait, too
    if (signal != SIGHUP) return;
    (void)reloader.reload();
  }
}

// The trace that the command line asks for; empty without one. Throws ConfigError.
std::optional<RecordingRequest> trace_request(const RunArguments& arguments, const config::RunConfig& config,
                                              bool text_to_stdout) {
  RecordingRequest request;
  request.trace = true;
  request.filter = arguments.trace;
  request.files = trace_files(arguments.trace, arguments.trace_outs, text_to_stdout);
  if (arguments.trace.empty()) return {};
  const TraceFilter checked(arguments.trace);
  std::vector<std::string> others = {arguments.json};
  for (const config::CaptureBinding& binding : config.captures) others.push_back(binding.out);
  for (const std::string& file : request.files)
    for (const std::string& other : others)
      if (const std::string key = file_key(file, STDOUT_FILENO);
          !other.empty() && !key.empty() && key == file_key(other, STDOUT_FILENO))
        throw ConfigError(fmt::format("{}: would be the trace and is {}; an output must be a file of its own",
                                      is_dash(file) ? "standard output" : file,
                                      other == arguments.json ? "the JSON report" : "a port's capture"));
  return request;
}

}  // namespace

int run(const RunArguments& arguments) {
  Nanos duration = -1;
  if (!arguments.duration.empty()) {
    const auto parsed = config::parse_duration(arguments.duration);
    if (!parsed) throw ConfigError(fmt::format("--duration {}: write such as 10s", arguments.duration));
    duration = *parsed;
  }
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config = load_for_run(arguments, registry);
  const std::vector<unsigned> cores = choose_cores(arguments.cores, config.live);
  for (const config::DeviceConfig& device : config.devices)
    if (cores.size() > 1 && device.kind == config::DeviceKind::kSwitch)
      throw ConfigError(
          fmt::format("{}:{}:{}: device `{}` is a switch, whose tables and buffer are one: it runs on one "
                      "core, and {} were asked for",
                      config.file, device.place.line, device.place.column, device.name, cores.size()));
  Signals signals({SIGINT, SIGTERM, SIGHUP});  // of this thread alone: the cores are not to be disturbed
  EalOptions eal = live_options(config, cores);
  eal.hugepages = true;
  eal.more = arguments.eal;
  for (const config::LiveBinding& binding : config.live_ports)
    if (binding.live.kind == config::PortKind::kPci) eal.pci.push_back(binding.live.pci);
  // As in replay: standard output belongs to a capture or to the JSON when one of them asks for it.
  const bool capture_on_stdout = std::any_of(config.captures.begin(), config.captures.end(),
                                             [](const auto& b) { return is_standard_output(b.out); });
  const bool json_on_stdout = is_standard_output(arguments.json);
  const auto trace = trace_request(arguments, config, !capture_on_stdout && !json_on_stdout);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing
  RunObservers observers(arguments, config);
  observers.add_to(eal);
  start_eal(eal);
  Pool pool = make_pool(config);
  Live live(config, pool, cores, {{}, arguments.json, !capture_on_stdout && !json_on_stdout});
  Expectations expectations;
  expectations.read(config, live.report());
  for (const config::PortName& port : config::unbound_ports(config))
    tell(fmt::format("port `{}` is bound to nothing; what leaves there is dropped (drop_unbound)", port.text()));
  live.claim_interfaces(observers.name());
  Recorder recorder(live, config);
  if (trace) recorder.start(*trace);
  const RunObservers::Watch watch(live, observers);
  const RecorderEndpoints endpoints(recorder);
  packets_flow();
  live.start();
  const std::string name = observers.name().empty() ? "" : observers.name() + ": ";
  const std::string status =
      fmt::format("{}{}: {} port(s), {} shard(s) on core(s) {}, memory in {}{}", name, arguments.config,
                  config.live_ports.size() + config.captures.size(), cores.size(), fmt::join(cores, ","),
                  eal_has_hugepages() ? "hugepages" : "ordinary pages", observers.metrics_text());
  if (!arguments.report.quiet) fmt::print(stderr, "rocebox run {}\n", config::printable(status));
  live.watch_links();
  ServiceManager manager;
  manager.ready(status);
  serve(arguments, duration, signals, live, manager, status, config);
  manager.stopping("what is held leaves");
  live.stop();
  recorder.finish();
  if (const std::string why = live.failed(); !why.empty()) throw std::runtime_error(why);
  Json report = live.report();
  const Json recordings = recorder.list();
  if (!recordings.empty()) report["recordings"] = recordings;
  expectations.add_to(report);
  live.publish(report);
  std::signal(SIGPIPE, SIG_DFL);
  if (!json_on_stdout) print_report(report, capture_on_stdout ? stderr : stdout, arguments.report);
  for (const Json& row : recordings)  // the first is the command line's
    if (trace && row["id"] == 1 && row.contains("error")) throw std::runtime_error(row["error"].get<std::string>());
  if (const std::string why = live.lost(); !why.empty()) throw std::runtime_error(why);
  const std::vector<std::string> failures = expectations.failures(report);
  tell_placed(failures);
  return failures.empty() ? 0 : 1;
}

}  // namespace rocebox::cli
