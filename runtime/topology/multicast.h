// SPDX-License-Identifier: BSD-3-Clause
// Multicast trees over a topology: which ports of each switch packets of a group leave by.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/topology/graph.h"

namespace rocebox::topology {

/// Groups of one topology: a switch has a number for each.
inline constexpr std::size_t kGroupsOfTopologyMax = 1024;

/// Groups of one membership, with addresses one behind the other and a tree each.
struct MulticastConfig {
  std::optional<roce::IpAddress> group;  ///< the first one's address
  std::int64_t count = 1;
  std::vector<std::string> members = {"all"};  ///< hosts, or `all`
  std::string root;                            ///< a switch; empty: by the group's number
  void fields(Fields& f);
};

/// A group and its members, which are hosts of a graph.
struct MulticastGroup {
  roce::IpAddress address{};
  std::vector<unsigned> members;
  std::optional<unsigned> root;  ///< a switch
};

/// All groups that are written, in their order. Throws ConfigError: a name that is no host or no switch, an address
/// that is no group's, two groups of one MAC address.
std::vector<MulticastGroup> groups_of(const Graph& graph, std::span<const MulticastConfig> rows);

/// The switches that the trees of groups are spread over when no root is written: those of the highest tier.
std::vector<unsigned> roots_of(const Graph& graph);

/// Adds each group's tree to what the switches are told: a route to the group's address, whose packets leave by each of
/// its ports, but for the one that they came in by; by none where the tree does not pass. A tree consists of ways with
/// the fewest wires from its root to each member; what only leads to the root is cut off, so that no switch gets
/// packets that it has no member for. Group n has the n-th root, and takes the n-th of equal ways; both go round.
/// Throws ConfigError when a member cannot be reached.
void add_trees(const Graph& graph, std::span<const MulticastGroup> groups, std::vector<Placement>& all);

}  // namespace rocebox::topology
