// SPDX-License-Identifier: BSD-3-Clause
// Topology files of HPCC's and ConWeave's ns-3 simulators.
#pragma once
#include "runtime/component/fields.h"
#include "runtime/topology/graph.h"

namespace rocebox::topology {

/// "NODES SWITCHES LINKS", the numbers of the nodes that are switches, and a line "NODE NODE RATE DELAY LOSS" for each
/// link; what follows is no part of it, as these simulators read it. Node N is host `hN` or switch `sN`. Returns
/// the graph without addresses; one that is empty after a mistake.
Graph parse_ns3(std::string_view text, const OnMistake& mistake);

/// A network that such a file describes.
struct Ns3 {
  InputFile file;
  Graph graph;
  void fields(Fields& f);
  void build(Graph& graph) const;
};

}  // namespace rocebox::topology
