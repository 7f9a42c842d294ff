// SPDX-License-Identifier: BSD-3-Clause
// Networks of any shape, as their wires are written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/topology/graph.h"

namespace rocebox::topology {

/// Hosts and switches by names of the user's own, and the wires between them. A host has one wire; tiers of switches
/// are how far they are from hosts.
struct Explicit {
  /// Equal wires, side by side, from each node of the one end to each of the other.
  struct Row {
    std::vector<std::string> between;
    Wire wire;
    std::int64_t count = 1;
  };

  std::vector<std::string> hosts, switches;
  Wire host, trunk;  ///< of which rows need not say rate and delay
  std::vector<Row> wires;
  Graph graph;  ///< without addresses; empty after a mistake
  void fields(Fields& f);
  void build(Graph& to) const;
};

}  // namespace rocebox::topology
