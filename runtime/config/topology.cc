// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/config/pipeline_files.h"
#include "runtime/config/units.h"

namespace rocebox::config {
namespace {

void put_scalar(Node& node, const std::string& key, std::string text) {
  Entry entry{key, node.place, {}};
  entry.value.kind = Node::Kind::kScalar;
  entry.value.place = node.place;
  entry.value.scalar = std::move(text);
  node.entries.push_back(std::move(entry));
}

Node& section(Node& root, const std::string& key, Place place) {
  if (Node* node = root.find(key)) return *node;
  root.entries.push_back({key, place, {}});
  root.entries.back().value.kind = Node::Kind::kMap;
  root.entries.back().value.place = place;
  return root.entries.back().value;
}

}  // namespace

OptionValues written_values(const Node& node) {
  OptionValues all;
  for (const Entry& entry : node.entries) {
    OptionValue value{entry.key, OptionValue::Kind::kText, true, entry.value.scalar};
    if (entry.value.is_map()) {
      value.kind = OptionValue::Kind::kGroup;
      value.entries.push_back(written_values(entry.value));
    }
    if (entry.value.kind == Node::Kind::kList) {
      const auto& items = entry.value.items;
      const bool texts = std::ranges::all_of(items, [](const Node& item) { return item.kind == Node::Kind::kScalar; });
      value.kind = texts ? OptionValue::Kind::kTexts : OptionValue::Kind::kItems;
      for (const Node& item : items)
        texts ? value.texts.push_back(item.scalar) : value.entries.push_back(written_values(item));
    }
    all.push_back(std::move(value));
  }
  return all;
}

void TopologyFields::fields(ConfigFields& f) {
  shapes.fields(f);
  f.list("multicast", multicast, topology::kGroupsOfTopologyMax,
         "multicast groups, whose trees the topology gives to its switches");
  f.values_by_name("hosts", "what each host `h0`, ... is: a device, whose addresses the topology gives");
  f.values_by_name("switches", "what each switch is: a device, whose ports, addresses and routes the topology gives");
  f.values_by_name("links", "options of each link beside its delay, as of `links:`");
}

std::optional<Topology> Topology::expand(Node& root, Mistakes& mistakes, bool follow) {
  const Node* written = root.find("topology");
  if (!written || !written->is_map()) return std::nullopt;  // another kind is a mistake to who reads it
  const std::size_t before = mistakes.count();
  FieldsReader reader(written, mistakes, follow);
  TopologyFields fields;
  fields.fields(reader);
  reader.finish();
  if (mistakes.count() != before) return std::nullopt;
  Topology topology;
  topology.place_ = written->place;
  topology.written_ = written_values(*written);
  topology.values_ = reader.values();
  try {
    if (!fields.shapes.given()) throw ConfigError("a topology needs a shape, such as `leaf_spine: {leaves: 2}`");
    topology.graph_ = fields.shapes.build();
    if (topology.graph_.nodes.size() > topology::kNodesOfTopologyMax ||
        topology.graph_.edges.size() > topology::kWiresOfTopologyMax)
      throw ConfigError(fmt::format("the topology has {} devices and {} links, at most {} and {} are possible",
                                    topology.graph_.nodes.size(), topology.graph_.edges.size(),
                                    topology::kNodesOfTopologyMax, topology::kWiresOfTopologyMax));
    topology.placements_ = topology::placements(topology.graph_);
    topology::add_trees(topology.graph_, topology::groups_of(topology.graph_, fields.multicast), topology.placements_);
  } catch (const ConfigError& error) {
    mistakes.add(written->place, error.what());
    return std::nullopt;
  }
  for (unsigned i = 0; i < topology.graph_.nodes.size(); i++)
    topology.numbers_.emplace(topology.graph_.nodes[i].name, i);
  Node hosts, switches;
  for (const auto& [key, node, count] :
       {std::tuple("hosts", &hosts, topology.graph_.hosts()), {"switches", &switches, topology.graph_.switches()}}) {
    const Node* given = written->find(key);
    if (given) *node = *given;
    if (!given && count > 0)
      mistakes.add(written->place,
                   fmt::format("the topology has {0} {1}: say what each is by `{1}: {{...}}`", count, key));
    if (given && count == 0) mistakes.add(given->place, fmt::format("the topology has no {}", key));
  }
  if (const Node* links = written->find("links")) topology.links_ = *links;
  if (mistakes.count() != before) return std::nullopt;
  topology.expand_devices(root, hosts, switches);
  topology.take_links(root);
  return topology;
}

void Topology::expand_devices(Node& root, const Node& hosts, const Node& switches) {
  Node& devices = section(root, "devices", place_);
  std::unordered_map<std::string, Node> own;
  std::vector<Entry> all;
  for (Entry& entry : devices.entries)
    if (numbers_.contains(entry.key)) {
      OptionValue value{entry.key, OptionValue::Kind::kGroup, true};
      value.entries.push_back(written_values(entry.value));
      own_devices_.push_back(std::move(value));
      own.emplace(entry.key, std::move(entry.value));
    }
  for (const topology::Graph::Node& node : graph_.nodes) {
    Entry entry{node.name, place_, node.tier == 0 ? hosts : switches};
    if (const auto more = own.find(node.name); more != own.end()) lay_over(entry.value, more->second);
    all.push_back(std::move(entry));
  }
  for (Entry& entry : devices.entries)
    if (!numbers_.contains(entry.key)) all.push_back(std::move(entry));
  devices.entries = std::move(all);
}

void Topology::take_links(Node& root) {
  Node* links = root.find("links");
  if (!links) return;
  for (const topology::Graph::Edge& edge : graph_.edges)
    if (Node* own = links->find(edge.name); own && !own->find("between")) own_links_.emplace(edge.name, *own);
  std::erase_if(links->entries, [this](const Entry& entry) { return own_links_.contains(entry.key); });
}

const Placement* Topology::placement(const std::string& device) const {
  const auto found = numbers_.find(device);
  return found == numbers_.end() ? nullptr : &placements_[found->second];
}

// What a wire holds on its way, where that is more than a link has room for by itself: the shortest frames at its rate.
std::uint64_t packets_on(const topology::Wire& wire) {
  constexpr std::uint64_t kShortestBits = 84 * 8, kLinkHolds = 65536, kLinkHoldsMax = 1 << 20;
  const double bits = static_cast<double>(wire.bits_per_second) * static_cast<double>(wire.delay) / kSecond;
  const double packets = bits / kShortestBits;
  return packets <= kLinkHolds ? 0 : packets >= kLinkHoldsMax ? kLinkHoldsMax : static_cast<std::uint64_t>(packets) + 1;
}

// Devices of a kind of their own send at the rate of their wires, and bumps as packets come: then the link has the
// rate.
Node Topology::link_node(const topology::Graph::Edge& edge, bool paced) const {
  const auto own = own_links_.find(edge.name);
  Node node;
  node.kind = Node::Kind::kMap;
  node.place = place_;
  put_scalar(node, "delay", format_duration(edge.wire.delay));
  if (!paced) put_scalar(node, "rate", format_rate(edge.wire.bits_per_second));
  if (const std::uint64_t packets = packets_on(edge.wire)) put_scalar(node, "packets", std::to_string(packets));
  if (edge.wire.loss > 0) put_scalar(node, "loss", format_fraction(edge.wire.loss));
  lay_over(node, links_);
  if (own != own_links_.end()) {
    lay_over(node, own->second);
    node.place = own->second.place;
  }
  return node;
}

Node Topology::link_node(const std::string& link, const RunConfig& config) const {
  const auto edge = std::ranges::find(graph_.edges, link, &topology::Graph::Edge::name);
  const bool paced = std::ranges::all_of(edge->ends, [&](const topology::Graph::End& end) {
    return std::ranges::find(config.devices, graph_.nodes[end.node].name, &DeviceConfig::name)->kind != nullptr;
  });
  return link_node(*edge, paced);
}

KernelConfig Topology::link_options(const topology::Graph::Edge& edge, bool paced, const Registry& registry,
                                    Mistakes& mistakes) {
  const auto own = own_links_.find(edge.name);
  const std::string key = fmt::format("{}/{}/{}/{}/{}", edge.wire.delay, edge.wire.bits_per_second, paced,
                                      edge.wire.loss, own == own_links_.end() ? "" : edge.name);
  const auto [found, is_new] = made_.try_emplace(key);
  if (!is_new) return found->second;
  const Node node = link_node(edge, paced);
  const Component* wire = registry.wire();
  std::shared_ptr<KernelOptions> options(static_cast<KernelOptions*>(wire->options(registry).release()));
  FieldsReader reader(&node, mistakes);
  options->fields(reader);
  reader.finish();
  return found->second = {"", wire, options, reader.values(), node.place};
}

void Topology::finish(RunConfig& config, const Registry& registry, Mistakes& mistakes) {
  if (!registry.wire()) return mistakes.add(place_, "this build has no kernel that joins devices");
  std::vector<DeviceConfig*> devices(graph_.nodes.size());
  for (DeviceConfig& device : config.devices)
    if (const auto found = numbers_.find(device.name); found != numbers_.end()) {
      devices[found->second] = &device;
      device.placed = true;
      if (graph_.is_host(found->second)) config.topology_hosts.push_back(device.name);
    }
  for (std::size_t i = 0; i < graph_.nodes.size(); i++)
    if (!devices[i] || devices[i]->wiring.ports.size() < graph_.nodes[i].ports.size()) {
      if (devices[i])
        mistakes.add(place_, fmt::format("device `{}` has {} port(s), and the topology joins {}", devices[i]->name,
                                         devices[i]->wiring.ports.size(), graph_.nodes[i].ports.size()));
      return;
    }
  for (const topology::Graph::Edge& edge : graph_.edges) {
    LinkConfig link;
    link.name = edge.name;
    link.placed = true;
    bool paced = true;
    for (std::size_t side = 0; side < 2; side++) {
      const DeviceConfig& device = *devices[edge.ends[side].node];
      link.between[side] = {device.name, device.wiring.ports[edge.ends[side].port]};
      paced = paced && device.kind;
    }
    link.kernel = link_options(edge, paced, registry, mistakes);
    link.kernel.name = edge.name;
    link.bits_per_second = edge.wire.bits_per_second;
    link.cost = edge.wire.cost;
    if (const auto own = own_links_.find(edge.name); own != own_links_.end())
      link.written = written_values(own->second);
    config.links.push_back(std::move(link));
  }
  config.topology_values = std::move(written_);
  config.topology_devices = std::move(own_devices_);
  config.placements.reserve(placements_.size());
  for (std::size_t i = 0; i < placements_.size(); i++)
    config.placements.push_back({graph_.nodes[i].name, std::move(placements_[i])});
}

}  // namespace rocebox::config
