// SPDX-License-Identifier: BSD-3-Clause
// Networks whose wires are written one by one.
#include "runtime/topology/explicit_topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/config/units.h"
#include "runtime/topology/multicast.h"
#include "tests/unit/virtual/fabric_kit.h"
#include "tests/unit/virtual/graph_kit.h"

namespace rocebox::topology_test {
namespace {

using topology::Graph;

// What stands for a graph when each of its nodes and wires is written. Wires side by side are one row.
std::string written(const Graph& graph) {
  std::string lists[2], wires;
  for (const Graph::Node& node : graph.nodes)
    lists[node.tier > 0] += (lists[node.tier > 0].empty() ? "" : ", ") + node.name;
  for (std::size_t i = 0; i < graph.edges.size();) {
    const Graph::Edge& edge = graph.edges[i];
    unsigned count = 0;
    while (i < graph.edges.size() && graph.edges[i].ends[0].node == edge.ends[0].node &&
           graph.edges[i].ends[1].node == edge.ends[1].node) {
      i++;
      count++;
    }
    wires += fmt::format("    - {{between: [{}, {}], rate: {}, delay: {}, cost: {}, count: {}}}\n",
                         graph.nodes[edge.ends[0].node].name, graph.nodes[edge.ends[1].node].name,
                         config::format_rate(edge.wire.bits_per_second), config::format_duration(edge.wire.delay),
                         edge.wire.cost, count);
  }
  return fmt::format("explicit:\n  hosts: [{}]\n  switches: [{}]\n  wires:\n{}", lists[0], lists[1], wires);
}

// Everything that a node is told, as text.
std::string told(const Placement& placement) {
  std::string all = fmt::format("{} {} {}\n", roce::mac_text(placement.mac), placement.tier,
                                placement.address ? roce::address_text(*placement.address) : "");
  for (const Placement::PlacedPort& port : placement.ports)
    all += fmt::format("port {} {} {} {} {} {}\n", port.name, port.bits_per_second, port.delay,
                       roce::mac_text(port.neighbor_mac), port.neighbor, port.neighbor_tier);
  for (const Placement::Route& route : placement.routes) {
    all += "route " + roce::prefix_text(route.prefix);
    for (const Placement::Hop& hop : route.via) all += fmt::format(" {}/{}", hop.port, roce::mac_text(hop.mac));
    all += "\n";
  }
  return all;
}

std::map<std::string, std::string> all_told(const Graph& graph) {
  std::vector<Placement> placed = placements(graph);
  topology::MulticastConfig groups;
  groups.group = roce::ipv4(239, 1, 0, 1);
  groups.count = 5;
  if (graph.switches() > 0) topology::add_trees(graph, topology::groups_of(graph, {&groups, 1}), placed);
  std::map<std::string, std::string> all;
  for (std::size_t i = 0; i < placed.size(); i++) all[graph.nodes[i].name] = told(placed[i]);
  return all;
}

TEST(ExplicitTopology, TellsNodesWhatTheShapeWouldThatItWritesOut) {
  for (const char* yaml :
       {"back_to_back: {host_delay: 3us}", "dumbbell: {hosts_per_side: 3, bottleneck_rate: 40Gbps}",
        "leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 4, wires_per_spine: 2, spine_rate: 400Gbps}",
        "fat_tree: {k: 4, core_delay: 2us}", "fat_tree: {radix: 8, hosts: 21}",
        "dragonfly: {routers: 3, hosts_per_router: 2, global_links: 1, global_delay: 5us}"}) {
    const Graph shape = graph_of(yaml), same = graph_of(written(shape));
    EXPECT_EQ(all_told(shape), all_told(same)) << yaml;
    ASSERT_EQ(shape.edges.size(), same.edges.size()) << yaml;
    for (std::size_t i = 0; i < shape.edges.size(); i++) EXPECT_EQ(shape.edges[i].name, same.edges[i].name);
  }
}

TEST(ExplicitTopology, WiresHaveRateAndDelayOfTheirTierWhereTheySayNone) {
  const Graph graph = graph_of(
      "explicit: {hosts: [a, b], switches: [s, t], host_rate: 25Gbps, host_delay: 2us, trunk_rate: 400Gbps, "
      "trunk_delay: 5ms, wires: [{between: [a, s]}, {between: [t, b], rate: 10Gbps}, {between: [s, t]}, "
      "{between: [s, t], delay: 7ms, loss: 1%, cost: 3}]}");
  ASSERT_EQ(graph.edges.size(), 4u);
  const struct {
    const char* name;
    std::uint64_t rate;
    Nanos delay;
    double loss;
    unsigned cost;
  } rows[] = {{"a_s", 25'000'000'000, 2'000, 0, 1},
              {"t_b", 10'000'000'000, 2'000, 0, 1},
              {"s_t", 400'000'000'000, 5'000'000, 0, 1},
              {"s_t_2", 400'000'000'000, 7'000'000, 0.01, 3}};
  for (std::size_t i = 0; i < 4; i++) {
    EXPECT_EQ(graph.edges[i].name, rows[i].name);
    EXPECT_EQ(graph.edges[i].wire.bits_per_second, rows[i].rate) << rows[i].name;
    EXPECT_EQ(graph.edges[i].wire.delay, rows[i].delay) << rows[i].name;
    EXPECT_EQ(graph.edges[i].wire.loss, rows[i].loss) << rows[i].name;
    EXPECT_EQ(graph.edges[i].wire.cost, rows[i].cost) << rows[i].name;
  }
  EXPECT_EQ(placements(graph)[0].routes.back().via.size(), 1u) << "the dear wire carries nothing";
}

TEST(ExplicitTopology, MistakesAreToldOnceWithTheirPlace) {
  const std::string rest = "  hosts: {station: {}}\n  switches: {switch: {}}\n";
  std::string many = "[";
  for (int i = 0; i < 300; i++) many += fmt::format("{}h{}", i ? ", " : "", i);
  std::string wires = "[";
  for (int i = 0; i < 300; i++) wires += fmt::format("{}{{between: [s0, h{}]}}", i ? ", " : "", i);
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {"{}", "f.yaml:2:3: `explicit:` needs `hosts: [NAME, ...]` and `wires:"},
      {"{host_rate: 1Gbps}", "`explicit:` needs `hosts:"},
      {"{hosts: [a], wires: []}", "f.yaml:2:21: `hosts` names `a`, which no wire joins"},
      {"{switches: [s, t], wires: [{between: [s, t]}]}", "`hosts` must name a host"},
      {"{hosts: [a, b, a], wires: [{between: [a, b]}]}", "f.yaml:2:21: `hosts` names `a` twice"},
      {"{hosts: [a, s], switches: [s], wires: [{between: [a, s]}]}", "`hosts` names `s`, which is a switch already"},
      {"{hosts: [a, b.c], switches: [s], wires: [{between: [a, s]}]}", "`hosts` has `b.c`, which is no name"},
      {"{hosts: [a, b], switches: [site], wires: [{between: [a, site]}, {between: [b, sit]}]}",
       "f.yaml:2:87: `between` names `sit`, which is neither in `hosts:` nor in `switches:`; did you mean `site`?"},
      {"{hosts: [a, b], wires: [{rate: 1Gbps}]}", "`between` must name the two nodes"},
      {"{hosts: [a, b], wires: [{between: [a, b, a]}]}", "`between` must name the two nodes"},
      {"{hosts: [a], switches: [s], wires: [{between: [a, s]}, {between: [s, s]}]}", "`between` joins `s` to itself"},
      {"{hosts: [a, b, c], switches: [s], wires: [{between: [a, s]}, {between: [b, c]}]}",
       "`between` joins hosts `b` and `c`, which would reach no other node: put a switch"},
      {"{hosts: [a], switches: [s, t], wires: [{between: [a, s]}, {between: [a, t]}]}",
       "`between` gives host `a` 2 wires, and a host has one"},
      {"{hosts: [a, b], wires: [{between: [a, b], count: 2}]}", "`between` gives host `a` 2 wires"},
      {"{hosts: [a, b], wires: [{between: [a, b], count: 0}]}", "`count` must be from 1 to 240"},
      {"{hosts: [a, b], wires: [{between: [a, b], cost: 0}]}", "`cost` must be from 1 to 65535"},
      {"{hosts: [a, b], switches: [s], wires: [{between: [a, s]}]}", "`hosts` names `b`, which no wire joins"},
      {"{hosts: [a], switches: [s, t], wires: [{between: [a, s]}]}", "`switches` names `t`, which no wire joins"},
      {"{hosts: [a, b], switches: [s, t], wires: [{between: [a, s]}, {between: [b, t]}]}",
       "`wires` must make one network: no way leads from `s` to `t`"},
      {"{hosts: [a], switches: [s, t], wires: [{between: [a, s]}, {between: [t, s], count: 200}, {between: [s, t], "
       "count: 100}]}",
       "`between` gives `s` 301 wires, and a switch has up to 240 ports"},
      {"{hosts: " + many + "], switches: [s0], wires: " + wires + "]}", "`between` gives `s0` 241 wires"},
      {"{hosts: [a], switches: [s, s_t, t, t_s], wires: [{between: [a, s]}, {between: [s, t_s]}, {between: [s_t, s]}, "
       "{between: [t, s]}]}",
       "`wires` between [s, t_s] and between [s_t, s] would both be called `s_t_s`: give a node another name"},
      {"{hosts: [a, b], wire: [{between: [a, b]}]}", "unknown key `wire`"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    sim_test::load("topology:\n  explicit: " + row.yaml + "\n" + rest, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << "\n" << mistakes;
    EXPECT_EQ(mistakes.find(row.words), mistakes.rfind(row.words)) << "once: " << mistakes;
  }
}

// A ring of four with two hosts each, one wire of it slow, and names as users give them.
const std::string kTown =
    "topology:\n"
    "  explicit:\n"
    "    hosts: [ann, bob, cid, dan, eve, fay, gus, hal]\n"
    "    switches: [north, east, south, west]\n"
    "    host_rate: 10Gbps\n"
    "    trunk_rate: 40Gbps\n"
    "    wires:\n"
    "      - {between: [ann, north]}\n"
    "      - {between: [bob, north]}\n"
    "      - {between: [cid, east]}\n"
    "      - {between: [dan, east]}\n"
    "      - {between: [eve, south]}\n"
    "      - {between: [fay, south]}\n"
    "      - {between: [gus, west]}\n"
    "      - {between: [hal, west]}\n"
    "      - {between: [north, east], count: 2}\n"
    "      - {between: [east, south]}\n"
    "      - {between: [south, west], rate: 1Gbps, delay: 1ms}\n"
    "      - {between: [west, north]}\n"
    "  hosts: {nic: {header_only: true}}\n"
    "  switches: {switch: {}}\n"
    "  multicast: [{group: 239.1.0.1, members: [ann, dan, eve, hal]}]\n";

TEST(ExplicitTopology, ARingWithASlowWireCarriesAllToAll) {
  fabric_test::FabricBox box(kTown +
                             "devices: {gus: {nic: {rate: 5Gbps}}}\n"
                             "links: {east_south: {loss: 0.1%}}\n"
                             "schedule: {cut: {at: 50us, links: {north_east_2: {up: false}}},"
                             " mended: {at: 60us, links: {north_east_2: {up: true}}}}\n"
                             "workloads: {all_to_all: {size: 20KB, hosts: [hal, ann, cid, eve, gus]}}\n");
  const Json& report = box.run();
  EXPECT_TRUE(box.sim.succeeded()) << report.dump(1).substr(0, 4000);
  const Json& all = report["workloads"]["all_to_all"];
  EXPECT_EQ(all["transfers_done"], 5 * 4);
  for (const Json& flow : all["flows"]) EXPECT_NE(flow["source"], "bob") << "who is not among the hosts";
  EXPECT_EQ(report["tiers"].size(), 1u) << "each switch has hosts";
  EXPECT_EQ(report["tiers"]["tier1"]["switches"], 4);
  EXPECT_GT(box.link("south_west", "forward_packets") + box.link("south_west", "reverse_packets"), 0u);
}

TEST(ExplicitTopology, TheEffectiveConfigurationLoadsToTheSame) {
  const config::RunConfig config =
      fabric_test::load(kTown + "devices: {gus: {nic: {rate: 5Gbps}}}\nworkloads: {all_to_all: {}}\n");
  const std::string text = config::effective_yaml(config);
  const config::RunConfig again = fabric_test::load(text);
  EXPECT_EQ(text, config::effective_yaml(again));
  ASSERT_EQ(again.placements.size(), config.placements.size());
  for (std::size_t i = 0; i < config.placements.size(); i++) {
    EXPECT_EQ(again.placements[i].first, config.placements[i].first);
    EXPECT_EQ(told(again.placements[i].second), told(config.placements[i].second));
  }
}

// Wires of a row stand in the order of its names: those of the first end, and for each those of the second.
TEST(ExplicitTopology, RangesStandForTheNamesThatTheyRunThrough) {
  const auto load = [](const std::string& hosts, const std::string& switches, const std::string& wires,
                       const std::string& members) {
    return fabric_test::load(
        "topology:\n  explicit: {hosts: " + hosts + ", switches: " + switches + ", host_rate: 25Gbps, wires: [" +
        wires + "]}\n  hosts: {nic: {}}\n  switches: {switch: {}}\n  multicast: [{group: 239.1.0.1, members: " +
        members + "}]\n");
  };
  const config::RunConfig ranges = load("[h8..h11, x]", "[leaf1..leaf2, s01..s02]",
                                        "{between: [h8..h10, leaf1]}, {between: [leaf2, h11]}, {between: [x, leaf2]}, "
                                        "{between: [leaf1..leaf2, s01..s02], delay: 5us}",
                                        "[x, h9..h10]");
  const config::RunConfig names =
      load("[h8, h9, h10, h11, x]", "[leaf1, leaf2, s01, s02]",
           "{between: [h8, leaf1]}, {between: [h9, leaf1]}, {between: [h10, leaf1]}, {between: [leaf2, h11]}, "
           "{between: [x, leaf2]}, {between: [leaf1, s01], delay: 5us}, {between: [leaf1, s02], delay: 5us}, "
           "{between: [leaf2, s01], delay: 5us}, {between: [leaf2, s02], delay: 5us}",
           "[x, h9, h10]");
  ASSERT_EQ(ranges.placements.size(), 9u);
  ASSERT_EQ(names.placements.size(), 9u);
  for (std::size_t i = 0; i < 9; i++) {
    EXPECT_EQ(ranges.placements[i].first, names.placements[i].first);
    EXPECT_EQ(told(ranges.placements[i].second), told(names.placements[i].second));
  }
  ASSERT_EQ(ranges.links.size(), names.links.size());
  for (std::size_t i = 0; i < names.links.size(); i++) EXPECT_EQ(ranges.links[i].name, names.links[i].name);
  EXPECT_EQ(ranges.links.back().name, "leaf2_s02");
  const std::string text = config::effective_yaml(ranges);
  EXPECT_EQ(text, config::effective_yaml(fabric_test::load(text)));
}

// Switches of two tiers whose names begin alike.
TEST(ExplicitTopology, TiersOfOneNameAreToldApart) {
  fabric_test::FabricBox box(
      "topology:\n"
      "  explicit: {hosts: [a, b], switches: [site1, site2, site3], wires: [{between: [a, site1]}, {between: [b, "
      "site2]}, {between: [site1, site3]}, {between: [site3, site2]}]}\n"
      "  hosts: {nic: {header_only: true}}\n  switches: {switch: {}}\n"
      "workloads: {permutation: {size: 10KB}}\n");
  const Json& report = box.run();
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_EQ(report["tiers"]["tier1"]["switches"], 2);
  EXPECT_EQ(report["tiers"]["tier2"]["switches"], 1);
}

}  // namespace
}  // namespace rocebox::topology_test
