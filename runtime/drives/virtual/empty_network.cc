// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/empty_network.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

namespace rocebox {

namespace {

std::unordered_map<std::string, unsigned> device_numbers(const config::RunConfig& config) {
  std::unordered_map<std::string, unsigned> numbers;
  for (unsigned i = 0; i < config.devices.size(); i++) numbers.emplace(config.devices[i].name, i);
  return numbers;
}

std::uint64_t port_rate(const config::DeviceConfig& device, const std::string& port) {
  if (!device.whole()) return 0;  // a bump sends as packets come
  const auto place = std::ranges::find(device.wiring.ports, port) - device.wiring.ports.begin();
  return device.whole()->port_rate(static_cast<Port>(place));
}

}  // namespace

LinkRates::LinkRates(const config::RunConfig& config) {
  const std::unordered_map<std::string, unsigned> numbers = device_numbers(config);
  rates_.reserve(config.links.size());
  for (const config::LinkConfig& link : config.links) {
    std::array<std::uint64_t, 2>& rates = rates_.emplace_back();
    for (Port side = 0; side < 2; side++) {
      const config::PortName& end = link.between[side];
      std::uint64_t sender = port_rate(config.devices[numbers.at(end.device)], end.port);
      if (sender == 0) sender = link.bits_per_second;
      const std::uint64_t own = link.kernel.options->wire_facts(side).bits_per_second;
      rates[side] = own == 0 ? sender : sender == 0 ? own : std::min(own, sender);
    }
  }
}

EmptyNetwork::EmptyNetwork(const config::RunConfig& config)
    : config_(config), rates_(config), hops_(config.devices.size()) {
  const std::unordered_map<std::string, unsigned> numbers = device_numbers(config);
  for (unsigned i = 0; i < config.links.size(); i++)
    for (Port side = 0; side < 2; side++) {
      const auto& ends = config.links[i].between;
      hops_[numbers.at(ends[side].device)].push_back({numbers.at(ends[1 - side].device), i, side});
    }
}

const std::vector<EmptyNetwork::Step>& EmptyNetwork::paths_from(unsigned source) {
  const auto [found, is_new] = paths_.try_emplace(source);
  std::vector<Step>& steps = found->second;
  if (!is_new) return steps;
  steps.resize(hops_.size());
  steps[source].cost = 0;
  using Reached = std::pair<unsigned, unsigned>;  // cost, device
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  queue.push({0, source});
  while (!queue.empty()) {
    const auto [cost, device] = queue.top();
    queue.pop();
    if (cost != steps[device].cost) continue;  // found again, nearer
    for (const Hop& hop : hops_[device]) {
      const unsigned there = cost + config_.links[hop.link].cost;
      if (steps[hop.to].cost <= there) continue;
      steps[hop.to] = {device, hop.link, hop.side, there};
      queue.push({there, hop.to});
    }
  }
  return steps;
}

double EmptyNetwork::nanos(unsigned source, unsigned destination, std::uint64_t bytes) {
  const std::vector<Step>& steps = paths_from(source);
  if (steps[destination].cost == kNoWay || source == destination) return 0;
  constexpr double kNanosPerByte = 8e9;
  const double packet = static_cast<double>(std::min(bytes, config_.sim.packet));
  double sum = 0, slowest = 0, stores = 0;
  for (unsigned at = destination; at != source; at = steps[at].before) {
    const config::LinkConfig& link = config_.links[steps[at].link];
    sum += static_cast<double>(link.kernel.options->wire_facts(steps[at].side).delay);
    const std::uint64_t rate = rates_.of(steps[at].link, steps[at].side);
    if (rate == 0) continue;
    const double per_byte = kNanosPerByte / static_cast<double>(rate);
    slowest = std::max(slowest, per_byte);
    stores += packet * per_byte;
  }
  if (slowest == 0) return 0;
  return sum + static_cast<double>(bytes) * slowest + stores - packet * slowest;
}

}  // namespace rocebox
