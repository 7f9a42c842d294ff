// SPDX-License-Identifier: BSD-3-Clause
// Topologies as they are written: what they stand for is put in the place of `topology:`.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/config/config.h"
#include "runtime/config/fields_reader.h"
#include "runtime/topology/multicast.h"
#include "runtime/topology/shapes.h"

namespace rocebox::config {

/// What was written, as it was.
OptionValues written_values(const Node& node);

/// The fields of `topology:`.
struct TopologyFields {
  topology::Shapes shapes;
  std::vector<topology::MulticastConfig> multicast;
  void fields(ConfigFields& f);
};

/// A topology of a document: its graph, and what its nodes are told.
class Topology {
 public:
  /// Takes it out of `root`: generated devices go under `devices:`, made of what stands under `hosts:` and `switches:`,
  /// with what is written for one of that name laid over it; what is written for generated links is kept for links().
  static std::optional<Topology> expand(Node& root, Mistakes& mistakes, bool follow = true);
  /// What its own options came to.
  const OptionValues& values() const { return values_; }

  /// What a device is told; null when the topology has not placed it.
  const Placement* placement(const std::string& device) const;
  /// What is written of a link of the topology, generated or not: its options. After finish().
  Node link_node(const std::string& link, const RunConfig& config) const;
  /// Tells the configuration of it, whose devices are made, and adds its links.
  void finish(RunConfig& config, const Registry& registry, Mistakes& mistakes);

 private:
  void expand_devices(Node& root, const Node& hosts, const Node& switches);
  void take_links(Node& root);
  Node link_node(const topology::Graph::Edge& edge, bool paced) const;
  KernelConfig link_options(const topology::Graph::Edge& edge, bool paced, const Registry& registry,
                            Mistakes& mistakes);

  Place place_;
  Node links_;  // for all of them
  topology::Graph graph_;
  std::vector<Placement> placements_;
  std::unordered_map<std::string, unsigned> numbers_;   // nodes by name
  std::unordered_map<std::string, Node> own_links_;     // what is written for single links
  std::unordered_map<std::string, KernelConfig> made_;  // options of links that are equal
  OptionValues written_, own_devices_;                  // for the effective configuration
  OptionValues values_;
};

}  // namespace rocebox::config
