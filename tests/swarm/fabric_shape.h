// SPDX-License-Identifier: BSD-3-Clause
// What a network's topology looks like: `below(n)` draws one of 0 to n - 1.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

namespace rocebox::swarm {

struct NetworkShape {
  std::string yaml;  // under `topology:`
  unsigned hosts = 0, at_each_switch = 0;
  std::vector<std::string> links;  // some of them: of a host, and of another tier
  bool has_switches = true, has_racks = false;
};

template <class Draw>
std::string draw_rate(Draw below) {
  constexpr unsigned kGigabits[] = {10, 25, 100};
  return fmt::format("{}Gbps", kGigabits[below(3)]);
}

template <class Draw>
std::string draw_delay(Draw below) {
  const unsigned nanoseconds[] = {0, 100, 1000, below(20000)};
  return fmt::format("{}ns", nanoseconds[below(4)]);
}

// Three to five switches in a ring, where two ways are as long as each other if there are four; of more than three a
// wire across may be shorter, or too dear.
template <class Draw>
NetworkShape draw_ring(Draw below) {
  const unsigned switches = 3 + below(3), at_each = 1 + below(2), hosts = switches * at_each;
  const std::string rate = draw_rate(below);
  std::string host_names, switch_names, wires;
  for (unsigned i = 0; i < hosts; i++) {
    host_names += fmt::format("h{}, ", i);
    wires += fmt::format("{{between: [h{}, s{}]}}, ", i, i / at_each);
  }
  for (unsigned i = 0; i < switches; i++) {
    const std::string delay = draw_delay(below);
    switch_names += fmt::format("s{}, ", i);
    wires += fmt::format("{{between: [s{}, s{}], delay: {}, count: {}}}, ", i, (i + 1) % switches, delay, 1 + below(2));
  }
  if (switches > 3) wires += fmt::format("{{between: [s0, s2], cost: {}}}", 1 + below(3));
  return {fmt::format("explicit: {{hosts: [{}], switches: [{}], host_rate: {}, trunk_rate: {}, wires: [{}]}}",
                      host_names, switch_names, rate, rate, wires),
          hosts,
          at_each,
          {"h0_s0"}};
}

template <class Draw>
NetworkShape draw_leaf_spine(Draw below) {
  const unsigned leaves = 2 + below(2), spines = 1 + below(3), at_each = 1 + below(2);
  const std::string rate = draw_rate(below);  // NICs that are faster than the fabric would fill its queues
  const std::string text = fmt::format(
      "leaf_spine: {{leaves: {}, spines: {}, hosts_per_leaf: {}, host_rate: {}, spine_rate: {}, spine_delay: {}}}",
      leaves, spines, at_each, rate, rate, draw_delay(below));
  return {text, leaves * at_each, at_each, {"h0_leaf0", "leaf0_spine0", fmt::format("leaf1_spine{}", spines - 1)}, true,
          true};
}

template <class Draw>
NetworkShape draw_dumbbell(Draw below) {
  const unsigned at_each = 1 + below(3);
  const std::string host_rate = draw_rate(below), rate = draw_rate(below), delay = draw_delay(below);
  return {fmt::format("dumbbell: {{hosts_per_side: {}, host_rate: {}, bottleneck_rate: {}, bottleneck_delay: {}}}",
                      at_each, host_rate, rate, delay),
          2 * at_each,
          at_each,
          {"h0_left", "left_right"}};
}

template <class Draw>
NetworkShape draw_shape(Draw below) {
  const unsigned which = below(6);
  if (which == 0) return draw_dumbbell(below);
  if (which == 1) return draw_ring(below);
  if (which == 2) return draw_leaf_spine(below);
  const std::string rate = draw_rate(below), delay = draw_delay(below);
  if (which == 3)
    return {fmt::format("back_to_back: {{host_rate: {}, host_delay: {}}}", rate, delay), 2, 2, {"h0_h1"}, false};
  if (which == 4)
    return {fmt::format("fat_tree: {{k: 2, host_rate: {}, core_delay: {}}}", rate, delay),
            2,
            1,
            {"h0_pod0_edge0", "pod1_agg0_core0"}};
  return {fmt::format("dragonfly: {{routers: 2, hosts_per_router: 1, global_links: 1, global_delay: {}}}", delay),
          6,
          1,
          {"h0_group0_router0", "group0_router0_group0_router1"}};
}

}  // namespace rocebox::swarm
