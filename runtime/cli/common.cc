// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/capture/capture_writer.h"
#include "runtime/cli/commands.h"
#include "runtime/config/printable.h"
#include "runtime/config/units.h"
#include "runtime/drives/tracer.h"
#include "runtime/process/eal.h"
#include "runtime/process/file_place.h"
#include "runtime/process/memory.h"

namespace rocebox::cli {
namespace {

constexpr unsigned short kColumnsMin = 60;  // of a terminal that a report is laid out for

constexpr std::uint64_t kPortMebibytes = 64;  // of a live run, for what drivers need

void require_memory(const config::RunConfig& config) {
  try {
    config.pool.require_memory(available_memory_bytes());
  } catch (const ConfigError& error) {
    throw ConfigError(config.file + ": " + error.what());
  }
}

}  // namespace

Registry make_registry(const std::vector<std::string>& plugins) {
  Registry registry;
  for (const std::string& plugin : plugins) registry.load_plugin(plugin);
  return registry;
}

config::RunConfig load_or_throw(const std::string& path, Registry& registry, config::Pipes pipes) {
  config::Mistakes mistakes(shown_file(path));
  config::RunConfig config = config::load(path, registry, mistakes, pipes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  return config;
}

std::vector<config::Setting> settings_of(const std::vector<std::string>& texts) {
  std::vector<config::Setting> settings;
  for (const std::string& text : texts) settings.push_back(config::parse_setting(text, "--set"));
  return settings;
}

void refuse_virtual(const config::RunConfig& config, bool live) {
  if (!live && !config.workloads.empty())
    throw ConfigError(
        fmt::format("{}: workload `{}` needs hosts that act: give the configuration to `rocebox sim` or "
                    "`rocebox run`",
                    config.place_text(config.workloads[0].place), config.workloads[0].name));
  if (!config.schedule.empty())
    throw ConfigError(fmt::format("{}: what `schedule:` changes has its time in `rocebox sim` only{}",
                                  config.place_text(config.schedule[0].place),
                                  live ? "; a live run takes over what changes by `rocebox reload`" : ""));
  for (const config::CaptureBinding& binding : config.captures)
    if (live && binding.joined)
      throw ConfigError(
          fmt::format("{}: port `{}` is joined by a link, where only `rocebox sim` and `rocebox replay` "
                      "can capture",
                      config.place_text(binding.place), binding.port.text()));
}

void start_for(const config::RunConfig& config) {
  require_memory(config);
  const std::uint64_t apart = config.pool.packet_mebibytes();
  start_eal({.mebibytes = config::eal_mebibytes(config) - apart, .apart_mebibytes = apart});
}

EalOptions live_options(const config::RunConfig& config, const std::vector<unsigned>& cores) {
  require_memory(config);
  return {.mebibytes = config::eal_mebibytes(config) + kPortMebibytes, .cores = cores};
}

Pool make_pool(const config::RunConfig& config, bool for_ports) {
  const bool af_xdp = std::any_of(config.live_ports.begin(), config.live_ports.end(),
                                  [](const auto& binding) { return binding.live.kind == config::PortKind::kAfXdp; });
  try {
    return Pool(config.pool, !for_ports ? PacketsInMemory::kAlone
                             : af_xdp   ? PacketsInMemory::kByPages
                                        : PacketsInMemory::kPacked);
  } catch (const ConfigError& error) {
    throw ConfigError(config.file + ": " + error.what());
  }
}

config::RunConfig load_or_throw(const std::string& path, const config::OneLine& line, Registry& registry,
                                const std::string& how) {
  if (path.empty() && !line.given()) throw ConfigError(fmt::format("give a configuration, or {}", how));
  if (!path.empty() && line.given())
    throw ConfigError(fmt::format("{}: a configuration, and {} too: give one of both", shown_file(path),
                                  line.from.empty() ? "--between" : "--from"));
  if (!line.from.empty() && !line.between.empty()) throw ConfigError("--between and --from: give one of both");
  return line.given() ? config::load_one_line(line, registry) : load_or_throw(path, registry, config::Pipes::kTaken);
}

void check_files(const RunFiles& files) {
  files.check();
  for (const std::string& line : files.left_behind()) tell(line);
}

std::vector<std::string> trace_files(const std::string& filter, const std::vector<std::string>& named,
                                     bool text_to_stdout) {
  if (filter.empty() && !named.empty()) throw ConfigError("--trace-out needs --trace FILTER");
  std::vector<std::string> files = named;
  std::for_each(files.begin(), files.end(), check_trace_file);
  const bool has_text = std::any_of(files.begin(), files.end(), [](const auto& file) { return !is_pcapng_name(file); });
  if (!filter.empty() && !has_text) files.emplace_back(text_to_stdout ? "-" : "/dev/stderr");
  return files;
}

std::int64_t seed_of(const std::string& text) {
  const std::optional<std::int64_t> seed = config::parse_integer(text);
  if (!seed || *seed < 0) throw ConfigError(fmt::format("--seed {}: must be an integer from 0 to {}", text, INT64_MAX));
  return *seed;
}

void tell(std::string_view text) { fmt::print(stderr, "rocebox: {}\n", config::printable_lines(text)); }
void tell_placed(std::string_view lines) { fmt::print(stderr, "{}\n", config::printable_lines(lines)); }
void tell_placed(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) tell_placed(line);
}

void print_line(std::string_view text) { fmt::print("{}\n", config::printable(text)); }
void print_lines(std::string_view text) { fmt::print("{}", config::printable_lines(text)); }

bool shows_colors(std::FILE* stream) {
  const char *off = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return isatty(fileno(stream)) && (!off || !*off) && terminal && std::string_view(terminal) != "dumb";
}

// Columns of the terminal that a stream is; 0 when it is none, or none to lay something out for.
static std::size_t columns_of(std::FILE* stream) {
  winsize size{};
  if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col < kColumnsMin ? 0 : size.ws_col;
}

void print_wrapped(const std::string& head, std::string_view text) {
  const std::size_t columns = columns_of(stdout);
  // Where the head leaves little room, the text stands below it.
  const bool below = columns != 0 && head.size() + kColumnsMin / 2 > columns;
  const std::size_t indent = below ? 6 : head.size();
  std::string line = below ? head + "\n" + std::string(indent, ' ') : head;
  std::size_t used = indent;
  for (bool first = true; !text.empty(); first = false) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!first && columns != 0 && used + 1 + word.size() > columns) {
      line += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      line += ' ';
      used++;
    }
    line += word;
    used += word.size();
  }
  fmt::print("{}\n", line);
}

void print_report(Json report, std::FILE* stream, const ReportOptions& options) {
  if (options.quiet) return;
  ReportStyle style{options.full, shows_colors(stream)};
  if (const std::size_t columns = columns_of(stream)) style.width = columns;
  const std::string seed = report.contains("seed") ? fmt::format("   seed {}", report["seed"].get<std::int64_t>()) : "";
  const std::string head = config::printable(
      fmt::format("rocebox {} {}{}", report["command"].get<std::string>(), report["config"].get<std::string>(), seed));
  const char* const hashed = report["command"].get<std::string>() == "sim" ? "counters and transfers" : "all that left";
  const std::string hash =
      report.contains("hash") ? fmt::format("\nhash of {}  {}\n", hashed, report["hash"].get<std::string>()) : "";
  for (const char* key : {"schema_version", "command", "config", "seed", "hash"}) report.erase(key);
  const std::string text =
      (style.color ? "\033[1m" + head + "\033[0m" : head) + "\n\n" + report_text(report, style) + hash;
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0)
    throw std::runtime_error(fmt::format("the report cannot be written: {}", std::strerror(errno)));
}

}  // namespace rocebox::cli
