// SPDX-License-Identifier: BSD-3-Clause
// `rocebox top`: live counters of a run, over its telemetry socket.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "runtime/cli/commands.h"
#include "runtime/config/printable.h"
#include "runtime/config/units.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/expectations.h"
#include "runtime/telemetry/top.h"

namespace rocebox::cli {
namespace {

// Less would show the noise of single bursts, and of the 20 ms for which a run's answers are the same.
constexpr Nanos kIntervalMin = 100 * kMillisecond;

// As many lines as the terminal has, each of them cleared to its end, from the top on; what is below is cleared too.
void draw(const std::string& text) {
  winsize size{};
  std::size_t rows = 24;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1) rows = size.ws_row;
  std::string screen = "\033[H";
  std::size_t begin = 0;
  const bool colors = shows_colors(stdout);
  bool head = true;  // the first line, and each behind an empty one
  for (std::size_t row = 1; row < rows && begin < text.size(); row++) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line =
        text.substr(begin, size.ws_col ? std::min<std::size_t>(end - begin, size.ws_col) : end - begin);
    screen += (head && colors ? "\033[1m" + line + "\033[0m" : line) + "\033[K\n";
    head = end == begin;
    begin = end + 1;
  }
  std::fputs((screen + "\033[J").c_str(), stdout);
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

int list_instances(bool json) {
  Json rows = Json::array();
  for (const RunningInstance& one : running_instances()) {
    if (json)
      rows.push_back({{"instance", one.name}, {"socket", one.socket}});
    else
      print(config::printable(one.name + "  " + one.socket) + "\n");
  }
  if (json) print(json_text(rows));
  return 0;
}

}  // namespace

int top(const TopArguments& arguments) {
  Nanos interval = kSecond;
  if (!arguments.interval.empty()) {
    const auto parsed = config::parse_duration(arguments.interval);
    if (!parsed || *parsed < kIntervalMin)
      throw ConfigError(fmt::format("--interval {}: write such as 1s, from 100ms on", arguments.interval));
    interval = *parsed;
  }
  if (arguments.list) return list_instances(arguments.json);
  const RunningInstance instance = find_instance(arguments.instance);
  Signals signals({SIGINT, SIGTERM});
  bool shown = false;
  try {
    TelemetryClient client(instance.socket);
    const bool screen = isatty(STDOUT_FILENO) && !arguments.json && !arguments.once;
    Json before = take_sample(client);
    if (screen) print("\033[2J");
    do {
      if (signals.wait(interval)) return 0;
      Json after = take_sample(client);
      const Json block = top_block(before, after);
      if (arguments.json)
        print(block.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
      else if (screen)
        draw(top_text(block));
      else
        print((shown ? "\n" : "") + top_text(block));
      std::fflush(stdout);
      shown = true;
      before = std::move(after);
    } while (!arguments.once);
  } catch (const TelemetryError& error) {
    if (!shown) throw;
    tell(fmt::format("{}: {}", instance.name, error.what()));
  }
  return 0;
}

}  // namespace rocebox::cli
