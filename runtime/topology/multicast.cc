// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/multicast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "runtime/component/component.h"
#include "runtime/config/name_ranges.h"
#include "runtime/roce/multicast.h"

namespace rocebox::topology {
namespace {

// The address `number` behind `first`, which stays in the lowest 32 bits.
roce::IpAddress address_behind(roce::IpAddress first, std::uint32_t number) {
  for (std::size_t byte = first.size(); byte-- > first.size() - 4 && number > 0; number >>= 8) {
    number += first[byte];
    first[byte] = static_cast<std::uint8_t>(number);
  }
  return first;
}

std::vector<unsigned> members_of(const Graph& graph, const MulticastConfig& row,
                                 const std::unordered_map<std::string, unsigned>& numbers) {
  std::vector<unsigned> members;
  std::vector<bool> seen(graph.nodes.size());
  if (row.members == std::vector<std::string>{"all"}) {
    for (unsigned node = 0; node < graph.nodes.size(); node++)
      if (graph.is_host(node)) members.push_back(node);
    return members;
  }
  for (const std::string& name : row.members) {
    const auto found = numbers.find(name);
    if (found == numbers.end() || !graph.is_host(found->second))
      throw ConfigError(fmt::format("multicast group {}: member `{}` is no host of the topology",
                                    roce::address_text(*row.group), name));
    if (seen[found->second])
      throw ConfigError(
          fmt::format("multicast group {} names member `{}` twice", roce::address_text(*row.group), name));
    seen[found->second] = true;
    members.push_back(found->second);
  }
  return members;
}

// The way from each switch to a root: the wire that leads there, and how far it is.
struct Way {
  unsigned far = UINT32_MAX;
  unsigned port = 0;
};

// Of equal wires towards the root each group takes its own.
std::vector<Way> ways_to(const Graph& graph, unsigned root, std::size_t number) {
  const std::vector<unsigned> far = distances(graph, root);
  std::vector<Way> ways(graph.nodes.size());
  for (unsigned node = 0; node < graph.nodes.size(); node++) {
    if (graph.is_host(node) || far[node] == UINT32_MAX) continue;
    ways[node].far = far[node];
    if (node == root) continue;
    const std::vector<Port> nearer = ports_towards(graph, node, far);
    ways[node].port = nearer[number % nearer.size()];
  }
  return ways;
}

unsigned port_of(const Graph& graph, unsigned node, unsigned edge) {
  const auto& ports = graph.nodes[node].ports;
  return static_cast<unsigned>(std::ranges::find(ports, edge, &Graph::Neighbor::edge) - ports.begin());
}

using Tree = std::map<unsigned, std::vector<Port>>;  // ports by switch

void join(const Graph& graph, unsigned node, unsigned port, Tree& tree) {
  const Graph::Neighbor& to = graph.nodes[node].ports[port];
  tree[node].push_back(static_cast<Port>(port));
  if (!graph.is_host(to.node)) tree[to.node].push_back(static_cast<Port>(port_of(graph, to.node, to.edge)));
}

// From the root a single wire may lead to where the tree begins.
void cut_stem(const Graph& graph, unsigned root, Tree& tree) {
  while (tree[root].size() == 1) {
    const Graph::Neighbor next = graph.nodes[root].ports[tree[root].front()];
    if (graph.is_host(next.node)) return;  // a group of one
    tree.erase(root);
    std::erase(tree[next.node], static_cast<Port>(port_of(graph, next.node, next.edge)));
    root = next.node;
  }
}

Tree tree_of(const Graph& graph, const MulticastGroup& group, unsigned root, std::size_t number) {
  const std::vector<Way> ways = ways_to(graph, root, number);
  Tree tree;
  for (const unsigned member : group.members) {
    const Graph::Neighbor& wire = graph.nodes[member].ports.front();
    if (ways[wire.node].far == UINT32_MAX)
      throw ConfigError(fmt::format("multicast group {}: no way leads from `{}` to `{}`",
                                    roce::address_text(group.address), graph.nodes[root].name,
                                    graph.nodes[member].name));
    unsigned node = wire.node;
    bool known = tree.contains(node);
    join(graph, node, port_of(graph, node, wire.edge), tree);
    while (!known && node != root) {
      const unsigned up = graph.nodes[node].ports[ways[node].port].node;
      known = tree.contains(up);
      join(graph, node, ways[node].port, tree);
      node = up;
    }
  }
  cut_stem(graph, root, tree);
  return tree;
}

}  // namespace

void MulticastConfig::fields(Fields& f) {
  f.address("group", group, Presence::kRequired, "multicast address of the group, or of the first of `count`");
  if (group && !roce::is_multicast(*group)) f.refuse("group", "is no multicast address");
  f.integer("count", count, {1, static_cast<std::int64_t>(kGroupsOfTopologyMax)},
            "groups with these members and addresses one behind the other, each with a tree of its own");
  f.texts(
      "members", members,
      "hosts that get what is sent to the group, and may send to it (`h0..h15`: all from the one to the other); [all]: "
      "all of them");
  if (config::expand_ranges(f, "members", members) && members.empty())
    f.refuse("members", "must name one at least, or [all]");
  f.text("root", root, "switch where the tree begins; empty: groups go round those of the highest tier");
}

std::vector<MulticastGroup> groups_of(const Graph& graph, std::span<const MulticastConfig> rows) {
  std::unordered_map<std::string, unsigned> numbers;
  for (unsigned node = 0; node < graph.nodes.size(); node++) numbers.emplace(graph.nodes[node].name, node);
  std::vector<MulticastGroup> groups;
  std::map<roce::Mac, roce::IpAddress> macs;
  if (!rows.empty() && graph.switches() == 0)
    throw ConfigError("multicast groups need switches, of which this topology has none");
  for (const MulticastConfig& row : rows) {
    MulticastGroup group{*row.group, members_of(graph, row, numbers), std::nullopt};
    if (!row.root.empty()) {
      const auto root = numbers.find(row.root);
      if (root == numbers.end() || graph.is_host(root->second))
        throw ConfigError(fmt::format("multicast group {}: root `{}` is no switch of the topology",
                                      roce::address_text(*row.group), row.root));
      group.root = root->second;
    }
    for (std::uint32_t number = 0; number < row.count; number++) {
      group.address = address_behind(*row.group, number);
      const auto [other, is_new] = macs.emplace(roce::multicast_mac(group.address), group.address);
      if (!roce::is_multicast(group.address) || !is_new)
        throw ConfigError(is_new ? "multicast groups behind " + roce::address_text(*row.group) +
                                       " have no multicast addresses"
                                 : fmt::format("multicast groups {} and {} have one MAC address",
                                               roce::address_text(other->second), roce::address_text(group.address)));
      groups.push_back(group);
    }
  }
  if (groups.size() > kGroupsOfTopologyMax)
    throw ConfigError(fmt::format("the topology has {} multicast groups, at most {} are possible", groups.size(),
                                  kGroupsOfTopologyMax));
  return groups;
}

std::vector<unsigned> roots_of(const Graph& graph) {
  unsigned highest = 0;
  for (const Graph::Node& node : graph.nodes) highest = std::max(highest, node.tier);
  std::vector<unsigned> roots;
  for (unsigned node = 0; highest > 0 && node < graph.nodes.size(); node++)
    if (graph.nodes[node].tier == highest) roots.push_back(node);
  return roots;
}

void add_trees(const Graph& graph, std::span<const MulticastGroup> groups, std::vector<Placement>& all) {
  const std::vector<unsigned> roots = roots_of(graph);
  for (std::size_t number = 0; number < groups.size(); number++) {
    const unsigned root = groups[number].root.value_or(roots[number % roots.size()]);
    Tree tree = tree_of(graph, groups[number], root, number / roots.size());
    for (unsigned node = 0; node < graph.nodes.size(); node++) {
      if (graph.is_host(node)) continue;
      Placement::Route& route = all[node].routes.emplace_back();
      route.prefix.address = groups[number].address;
      route.prefix.is_ipv4 = roce::is_ipv4(groups[number].address);
      route.prefix.bits = route.prefix.is_ipv4 ? 32 : 128;
      std::vector<Port>& ports = tree[node];
      std::ranges::sort(ports);
      for (const Port port : ports) route.via.push_back({port, roce::multicast_mac(groups[number].address)});
    }
  }
}

}  // namespace rocebox::topology
