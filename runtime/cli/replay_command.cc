// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "runtime/cli/commands.h"
#include "runtime/drives/replay.h"
#include "runtime/packet/eal.h"

namespace rocebox::cli {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

// The binding of a port, made when the configuration has none.
config::CaptureBinding& binding_of(config::RunConfig& config, std::string_view option, const std::string& argument,
                                   std::string& file) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals + 1 == argument.size())
    throw ConfigError(fmt::format("{} {}: write PORT=FILE", option, argument));
  file = argument.substr(equals + 1);
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

void apply(const ReplayArguments& arguments, config::RunConfig& config) {
  std::vector<std::string> cleared;
  for (const std::string& argument : arguments.in) {
    std::string file;
    config::CaptureBinding& binding = binding_of(config, "--in", argument, file);
    const std::string name = binding.port.text();
    if (std::find(cleared.begin(), cleared.end(), name) == cleared.end()) {
      binding.in.clear();
      cleared.push_back(name);
    }
    binding.in.push_back(file);
  }
  for (const std::string& argument : arguments.out) {
    std::string file;
    binding_of(config, "--out", argument, file).out = file;
  }
  if (arguments.seed) config.seed = *arguments.seed;
  if (std::all_of(config.captures.begin(), config.captures.end(), [](const auto& b) { return b.in.empty(); }))
    throw ConfigError(fmt::format(
        "{}: no port has a capture to read: give `ports: {{PORT: {{pcap: {{in: FILE}}}}}}` or --in PORT=FILE",
        config.file));
}

// Percent and packets on a terminal, twice a second; silent in a pipe.
class Progress {
 public:
  Progress() : shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_ && printed_) std::fputs("\r\033[K", stderr);
  }
  void operator()(std::uint64_t done, std::uint64_t all, std::uint64_t packets) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(500)) return;
    last_ = now;
    printed_ = true;
    const std::string share = all ? fmt::format("{:3}%  ", std::min<std::uint64_t>(100, done * 100 / all)) : "";
    fmt::print(stderr, "\r\033[Kreplay  {}{} packets", share, packets);
    std::fflush(stderr);
  }

 private:
  bool shown_, printed_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Names of files may hold any bytes; JSON holds UTF-8.
std::string dumped(const Json& report) { return report.dump(2, ' ', false, Json::error_handler_t::replace); }

// A file that is complete or not there at all, like the captures.
class JsonFile {
 public:
  explicit JsonFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    if (path_.empty() || path_ == "-") return;
    file_ = std::fopen(part_.c_str(), "w");
    if (!file_) throw ConfigError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
  ~JsonFile() {
    if (file_) std::fclose(file_), unlink(part_.c_str());
  }
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;
  void write(const Json& report) {
    if (!file_) return;
    const std::string text = dumped(report) + "\n";
    bool good = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    good &= std::fclose(std::exchange(file_, nullptr)) == 0;
    good = good && std::rename(part_.c_str(), path_.c_str()) == 0;
    if (good) return;
    const std::string why = std::strerror(errno);
    unlink(part_.c_str());
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", path_, why));
  }

 private:
  std::string path_, part_;
  std::FILE* file_ = nullptr;
};

void print_text(Json report, std::FILE* stream) {
  const std::string head = fmt::format("rocebox {} {}   seed {}\n\n", report["command"].get<std::string>(),
                                       report["config"].get<std::string>(), report["seed"].get<std::int64_t>());
  const std::string hash = report["hash"];
  for (const char* key : {"schema_version", "command", "config", "seed", "hash"}) report.erase(key);
  const std::string text = head + report_text(report) + "\nhash of all that left  " + hash + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0)
    throw std::runtime_error(fmt::format("the report cannot be written: {}", std::strerror(errno)));
}

}  // namespace

int replay(const ReplayArguments& arguments) {
  if (arguments.trace.empty() && !arguments.trace_outs.empty()) throw ConfigError("--trace-out needs --trace FILTER");
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config = load_or_throw(arguments.config, registry);
  apply(arguments, config);
  start_eal(config.pool.mebibytes());
  Pool pool(config.pool);
  // Standard output belongs to a capture or to the JSON when one of them asks for it; the text then goes to stderr.
  const bool capture_on_stdout =
      std::any_of(config.captures.begin(), config.captures.end(), [](const auto& b) { return b.out == "-"; });
  if (capture_on_stdout && arguments.json == "-") throw ConfigError("--json -: standard output is taken by a capture");
  std::FILE* text = capture_on_stdout || arguments.json == "-" ? stderr : stdout;
  JsonFile json(arguments.json);
  Progress progress;

  ReplayOptions options;
  options.trace = arguments.trace;
  options.trace_outs = arguments.trace_outs;
  options.trace_text = text;
  options.stop = &stop_requested;
  options.progress = [&progress](std::uint64_t done, std::uint64_t all, std::uint64_t packets) {
    progress(done, all, packets);
  };
  Replay run(config, pool, std::move(options));
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = true; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  run.run();

  const Json report = run.report();
  json.write(report);
  if (arguments.json == "-")
    fmt::print("{}\n", dumped(report));
  else
    print_text(report, text);
  return run.expectations_hold() && !stop_requested ? 0 : 1;
}

}  // namespace rocebox::cli
