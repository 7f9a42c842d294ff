// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/reloader.h"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/cli/commands.h"
#include "runtime/config/printable.h"
#include "runtime/drives/live/reload.h"
#include "runtime/telemetry/telemetry_client.h"

namespace rocebox::cli {
namespace {

constexpr const char* kCommand = "/rocebox/reload";
// First line of the answer; the rest is for people.
constexpr std::string_view kTaken = "reloaded\n", kRefused = "refused\n";
// A string of an answer is not longer; what is cut stands on the run's standard error.
constexpr std::size_t kAnswerBytesMax = 8000;

}  // namespace

Reloader::Reloader(Live& live, config::RunConfig running, std::function<config::RunConfig()> load,
                   std::function<void(bool)> told)
    : live_(live), running_(std::move(running)), load_(std::move(load)), told_(std::move(told)) {
  endpoints_.add(kCommand, "Reads the configuration again and takes it over.", [this](const std::string&) {
    const Outcome outcome = reload();
    return Json((std::string(outcome.taken ? kTaken : kRefused) + outcome.text).substr(0, kAnswerBytesMax));
  });
}

Reloader::Outcome Reloader::reload() {
  const std::lock_guard lock(one_);
  told_(true);
  const Outcome outcome = try_reload();
  std::fputs(config::printable_lines(outcome.text).c_str(), stderr);
  told_(false);
  return outcome;
}

Reloader::Outcome Reloader::try_reload() {
  try {
    config::RunConfig next = load_();
    std::string text;
    for (const config::Difference& d : rocebox::reload(live_, running_, next))
      text += fmt::format("{}: {} is now {}, was {}\n", next.file, d.path, d.after.empty() ? "not written" : d.after,
                          d.before.empty() ? "not written" : d.before);
    if (text.empty()) text = fmt::format("{}: reloaded, and nothing is new\n", next.file);
    running_ = std::move(next);
    return {true, text};
  } catch (const ConfigError& error) {
    return {false, fmt::format("{}\n{}: not reloaded; the configuration before it stays in force\n", error.what(),
                               running_.file)};
  }
}

int reload(const ReloadArguments& arguments) {
  TelemetryClient client(find_instance(arguments.instance).socket);
  const Json answer = client.call(kCommand);
  if (!answer.is_string()) throw std::runtime_error("this run does not know `reload`: its rocebox is an older one");
  const std::string text = answer.get<std::string>();
  const bool taken = text.starts_with(kTaken);
  std::fputs(config::printable_lines(text.substr(text.find('\n') + 1)).c_str(), taken ? stdout : stderr);
  return taken ? 0 : 2;
}

}  // namespace rocebox::cli
