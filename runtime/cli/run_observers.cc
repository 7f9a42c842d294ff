// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/run_observers.h"

#include <fmt/format.h>

#include <utility>

namespace rocebox::cli {
namespace {

// Who says where metrics are served.
std::string place_of_metrics(const RunArguments& arguments, const config::RunConfig& config) {
  if (!arguments.metrics.empty()) return "--metrics";
  return config.place_text(config.metrics_place) + ": live: metrics";
}

// Nothing where the user or the system says no.
std::optional<Instance> take_instance(const RunArguments& arguments) {
  bool wanted = true;
  for (const std::string& word : arguments.eal) {
    if (word.starts_with("--file-prefix"))
      throw ConfigError(word + ": the prefix is rocebox-NAME; give the name with --name");
    if (word == "--no-telemetry") wanted = false;
  }
  if (!wanted && !arguments.name.empty())
    throw ConfigError("--no-telemetry: a run without telemetry has no name; leave out one of it and --name");
  if (!wanted) return std::nullopt;
  const std::string file = arguments.line.given() ? "bump" : arguments.config == "-" ? "stdin" : arguments.config;
  Instance instance = arguments.name.empty() ? Instance::of_file(file) : Instance::named(arguments.name);
  if (instance.why_not().empty()) return instance;
  tell("without telemetry: " + instance.why_not());
  return std::nullopt;
}

}  // namespace

RunObservers::RunObservers(const RunArguments& arguments, const config::RunConfig& config) {
  const std::string& text = arguments.metrics.empty() ? config.live.metrics : arguments.metrics;
  if (!text.empty()) {
    const auto address = config::parse_socket_address(text);
    if (!address) throw ConfigError(fmt::format("--metrics {}: write such as 127.0.0.1:9464 or [::1]:9464", text));
    server_ = std::make_unique<MetricsServer>(*address, place_of_metrics(arguments, config));
    metrics_text_ = fmt::format(", metrics at http://{}/metrics", server_->address());
  }
  instance_ = take_instance(arguments);
}

void RunObservers::add_to(EalOptions& options) const {
  if (!instance_) return;
  options.instance = instance_->name();
  options.directory = instance_->directory();
}

RunObservers::Watch::Watch(const Live& live, RunObservers& observers) : server_(std::move(observers.server_)) {
  if (observers.instance_) endpoints_.emplace(live, observers.name());
  if (!server_) return;
  server_->start([&live, name = observers.name()] {
    Metrics metrics(name);
    live.add_metrics(metrics);
    return metrics.text();
  });
}

}  // namespace rocebox::cli
