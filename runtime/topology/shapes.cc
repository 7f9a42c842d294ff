// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/shapes.h"

#include <string>

#include "runtime/limits.h"
#include "runtime/topology/wire_fields.h"

namespace rocebox::topology {
namespace {

constexpr std::int64_t kSwitchesMax = 4096;
constexpr Range<std::int64_t> kPorts{1, kPortsMax};

std::string name(const char* what, std::int64_t number) { return what + std::to_string(number); }

// Adds hosts at a switch, numbered through.
void add_hosts(Graph& graph, unsigned at, std::int64_t count, const Wire& wire, std::int64_t& number) {
  for (std::int64_t i = 0; i < count; i++) graph.join(graph.add(name("h", number++), 0), at, wire);
}

// Of `all` hosts, those of one of `count` switches: the first have one more where they do not go into each alike.
std::int64_t share(std::int64_t all, std::int64_t count, std::int64_t number) {
  return all / count + (number < all % count ? 1 : 0);
}

}  // namespace

void BackToBack::fields(Fields& f) { wire_fields(f, "host", host, "the wire"); }

void BackToBack::build(Graph& graph) const {
  graph.add("h0", 0);
  graph.add("h1", 0);
  graph.join(0, 1, host);
}

void Dumbbell::fields(Fields& f) {
  f.integer("hosts_per_side", hosts_per_side, kPorts, "hosts at each of both switches");
  wire_fields(f, "host", host, "the wires of hosts");
  wire_fields(f, "bottleneck", bottleneck, "the wire between the switches");
}

void Dumbbell::build(Graph& graph) const {
  const unsigned left = graph.add("left", 1), right = graph.add("right", 1);
  std::int64_t hosts = 0;
  add_hosts(graph, left, hosts_per_side, host, hosts);
  add_hosts(graph, right, hosts_per_side, host, hosts);
  graph.join(left, right, bottleneck);
}

void LeafSpine::fields(Fields& f) {
  f.integer("leaves", leaves, {1, kPortsMax}, "switches with hosts");
  f.integer("spines", spines, {1, kPortsMax}, "switches above them, each joined to each leaf");
  f.integer("hosts_per_leaf", hosts_per_leaf, kPorts, "hosts at each leaf");
  f.integer("hosts", hosts, {0, kPortsMax * std::int64_t{kPortsMax}},
            "hosts of all leaves, in place of `hosts_per_leaf`: the first leaves have one more where they do not go "
            "into each alike; 0: that many at each");
  if (hosts != 0 && hosts < leaves) f.refuse("hosts", "must be one at each leaf, at least");
  if (hosts != 0) f.exclude("hosts_per_leaf", "cannot go with `hosts`, which stands in its place");
  f.integer("wires_per_spine", wires_per_spine, kPorts, "wires between each leaf and each spine, side by side");
  wire_fields(f, "host", host, "the wires of hosts");
  wire_fields(f, "spine", spine, "the wires between leaves and spines");
}

void LeafSpine::build(Graph& graph) const {
  std::vector<unsigned> below, above;
  for (std::int64_t i = 0; i < leaves; i++) below.push_back(graph.add(name("leaf", i), 1));
  for (std::int64_t i = 0; i < spines; i++) above.push_back(graph.add(name("spine", i), 2));
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < leaves; i++) {
    const std::int64_t mine = hosts == 0 ? hosts_per_leaf : share(hosts, leaves, i);
    add_hosts(graph, below[static_cast<std::size_t>(i)], mine, host, number);
  }
  for (const unsigned leaf : below)
    for (const unsigned each : above)
      for (std::int64_t wire = 0; wire < wires_per_spine; wire++) graph.join(leaf, each, spine);
}

void FatTree::fields(Fields& f) {
  f.integer("k", k, {2, 64}, "ports of each switch, an even number: k^3/4 hosts");
  f.integer("pods", pods, {0, 64}, "pods that are there; 0: k, so that cores have no free ports");
  f.integer("radix", radix, {0, 64},
            "in place of `k`: ports of each switch, an even number, for `hosts` hosts: up to radix^2/2 in two tiers, "
            "`leaf0`, ... and `spine0`, ..., more in three; 0: `k` says the size");
  f.integer("hosts", hosts, {0, 64 * 64 * 64 / 4},
            "with `radix`: hosts in all, spread evenly over the switches below; where they do not divide, the first "
            "switches have one more");
  if (k % 2 != 0) f.refuse("k", "must be even: half of a switch's ports lead up");
  if (pods > k) f.refuse("pods", "must not exceed k: a core has one port for each");
  if (radix != 0) {
    f.exclude("k", "and `radix` exclude each other");
    f.exclude("pods", "and `radix` exclude each other: `hosts` says how many pods there are");
    if (radix % 2 != 0) f.refuse("radix", "must be even: half of a switch's ports lead up");
    if (hosts == 0) f.refuse("radix", "needs `hosts`");
    if (hosts > radix * radix * radix / 4) f.refuse("hosts", "must not exceed radix^3/4, which three tiers hold");
  } else if (hosts != 0) {
    f.refuse("hosts", "needs `radix`; `k` and `pods` say how many there are");
  }
  wire_fields(f, "host", host, "the wires of hosts");
  wire_fields(f, "aggregation", aggregation, "the wires within pods, or between two tiers");
  wire_fields(f, "core", core, "the wires between pods and cores");
  if (radix != 0 && hosts <= radix * radix / 2)
    for (const char* of_cores : {"core_rate", "core_delay"})
      f.exclude(of_cores, "is of three tiers; these hosts need two");
}

void FatTree::build(Graph& graph) const {
  if (radix == 0) {
    const std::int64_t count = pods == 0 ? k : pods;
    build_pods(graph, k / 2, count, count * (k / 2) * (k / 2));
  } else if (hosts <= radix * radix / 2) {
    build_two_tiers(graph);
  } else {
    const std::int64_t of_a_pod = radix / 2 * (radix / 2);
    build_pods(graph, radix / 2, (hosts + of_a_pod - 1) / of_a_pod, hosts);
  }
}

void FatTree::build_two_tiers(Graph& graph) const {
  const std::int64_t half = radix / 2;
  LeafSpine tiers;
  tiers.leaves = (hosts + half - 1) / half;
  tiers.spines = 1;
  while (half % tiers.spines != 0 || tiers.leaves * (half / tiers.spines) > radix) tiers.spines++;
  tiers.wires_per_spine = half / tiers.spines;
  tiers.hosts = hosts;
  tiers.host = host;
  tiers.spine = aggregation;
  tiers.build(graph);
}

void FatTree::build_pods(Graph& graph, std::int64_t half, std::int64_t count, std::int64_t all_hosts) const {
  std::vector<unsigned> cores;
  for (std::int64_t i = 0; i < half * half; i++) cores.push_back(graph.add(name("core", i), 3));
  std::int64_t number = 0;
  for (std::int64_t pod = 0; pod < count; pod++) {
    std::vector<unsigned> edges, above;
    for (std::int64_t i = 0; i < half; i++) edges.push_back(graph.add(name("pod", pod) + name("_edge", i), 1));
    for (std::int64_t i = 0; i < half; i++) above.push_back(graph.add(name("pod", pod) + name("_agg", i), 2));
    for (std::int64_t i = 0; i < half; i++) {
      const unsigned edge = edges[static_cast<std::size_t>(i)];
      add_hosts(graph, edge, share(all_hosts, count * half, pod * half + i), host, number);
      for (const unsigned each : above) graph.join(edge, each, aggregation);
    }
    for (std::int64_t i = 0; i < half; i++)
      for (std::int64_t j = 0; j < half; j++)
        graph.join(above[static_cast<std::size_t>(i)], cores[static_cast<std::size_t>(i * half + j)], core);
  }
}

void Dragonfly::fields(Fields& f) {
  f.integer("routers", routers, kPorts, "switches of a group, all joined to each other");
  f.integer("hosts_per_router", hosts_per_router, kPorts, "hosts at each of them");
  f.integer("global_links", global_links, kPorts, "wires of each of them to other groups");
  f.integer("groups", groups, {0, kSwitchesMax},
            "0: as many as the wires between groups reach, routers * global_links + 1");
  if (groups > routers * global_links + 1)
    f.refuse("groups", "must not exceed routers * global_links + 1: every two groups have a wire");
  wire_fields(f, "host", host, "the wires of hosts");
  wire_fields(f, "local", local, "the wires within groups");
  wire_fields(f, "global", global, "the wires between groups");
}

void Dragonfly::build(Graph& graph) const {
  const std::int64_t count = groups != 0 ? groups : routers * global_links + 1;
  std::vector<std::vector<unsigned>> all;
  std::int64_t hosts = 0;
  for (std::int64_t group = 0; group < count; group++) {
    std::vector<unsigned>& mine = all.emplace_back();
    for (std::int64_t i = 0; i < routers; i++) {
      mine.push_back(graph.add(name("group", group) + name("_router", i), 1));
      add_hosts(graph, mine.back(), hosts_per_router, host, hosts);
      for (std::size_t other = 0; other + 1 < mine.size(); other++) graph.join(mine[other], mine.back(), local);
    }
  }
  // Global wire n of a group leads to the group n + 1 further on, whose wire to here is the n-th from its last one.
  // With fewer groups than there could be that begins anew, as often as there are wires for all.
  const auto router = [&](std::int64_t group, std::int64_t wire) {
    return all[static_cast<std::size_t>(group)][static_cast<std::size_t>(wire / global_links)];
  };
  // Minimal routing takes one global wire: two cost more than that with a local one on either side.
  Wire between = global;
  between.cost = 2 + 1;
  const std::int64_t others = count - 1, times = others > 0 ? routers * global_links / others : 0;
  for (std::int64_t time = 0; time < times; time++)
    for (std::int64_t from = 0; from < count; from++)
      for (std::int64_t to = from + 1; to < count; to++)
        graph.join(router(from, time * others + to - from - 1), router(to, time * others + others - (to - from)),
                   between);
}

void Shapes::fields(Fields& f) {
  int number = 0;
  const auto show = [&](const char* key, const char* doc, auto& shape) {
    f.group(key, doc, [&](Fields& g) { shape.fields(g); });
    if (f.given(key)) {
      if (chosen_ >= 0) f.refuse(key, "and another shape exclude each other");
      chosen_ = number;
    }
    number++;
  };
  show("back_to_back", "two hosts `h0` and `h1` on one wire", back_to_back_);
  show("dumbbell", "switches `left` and `right` with hosts, and one wire between them", dumbbell_);
  show("leaf_spine", "switches `leaf0`, ... with hosts, each joined to each of `spine0`, ...", leaf_spine_);
  show("fat_tree",
       "pods of edge and aggregation switches below cores, all with k ports; or switches of one radix in two or three "
       "tiers",
       fat_tree_);
  show("dragonfly", "groups of switches that are all joined, and wires between every two groups", dragonfly_);
  show("ns3", "what a topology file of HPCC's and ConWeave's ns-3 simulators says", ns3_);
  show("explicit", "hosts and switches by name, and the wires between them", explicit_);
}

Graph Shapes::build() const {
  Graph graph;
  switch (chosen_) {
    case 0:
      back_to_back_.build(graph);
      break;
    case 1:
      dumbbell_.build(graph);
      break;
    case 2:
      leaf_spine_.build(graph);
      break;
    case 3:
      fat_tree_.build(graph);
      break;
    case 4:
      dragonfly_.build(graph);
      break;
    case 5:
      ns3_.build(graph);
      break;
    default:
      explicit_.build(graph);
  }
  address(graph);
  return graph;
}

}  // namespace rocebox::topology
