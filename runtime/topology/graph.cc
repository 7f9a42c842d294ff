// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "runtime/component/component.h"
#include "runtime/limits.h"

namespace rocebox::topology {
namespace {

constexpr unsigned kHostsOfPrefixMax = 254, kPrefixesMax = 1 << 16;
constexpr unsigned kPrefixBits = 24;

// Locally administered: the second byte tells hosts (0) and switches (1) apart.
roce::Mac mac_of(unsigned kind, unsigned number) {
  return {2,
          static_cast<std::uint8_t>(kind),
          0,
          static_cast<std::uint8_t>(number >> 16),
          static_cast<std::uint8_t>(number >> 8),
          static_cast<std::uint8_t>(number)};
}

roce::IpAddress address_of(unsigned prefix, unsigned host) {
  return roce::ipv4(10, static_cast<std::uint8_t>(prefix >> 8), static_cast<std::uint8_t>(prefix),
                    static_cast<std::uint8_t>(host));
}

roce::Prefix prefix_of(roce::IpAddress address, unsigned bits) {
  if (bits == kPrefixBits) address.back() = 0;
  return {address, true, bits};
}

// The first host at a switch; -1: it has none.
int first_host(const Graph& graph, unsigned node) {
  for (const Graph::Neighbor& port : graph.nodes[node].ports)
    if (graph.is_host(port.node)) return static_cast<int>(port.node);
  return -1;
}

void add_routes_to(const Graph& graph, unsigned target, std::vector<Placement>& all) {
  const int host = first_host(graph, target);
  if (host < 0) return;
  const std::vector<unsigned> far = distances(graph, target);
  const roce::Prefix prefix = prefix_of(graph.nodes[static_cast<unsigned>(host)].address, kPrefixBits);
  for (unsigned node = 0; node < graph.nodes.size(); node++) {
    if (graph.is_host(node) || node == target || far[node] == UINT32_MAX) continue;
    Placement::Route route{prefix, {}};
    for (const Port port : ports_towards(graph, node, far))
      route.via.push_back({port, graph.nodes[graph.nodes[node].ports[port].node].mac});
    all[node].routes.push_back(std::move(route));
  }
}

void add_routes_to_hosts(const Graph& graph, unsigned node, Placement& placement) {
  const auto& ports = graph.nodes[node].ports;
  for (std::size_t port = 0; port < ports.size(); port++) {
    const Graph::Node& host = graph.nodes[ports[port].node];
    if (host.tier == 0)
      placement.routes.push_back({prefix_of(host.address, 32), {{static_cast<Port>(port), host.mac}}});
  }
}

}  // namespace

unsigned Graph::add(std::string name, unsigned tier) {
  nodes.push_back({std::move(name), tier});
  return static_cast<unsigned>(nodes.size()) - 1;
}

void Graph::join(unsigned a, unsigned b, const Wire& wire) {
  const auto edge = static_cast<unsigned>(edges.size());
  const auto between = std::ranges::count(nodes[a].ports, b, &Neighbor::node);
  const End ends[2] = {{a, static_cast<unsigned>(nodes[a].ports.size())},
                       {b, static_cast<unsigned>(nodes[b].ports.size())}};
  const std::string which = between > 0 ? "_" + std::to_string(between + 1) : "";  // wires side by side
  edges.push_back({nodes[a].name + "_" + nodes[b].name + which, {ends[0], ends[1]}, wire});
  nodes[a].ports.push_back({b, edge});
  nodes[b].ports.push_back({a, edge});
  for (const End& end : ends)
    if (nodes[end.node].ports.size() > kPortsMax)
      throw ConfigError("`" + nodes[end.node].name + "` would have more than " + std::to_string(kPortsMax) + " ports");
}

std::size_t Graph::hosts() const { return static_cast<std::size_t>(std::ranges::count(nodes, 0u, &Node::tier)); }

// Dijkstra.
std::vector<unsigned> distances(const Graph& graph, unsigned target) {
  std::vector<unsigned> all(graph.nodes.size(), UINT32_MAX);
  using Reached = std::pair<unsigned, unsigned>;  // cost, node
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  queue.push({all[target] = 0, target});
  while (!queue.empty()) {
    const auto [far, node] = queue.top();
    queue.pop();
    if (far != all[node]) continue;  // found again, nearer
    for (const Graph::Neighbor& port : graph.nodes[node].ports) {
      const unsigned there = far + graph.edges[port.edge].wire.cost;
      if (graph.is_host(port.node) || all[port.node] <= there) continue;
      queue.push({all[port.node] = there, port.node});
    }
  }
  return all;
}

std::vector<Port> ports_towards(const Graph& graph, unsigned node, const std::vector<unsigned>& distances) {
  std::vector<Port> nearer;
  const auto& ports = graph.nodes[node].ports;
  for (std::size_t port = 0; port < ports.size(); port++)
    if (!graph.is_host(ports[port].node) &&
        distances[ports[port].node] + graph.edges[ports[port].edge].wire.cost == distances[node])
      nearer.push_back(static_cast<Port>(port));
  return nearer;
}

void set_tiers(Graph& graph) {
  std::vector<unsigned> queue;
  std::vector<bool> seen(graph.nodes.size());
  for (unsigned node = 0; node < graph.nodes.size(); node++)
    if (graph.is_host(node)) {
      queue.push_back(node);
      seen[node] = true;
    }
  for (std::size_t head = 0; head < queue.size(); head++)
    for (const Graph::Neighbor& port : graph.nodes[queue[head]].ports) {
      if (seen[port.node]) continue;
      seen[port.node] = true;
      graph.nodes[port.node].tier = graph.nodes[queue[head]].tier + 1;
      queue.push_back(port.node);
    }
}

void address(Graph& graph) {
  unsigned hosts = 0, switches = 0, prefixes = 0;
  for (Graph::Node& node : graph.nodes) node.mac = node.tier == 0 ? mac_of(0, ++hosts) : mac_of(1, ++switches);
  if (graph.switches() == 0) {
    hosts = 0;
    for (Graph::Node& node : graph.nodes) node.address = address_of(0, ++hosts);
  }
  for (unsigned node = 0; node < graph.nodes.size(); node++) {
    if (graph.is_host(node) || first_host(graph, node) < 0) continue;
    unsigned number = 0;
    for (const Graph::Neighbor& port : graph.nodes[node].ports)
      if (graph.is_host(port.node)) graph.nodes[port.node].address = address_of(prefixes, ++number);
    if (number > kHostsOfPrefixMax || ++prefixes > kPrefixesMax)
      throw ConfigError("there are not enough addresses below 10.0.0.0/8 for so many hosts");
  }
}

std::vector<Placement> placements(const Graph& graph) {
  std::vector<Placement> all(graph.nodes.size());
  for (unsigned i = 0; i < graph.nodes.size(); i++) {
    const Graph::Node& node = graph.nodes[i];
    all[i].mac = node.mac;
    all[i].tier = node.tier;
    if (node.tier == 0) all[i].address = node.address;
    for (std::size_t port = 0; port < node.ports.size(); port++) {
      const Graph::Node& other = graph.nodes[node.ports[port].node];
      const Wire& wire = graph.edges[node.ports[port].edge].wire;
      const bool only = node.tier == 0 && node.ports.size() == 1;
      all[i].ports.push_back({only ? "wire" : "p" + std::to_string(port), wire.bits_per_second, wire.delay, other.mac,
                              other.name, other.tier});
    }
    if (node.tier > 0) add_routes_to_hosts(graph, i, all[i]);
  }
  for (unsigned i = 0; i < graph.nodes.size(); i++)
    if (!graph.is_host(i)) add_routes_to(graph, i, all);
  return all;
}

}  // namespace rocebox::topology
