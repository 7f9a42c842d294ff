// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/commands.h"
#include "runtime/config/units.h"
#include "runtime/drives/replay.h"
#include "runtime/drives/virtual/sim.h"
#include "runtime/lab/lab_config.h"
#include "runtime/process/file_place.h"

namespace rocebox::cli {
namespace {

constexpr std::size_t kPlacedShown = 32;  // devices of a topology that are told each

// Whether it is for `rocebox sim`.
bool is_virtual(const config::RunConfig& config) {
  return !config.workloads.empty() || !config.topology_values.empty() || !config.schedule.empty();
}

// Makes everything that a run would make: what could not be is a mistake.
void resolve(const config::RunConfig& config) {
  start_for(config);
  Pool pool = make_pool(config);
  if (is_virtual(config)) {
    const Sim run(config, pool, {});
    return;
  }
  ReplayOptions options;
  options.more_files_may_come = true;
  const Replay run(config, pool, std::move(options));
}

void print_topology(const config::RunConfig& config) {
  const auto links = std::ranges::count_if(config.links, &config::LinkConfig::placed);
  const std::size_t devices = config.placements.size(), hosts = config.topology_hosts.size();
  print_line(fmt::format("#   topology: {} hosts, {} switches, {} links{}", hosts, devices - hosts, links,
                         devices > hosts ? "; --routes lists the routes" : ""));
  if (devices > kPlacedShown) return;
  for (const auto& [name, placement] : config.placements) {
    std::vector<std::string> ports;
    for (const Placement::PlacedPort& port : placement.ports)
      ports.push_back(fmt::format("{} {}", port.neighbor, config::format_rate(port.bits_per_second)));
    const std::string what =
        fmt::format("{}: {}{}: {}", name, placement.address ? roce::address_text(*placement.address) + ", " : "",
                    roce::mac_text(placement.mac), fmt::join(ports, ", "));
    print_line((placement.tier == 0 ? "#   host " : "#   switch ") + what);
  }
}

void print_routes(const config::RunConfig& config) {
  for (const auto& [name, placement] : config.placements)
    for (const Placement::Route& route : placement.routes) {
      if (route.via.empty()) continue;  // a multicast group's whose tree does not pass
      std::vector<std::string> via;
      for (const Placement::Hop& hop : route.via) via.push_back(placement.ports[hop.port].neighbor);
      print_line(fmt::format("{} {} {}", name, roce::prefix_text(route.prefix), fmt::join(via, " ")));
    }
}

void print_workload(const config::WorkloadConfig& workload) {
  const bool many = workload.hosts.size() > kPlacedShown;
  print_line(fmt::format(
      "#   workload {}: {} on {}{}{}", workload.name, workload.type->name,
      many ? fmt::format("{} hosts", workload.hosts.size()) : fmt::format("{}", fmt::join(workload.hosts, ", ")),
      workload.after.empty() ? "" : fmt::format(", after {}", fmt::join(workload.after, ", ")),
      workload.start == 0 ? "" : fmt::format(", +{}", config::format_duration(workload.start))));
}

void print_change(const config::RunConfig& config, const config::ScheduledChange& change) {
  const std::size_t devices = config.devices.size();
  const std::string& of =
      change.device < devices ? config.devices[change.device].name : config.links[change.device - devices].name;
  print_line(fmt::format("#   {}: {} of {}", config::format_duration(change.at), change.name, of));
}

void print_plan(const config::RunConfig& config) {
  print_line("# What would run:");
  if (!config.placements.empty()) print_topology(config);
  for (const config::WorkloadConfig& workload : config.workloads) print_workload(workload);
  for (const config::ScheduledChange& change : config.schedule) print_change(config, change);
  for (const config::DeviceConfig& device : config.devices)
    if (!device.placed)
      print_line(
          fmt::format("#   device {}: {}, ports {}{}", device.name,
                      device.kind ? std::string(device.kind->name) : fmt::format("{}", fmt::join(device.path, "; ")),
                      fmt::join(device.wiring.ports, ", "),
                      device.pipeline.empty() ? "" : fmt::format(" (pipeline {})", device.pipeline)));
  for (const config::LinkConfig& link : config.links)
    if (!link.placed)
      print_line(fmt::format("#   link {}: {} <-> {}", link.name, link.between[0].text(), link.between[1].text()));
  for (const config::CaptureBinding& binding : config.captures) {
    std::vector<std::string> in;
    for (const std::string& path : binding.in) in.push_back(shown_file(path));
    if (!in.empty())
      print_line(fmt::format("#   {} -> {}{}", fmt::join(in, ", "), binding.port.text(),
                             binding.filter.empty() ? "" : fmt::format("   ({})", binding.filter)));
    if (!binding.out.empty()) print_line(fmt::format("#   {} -> {}", binding.port.text(), shown_output(binding.out)));
  }
  for (const config::LiveBinding& binding : config.live_ports)
    print_line(fmt::format("#   {} <-> {}, when live", binding.port.text(), binding.live.text()));
  for (const config::PortName& port : config::unbound_ports(config))
    print_line(fmt::format("#   {}: bound to nothing; what leaves there is counted", port.text()));
}

// `text`: of the file, when there is one.
config::RunConfig load(const CheckArguments& arguments, const std::string& text, Registry& registry) {
  if (arguments.line.given() && !arguments.settings.empty())
    throw ConfigError("--set is for a configuration in a file: in the command line write the option behind its kernel");
  if (arguments.config.empty() || arguments.line.given())
    return load_or_throw(arguments.config, arguments.line, registry,
                         "--between A B or --from FILE, -- KERNEL [OPTION=VALUE]..., or --schema");
  const std::string file = shown_file(arguments.config);
  config::Mistakes mistakes(file);
  config::RunConfig config = config::load_text(text, file, registry, mistakes, true, settings_of(arguments.settings));
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  config.path = arguments.config;
  return config;
}

}  // namespace

int check(const CheckArguments& arguments) {
  Registry registry = make_registry(arguments.plugins);
  std::string text;
  if (arguments.schema) {
    fmt::print("{}\n", config::schema(registry).dump(2));
    return 0;
  }
  if (!arguments.line.given() && !arguments.config.empty()) {
    text = config::read_text_file(arguments.config, config::Pipes::kTaken);  // once: it may be a pipe
    if (config::Mistakes ignored(""); lab::is_lab(config::parse_yaml(text, ignored))) {
      if (arguments.strict || arguments.resources)
        throw ConfigError(shown_file(arguments.config) +
                          ": --strict and --resources look at the switches of a run, and this is a lab");
      if (!arguments.settings.empty())
        throw ConfigError(shown_file(arguments.config) +
                          ": --set changes values of a run's configuration, and this is a lab");
      check_lab(text, arguments.config, arguments.plugins);
      return 0;
    }
  }
  const config::RunConfig config = load(arguments, text, registry);
  tell_placed(config.notes);
  if (arguments.routes) {
    if (config.placements.empty())
      throw ConfigError(config.file + ": --routes lists those of a topology, and there is none");
    print_routes(config);
    return 0;
  }
  resolve(config);
  if (arguments.strict || arguments.resources) {
    if (std::none_of(config.devices.begin(), config.devices.end(), models_hardware))
      throw ConfigError(config.file + ": --strict and --resources look at switches, and there is none");
    return check_hardware(config, arguments.strict, arguments.resources) ? 0 : 1;
  }
  print_line(fmt::format("# {}: good. The options that count, with their values:", config.file));
  print_lines(config::effective_yaml(config));
  print_plan(config);
  return 0;
}

}  // namespace rocebox::cli
