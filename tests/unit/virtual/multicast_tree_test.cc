// SPDX-License-Identifier: BSD-3-Clause
// Trees of multicast groups, judged by following packets over the graph: what the trees should be is not computed here,
// only what they must do.
#include "runtime/roce/multicast.h"
#include "runtime/topology/multicast.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/unit/virtual/graph_kit.h"

namespace rocebox::multicast_tree_test {
namespace {

using topology::Graph;
using topology::MulticastGroup;

// What becomes of one packet: copies that hosts get, and crossings of wires.
struct Spread {
  std::map<unsigned, unsigned> copies;
  std::size_t crossings = 0;
  bool endless = false;
};

Spread spread(const Graph& graph, const std::vector<Placement>& told, const MulticastGroup& group, unsigned from) {
  struct At {
    unsigned node, edge;  // it came by
  };
  Spread result;
  std::vector<At> ways = {{graph.nodes[from].ports[0].node, graph.nodes[from].ports[0].edge}};
  while (!ways.empty()) {
    const At at = ways.back();
    ways.pop_back();
    if (++result.crossings > 4 * graph.edges.size()) {
      result.endless = true;
      return result;
    }
    if (graph.is_host(at.node)) {
      result.copies[at.node]++;
      continue;
    }
    for (const Placement::Route& mine : told[at.node].routes)
      if (mine.prefix.address == group.address)
        for (const Placement::Hop& hop : mine.via)
          if (const Graph::Neighbor& next = graph.nodes[at.node].ports[hop.port]; next.edge != at.edge)
            ways.push_back({next.node, next.edge});
  }
  return result;
}

long groups_at(const Placement& told) {
  return std::ranges::count_if(told.routes, [](const Placement::Route& route) {
    return roce::is_multicast(route.prefix.address) && !route.via.empty();
  });
}

// Every member's packets come to each other member once, and to nobody else; no switch is told of groups in vain.
void check(const Graph& graph, const std::vector<Placement>& told, const MulticastGroup& group) {
  const std::set<unsigned> members(group.members.begin(), group.members.end());
  for (const unsigned from : members) {
    const Spread result = spread(graph, told, group, from);
    ASSERT_FALSE(result.endless);
    for (unsigned node = 0; node < graph.nodes.size(); node++) {
      if (!graph.is_host(node)) continue;
      const auto got = result.copies.find(node);
      const unsigned copies = got == result.copies.end() ? 0 : got->second;
      ASSERT_EQ(copies, members.contains(node) && node != from ? 1u : 0u)
          << graph.nodes[from].name << " to " << graph.nodes[node].name;
    }
  }
  for (unsigned node = 0; node < graph.nodes.size(); node++)
    for (const Placement::Route& mine : told[node].routes)
      if (mine.prefix.address == group.address && members.size() > 1 && !mine.via.empty()) {
        EXPECT_GE(mine.via.size(), 2u) << graph.nodes[node].name << " is a blind alley";
      }
}

TEST(MulticastTrees, GiveEachMemberOneCopyInEveryShape) {
  std::minstd_rand random(7);
  for (const char* yaml :
       {"dumbbell: {hosts_per_side: 5}", "leaf_spine: {leaves: 5, spines: 3, hosts_per_leaf: 3, wires_per_spine: 2}",
        "leaf_spine: {leaves: 12, spines: 6, hosts: 188, wires_per_spine: 3}", "fat_tree: {k: 4}",
        "fat_tree: {k: 8, pods: 3}", "dragonfly: {routers: 3, hosts_per_router: 2, global_links: 1}",
        topology_test::kRing}) {
    const Graph graph = topology_test::graph_of(yaml);
    std::vector<unsigned> hosts;
    for (unsigned node = 0; node < graph.nodes.size(); node++)
      if (graph.is_host(node)) hosts.push_back(node);
    std::vector<MulticastGroup> groups;
    for (std::uint8_t number = 0; number < 24; number++) {
      std::ranges::shuffle(hosts, random);
      const std::size_t size = number == 0 ? hosts.size() : 1 + random() % std::min<std::size_t>(hosts.size(), 12);
      groups.push_back({roce::ipv4(239, 0, 0, number), {hosts.begin(), hosts.begin() + static_cast<long>(size)}, {}});
    }
    std::vector<Placement> told = placements(graph);
    topology::add_trees(graph, groups, told);
    for (const MulticastGroup& group : groups) check(graph, told, group);
  }
}

TEST(MulticastTrees, GoRoundTheSwitchesOnTop) {
  const struct Row {
    std::string yaml;
    std::size_t tops;
    unsigned tier;
  } rows[] = {{"leaf_spine: {leaves: 4, spines: 3, hosts_per_leaf: 2}", 3, 2}, {"fat_tree: {k: 4}", 4, 3}};
  for (const Row& row : rows) {
    const Graph graph = topology_test::graph_of(row.yaml);
    topology::MulticastConfig all;
    all.group = roce::ipv4(239, 1, 0, 255);
    all.count = static_cast<std::int64_t>(2 * row.tops);
    const std::vector<MulticastGroup> groups = topology::groups_of(graph, {&all, 1});
    ASSERT_EQ(groups.size(), 2 * row.tops);
    EXPECT_EQ(groups[1].address, roce::ipv4(239, 1, 1, 0)) << "behind .255";
    std::vector<Placement> told = placements(graph);
    topology::add_trees(graph, groups, told);
    for (unsigned node = 0; node < graph.nodes.size(); node++)
      if (graph.nodes[node].tier == row.tier) {
        EXPECT_EQ(groups_at(told[node]), 2) << "a tree each, and again";
      }
    for (const MulticastGroup& group : groups) check(graph, told, group);
  }
}

// Twelve leaves, six spines, three wires between each two: eighteen groups use all of them.
TEST(MulticastTrees, UseEachOfTheWiresSideBySide) {
  const Graph graph = topology_test::graph_of("leaf_spine: {leaves: 12, spines: 6, hosts: 188, wires_per_spine: 3}");
  EXPECT_EQ(graph.hosts(), 188u);
  EXPECT_EQ(graph.switches(), 18u);
  for (unsigned node = 0; node < graph.nodes.size(); node++) EXPECT_LE(graph.nodes[node].ports.size(), 36u);
  topology::MulticastConfig all;
  all.group = roce::ipv4(239, 1, 0, 0);
  all.count = 18;
  std::vector<Placement> told = placements(graph);
  topology::add_trees(graph, topology::groups_of(graph, {&all, 1}), told);
  std::map<unsigned, unsigned> uses;  // by edge between switches
  for (unsigned node = 0; node < graph.nodes.size(); node++)
    for (const Placement::Route& route : told[node].routes)
      if (roce::is_multicast(route.prefix.address))
        for (const Placement::Hop& hop : route.via)
          if (const Graph::Neighbor& next = graph.nodes[node].ports[hop.port]; !graph.is_host(next.node))
            uses[next.edge]++;
  EXPECT_EQ(uses.size(), 12u * 6 * 3);
  for (const auto& [edge, times] : uses) EXPECT_EQ(times, 2u) << "one tree, told at both ends";
}

TEST(MulticastTrees, MistakesAreTold) {
  const std::string rest = "  hosts: {station: {}}\n  switches: {switch: {}}\n";
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {"  dumbbell: {}\n  multicast: [{group: 10.0.0.1}]\n", "is no multicast address"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1, members: [h0, h9]}]\n", "member `h9` is no host"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1, members: [h0, left]}]\n", "member `left` is no host"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1, members: [h0, h0]}]\n", "names member `h0` twice"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1, root: h0}]\n", "root `h0` is no switch"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1}, {group: 238.128.0.1}]\n", "have one MAC address"},
      {"  dumbbell: {}\n  multicast: [{group: 239.255.255.255, count: 2}]\n", "have no multicast addresses"},
      {"  dumbbell: {}\n  multicast: [{group: 239.0.0.1, count: 600}, {group: 239.1.0.1, count: 600}]\n",
       "1200 multicast groups, at most 1024"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    sim_test::load("topology:\n" + row.yaml + rest, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << mistakes;
  }
  std::string mistakes;
  sim_test::load("topology: {back_to_back: {}, multicast: [{group: 239.0.0.1}], hosts: {station: {}}}\n", &mistakes);
  EXPECT_NE(mistakes.find("need switches"), std::string::npos) << mistakes;
}

}  // namespace
}  // namespace rocebox::multicast_tree_test
