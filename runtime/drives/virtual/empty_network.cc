// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/empty_network.h"

#include <algorithm>
#include <string>

namespace rocebox {

EmptyNetwork::EmptyNetwork(const config::RunConfig& config) : config_(config), hops_(config.devices.size()) {
  std::unordered_map<std::string, unsigned> numbers;
  for (unsigned i = 0; i < config.devices.size(); i++) numbers.emplace(config.devices[i].name, i);
  for (unsigned i = 0; i < config.links.size(); i++)
    for (Port side = 0; side < 2; side++) {
      const auto& ends = config.links[i].between;
      hops_[numbers.at(ends[side].device)].push_back({numbers.at(ends[1 - side].device), i, side});
    }
}

std::uint64_t EmptyNetwork::rate_of(const config::LinkConfig& link, Port from) {
  const std::uint64_t own = link.kernel.options->wire_facts(from).bits_per_second, ends = link.bits_per_second;
  return own == 0 ? ends : ends == 0 ? own : std::min(own, ends);
}

const std::vector<EmptyNetwork::Step>& EmptyNetwork::paths_from(unsigned source) {
  const auto [found, is_new] = paths_.try_emplace(source);
  std::vector<Step>& steps = found->second;
  if (!is_new) return steps;
  steps.resize(hops_.size());
  steps[source].reached = true;
  std::vector<unsigned> queue = {source};
  for (std::size_t head = 0; head < queue.size(); head++)
    for (const Hop& hop : hops_[queue[head]]) {
      if (steps[hop.to].reached) continue;
      steps[hop.to] = {queue[head], hop.link, hop.side, true};
      queue.push_back(hop.to);
    }
  return steps;
}

double EmptyNetwork::nanos(unsigned source, unsigned destination, std::uint64_t bytes) {
  const std::vector<Step>& steps = paths_from(source);
  if (!steps[destination].reached || source == destination) return 0;
  constexpr double kNanosPerByte = 8e9;
  const double packet = static_cast<double>(std::min(bytes, config_.sim.packet));
  double sum = 0, slowest = 0, stores = 0;
  for (unsigned at = destination; at != source; at = steps[at].before) {
    const config::LinkConfig& link = config_.links[steps[at].link];
    sum += static_cast<double>(link.kernel.options->wire_facts(steps[at].side).delay);
    const std::uint64_t rate = rate_of(link, steps[at].side);
    if (rate == 0) continue;
    const double per_byte = kNanosPerByte / static_cast<double>(rate);
    slowest = std::max(slowest, per_byte);
    stores += packet * per_byte;
  }
  return sum + static_cast<double>(bytes) * slowest + stores - packet * slowest;
}

}  // namespace rocebox
