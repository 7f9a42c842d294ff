// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "runtime/config/printable.h"
#include "runtime/lab/namespaces.h"
#include "runtime/lab/network.h"
#include "runtime/lab/traffic.h"
#include "runtime/telemetry/instance.h"

namespace rocebox::lab {
namespace {

constexpr Nanos kPatience = 15 * kSecond;      // with processes that are to end, beyond `drain:`
constexpr Nanos kEnterTimeout = 60 * kSecond;  // of a command in a virtual machine, as shown to a person

}  // namespace

Lab::Lab(const LabConfig& config, const std::vector<std::string>& plugins, Interrupts& interrupts)
    : config_(config), interrupts_(interrupts) {
  require_tools(config);
  require_machine_tools(config);
  claim_.emplace(config.name, Claim::For::kNew);
  stands_ = true;
  machines_.emplace(config, claim_->folder());
  appliances_.emplace(config, claim_->folder(), plugins);
}

Lab::~Lab() {
  try {
    take_down();
  } catch (const std::exception& error) {
    fmt::print(stderr, "rocebox: {}\n", config::printable_lines(error.what()));
  }
}

void Lab::up() {
  interrupts_.wait({}, 0);
  machines_->find_image(interrupts_);
  build_network(config_);
  machines_->boot(interrupts_);
  join_machines(config_);
  appliances_->start(interrupts_);
  join_taps(config_);
  interrupts_.wait({}, 0);
}

Json Lab::run(std::vector<std::string>& failures, std::function<void(const TrafficStep&)> progress) {
  TrafficRun traffic(config_, claim_->folder(), *appliances_, interrupts_, std::move(progress));
  traffic.run(failures);
  appliances_->stop(failures, interrupts_);
  Json report;
  report["traffic"] = traffic.report();
  report["appliances"] = appliances_->reports();
  try {
    take_down();
  } catch (const std::exception& error) {
    failures.emplace_back(error.what());
  }
  return report;
}

void Lab::leave() {
  appliances_->leave();
  stands_ = false;
}

void Lab::take_down() {
  if (!std::exchange(stands_, false)) return;
  std::vector<std::string> failures;                          // of appliances after a failure: that is what is told
  if (appliances_) appliances_->stop(failures, interrupts_);  // one that is just being started is in no namespace yet
  const std::vector<std::string> spaces = namespaces_of(config_.name);
  end_processes(spaces, kPatience);
  remove_dead_instances(instance_name(config_.name, ""));
  delete_namespaces(spaces);
  claim_->remove();
}

std::string Lab::how_to_enter() const {
  std::string text;
  for (const HostConfig& host : config_.hosts) {
    std::string addresses;
    for (const Interface& each : host.interfaces)
      for (const std::string& address : each.addresses)
        addresses += fmt::format("  {} {}", each.name, address.substr(0, address.find('/')));
    const std::vector<std::string> enter = host.machine
                                               ? in_machine(claim_->folder(), host.name, kEnterTimeout, {"COMMAND"})
                                               : within(namespace_name(config_.name, host.name), {"bash"});
    text += fmt::format("  host {}{}\n    {}\n", host.name, addresses, fmt::join(enter, " "));
  }
  for (const ApplianceConfig& appliance : config_.appliances) {
    text += fmt::format("  appliance {}\n", appliance.name);
    if (has_instance_name(config_.name, appliance.name))
      text += fmt::format("    rocebox top {}\n", instance_name(config_.name, appliance.name));
    for (const WireConfig& wire : config_.wires)
      for (const End& end : wire.ends)
        if (end.node == appliance.name && !wire.tap)
          text += fmt::format("    ip netns exec {} tcpdump -ni {}      # {}\n",
                              namespace_name(config_.name, appliance.name), end.interface, end.port);
  }
  return text;
}

Json skeleton(const LabConfig& config, Json appliances) {
  Json report;
  report["traffic"] = TrafficRun::skeleton(config);
  report["appliances"] = std::move(appliances);
  return report;
}

TakenDown take_down(const std::string& lab) {
  TakenDown result;
  Claim claim(lab, Claim::For::kOld);
  const std::vector<std::string> spaces = namespaces_of(lab);
  if (is_within(spaces))
    throw ConfigError(fmt::format("this process is inside lab `{}`: leave it first, with `exit`", lab));
  result.anything = claim.held() || !spaces.empty();
  result.killed = end_processes(spaces, kPatience + drain_in(claim.folder()));
  remove_dead_instances(instance_name(lab, ""));
  result.reports = reports_in(claim.folder());
  delete_namespaces(spaces);
  if (claim.held()) claim.remove();
  return result;
}

}  // namespace rocebox::lab
