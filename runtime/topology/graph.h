// SPDX-License-Identifier: BSD-3-Clause
// Graph: hosts and switches, and the wires between them; what each is called and where its routes lead.
#pragma once
#include <string>
#include <vector>

#include "runtime/kernel/placement.h"

namespace rocebox::topology {

/// One wire, or all of a tier.
struct Wire {
  std::uint64_t bits_per_second = 100'000'000'000;
  Nanos delay = 1'000;
  double loss = 0;
  unsigned cost = 1;  ///< routes are those with the least sum of these
};

/// Nodes and wires of one topology: what a machine has memory for.
inline constexpr std::size_t kNodesOfTopologyMax = 16'384, kWiresOfTopologyMax = 65'536;

struct Graph {
  struct End {
    unsigned node, port;
  };
  struct Edge {
    std::string name;
    End ends[2];
    Wire wire;
  };
  /// A port of a node, and what it leads to.
  struct Neighbor {
    unsigned node, edge;
  };
  struct Node {
    std::string name;
    unsigned tier = 0;  ///< 0: a host
    roce::Mac mac{};
    roce::IpAddress address{};  ///< of a host
    std::vector<Neighbor> ports{};
  };

  std::vector<Node> nodes;
  std::vector<Edge> edges;

  unsigned add(std::string name, unsigned tier);
  void join(unsigned a, unsigned b, const Wire& wire);

  bool is_host(unsigned node) const { return nodes[node].tier == 0; }
  std::size_t hosts() const;
  std::size_t switches() const { return nodes.size() - hosts(); }
};

/// Gives switches their tiers: how far they are from hosts, by the fewest wires.
void set_tiers(Graph& graph);

/// Gives every node its MAC address, and every host an IPv4 address: those at one switch are of one prefix of /24,
/// 10.0.0.0/24 at the first switch that has any. Throws ConfigError for more hosts or switches than there are
/// addresses.
void address(Graph& graph);

/// The cost of the wires from each switch to `target`; UINT32_MAX where there is no way.
std::vector<unsigned> distances(const Graph& graph, unsigned target);
/// A switch's ports to others from which a way with the least cost goes on to the target of `distances`.
std::vector<Port> ports_towards(const Graph& graph, unsigned node, const std::vector<unsigned>& distances);

/// What each node is told, in their order: its ports, and the routes of switches, one to each of their hosts and one to
/// the prefix of each other switch that has hosts, by every port on a path with the least cost. After address().
std::vector<Placement> placements(const Graph& graph);

}  // namespace rocebox::topology
