// SPDX-License-Identifier: BSD-3-Clause
// Topologies by name and size, as they are written and as graphs.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/topology/explicit_topology.h"
#include "runtime/topology/graph.h"
#include "runtime/topology/ns3_topology.h"

namespace rocebox::topology {

/// Two hosts on one wire.
struct BackToBack {
  Wire host;
  void fields(Fields& f);
  void build(Graph& graph) const;
};

/// Two switches with hosts, and one wire between them.
struct Dumbbell {
  std::int64_t hosts_per_side = 2;
  Wire host, bottleneck;
  void fields(Fields& f);
  void build(Graph& graph) const;
};

/// Each leaf is joined to each spine.
struct LeafSpine {
  std::int64_t leaves = 2, spines = 2, hosts_per_leaf = 2, hosts = 0, wires_per_spine = 1;
  Wire host, spine;
  void fields(Fields& f);
  void build(Graph& graph) const;
};

/// Al-Fares et al. 2008: k pods of k switches of k ports, (k/2)^2 cores, k^3/4 hosts. Or, as clusters are bought:
/// switches of one radix for a number of hosts. Two tiers, a LeafSpine, where these hold them: as few leaves and spines
/// as there can be with as many wires up as down at each leaf; else pods and all cores.
struct FatTree {
  std::int64_t k = 4, pods = 0, radix = 0, hosts = 0;
  Wire host, aggregation, core;
  void fields(Fields& f);
  void build(Graph& graph) const;

 private:
  void build_two_tiers(Graph& graph) const;
  void build_pods(Graph& graph, std::int64_t half, std::int64_t count, std::int64_t all_hosts) const;
};

/// Kim et al. 2008: groups of a routers that are all joined, each with p hosts and h wires to other groups.
struct Dragonfly {
  std::int64_t routers = 4, hosts_per_router = 2, global_links = 2, groups = 0;
  Wire host, local, global;
  void fields(Fields& f);
  void build(Graph& graph) const;
};

/// What can be written under `topology:` of its shape.
class Shapes {
 public:
  /// Shows all, of which one must be given.
  void fields(Fields& f);
  /// Whether one was given, alone.
  bool given() const { return chosen_ >= 0; }
  /// The one that was given, with addresses. Throws ConfigError.
  Graph build() const;

 private:
  BackToBack back_to_back_;
  Dumbbell dumbbell_;
  LeafSpine leaf_spine_;
  FatTree fat_tree_;
  Dragonfly dragonfly_;
  Ns3 ns3_;
  Explicit explicit_;
  int chosen_ = -1;
};

}  // namespace rocebox::topology
