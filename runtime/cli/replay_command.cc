// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/progress_line.h"
#include "runtime/config/units.h"
#include "runtime/drives/replay.h"
#include "runtime/process/no_memory.h"
#include "runtime/process/signals.h"

namespace rocebox::cli {
namespace {

// The binding of a port, made when the configuration has none.
config::CaptureBinding& binding_of(config::RunConfig& config, std::string_view option, const std::string& argument,
                                   std::string& value) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals + 1 == argument.size())
    throw ConfigError(fmt::format("{} {}: write PORT={}", option, argument, option == "--filter" ? "FILTER" : "FILE"));
  value = argument.substr(equals + 1);
  config::PortName port;
  std::string why;
  if (!config::resolve_port(config, argument.substr(0, equals), port, why))
    throw ConfigError(fmt::format("{} {}: {}", option, argument, why));
  for (const config::LinkConfig& link : config.links)
    if (link.between[0] == port || link.between[1] == port)
      throw ConfigError(fmt::format("{} {}: the port is joined by link `{}`", option, argument, link.name));
  for (config::CaptureBinding& binding : config.captures)
    if (binding.port == port) return binding;
  config.captures.push_back({port, {}, "", ""});
  return config.captures.back();
}

// Whether it is PORT=FILE: a file alone may have `=` in its name, too.
bool names_port(const config::RunConfig& config, const std::string& argument) {
  config::PortName port;
  std::string why;
  return argument.find('=') != std::string::npos &&
         config::resolve_port(config, argument.substr(0, argument.find('=')), port, why);
}

// Options that say something of a port's captures, in place of what the configuration says.
void apply_captures(const ReplayArguments& arguments, config::RunConfig& config) {
  std::vector<std::string> replaced, given_out, given_filter;
  const auto is_new = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return false;
    names.push_back(name);
    return true;
  };
  std::string value;
  for (const std::string& argument : arguments.in) {
    config::CaptureBinding& binding = binding_of(config, "--in", argument, value);
    if (is_new(replaced, binding.port.text())) {
      // The configuration's filter was written for its own file: hosts that another one need not have.
      binding.in.clear();
      binding.filter.clear();
      binding.in_place = "--in " + binding.port.text();
    }
    binding.in.push_back(value);
  }
  for (const std::string& argument : arguments.filters) {
    config::CaptureBinding& binding = binding_of(config, "--filter", argument, value);
    if (!is_new(given_filter, binding.port.text()))
      throw ConfigError(fmt::format("--filter {}: the port has a filter already; join them with `or`", argument));
    if (binding.in.empty())
      throw ConfigError(fmt::format("--filter {}: port `{}` has no input; give --in", argument, binding.port.text()));
    binding.filter = value;
    binding.filter_place = "--filter " + binding.port.text();
  }
  for (const std::string& written : arguments.out) {
    const std::string argument = arguments.line.given() && !names_port(config, written) ? "b=" + written : written;
    config::CaptureBinding& binding = binding_of(config, "--out", argument, value);
    if (!is_new(given_out, binding.port.text()))
      throw ConfigError(fmt::format("--out {}: what leaves by port `{}` goes to `{}` already", argument,
                                    binding.port.text(), binding.out));
    binding.out = value;
  }
}

// Whether packets come although none is read.
bool makes_packets(const config::RunConfig& config) {
  return std::any_of(config.devices.begin(), config.devices.end(), [](const config::DeviceConfig& device) {
    return std::ranges::any_of(device.kernels, [](const auto& kernel) { return kernel.options->makes_packets(); });
  });
}

void apply(const ReplayArguments& arguments, config::RunConfig& config) {
  apply_captures(arguments, config);
  if (!arguments.seed.empty()) config.seed = seed_of(arguments.seed);
  if (makes_packets(config)) return;
  if (std::all_of(config.captures.begin(), config.captures.end(), [](const auto& b) { return b.in.empty(); }))
    throw ConfigError(fmt::format(
        "{}: no port has a capture to read: give `ports: {{PORT: {{pcap: {{in: FILE}}}}}}` or --in PORT=FILE",
        config.file));
}

// Percent and packets on a terminal, twice a second; silent in a pipe.
class Progress {
 public:
  explicit Progress(bool quiet) : line_(quiet) {}
  void operator()(std::uint64_t done, std::uint64_t all, std::uint64_t packets) {
    const auto now = std::chrono::steady_clock::now();
    if (!line_.shown() || now - last_ < std::chrono::milliseconds(500)) return;
    last_ = now;
    const std::string share = all ? fmt::format("{:3}%  ", std::min<std::uint64_t>(100, done * 100 / all)) : "";
    line_.show(fmt::format("replay  {}{} packets", share, packets));
  }

 private:
  ProgressLine line_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

int replay(const ReplayArguments& arguments) {
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config =
      load_or_throw(arguments.config, arguments.line, registry, "--from FILE -- KERNEL [OPTION=VALUE]...");
  refuse_virtual(config, false);
  tell_placed(config.notes);
  apply(arguments, config);
  // Standard output belongs to a capture or to the JSON when one of them asks for it; the text then goes to stderr.
  const bool capture_on_stdout = std::any_of(config.captures.begin(), config.captures.end(),
                                             [](const auto& b) { return is_standard_output(b.out); });
  const bool json_on_stdout = is_standard_output(arguments.json);

  Progress progress(arguments.report.quiet);
  ReplayOptions options;
  options.trace = arguments.trace;
  options.outputs = {{}, arguments.json, !capture_on_stdout && !json_on_stdout};
  options.outputs.traces = trace_files(arguments.trace, arguments.trace_outs, options.outputs.text_to_stdout);
  options.progress = [&progress](std::uint64_t done, std::uint64_t all, std::uint64_t packets) {
    progress(done, all, packets);
  };
  RunFiles files(config);
  files.writes(options.outputs);
  check_files(files);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing: what is half done is cleared away
  std::optional<EndSignals> signals(std::in_place);
  options.stop = &signals->asked();
  options.outputs.stop = signals->asked().descriptor();
  start_for(config);
  Pool pool = make_pool(config);
  Replay run(config, pool, std::move(options));
  run.open();
  packets_flow();
  run.run();

  signals.reset();
  std::signal(SIGPIPE, SIG_DFL);  // all outputs have their names: `| head` may end the text
  for (const std::string& line : run.warnings()) tell(line);
  if (!json_on_stdout) print_report(run.report(), capture_on_stdout ? stderr : stdout, arguments.report);
  tell_placed(run.failures());
  return run.succeeded() && !run.interrupted() ? 0 : 1;
}

}  // namespace rocebox::cli
