// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/shapes.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/virtual/graph_kit.h"

namespace rocebox::topology_test {
namespace {

using sim_test::load;
using sim_test::SimBox;
using topology::Graph;

// Follows routes from a host to another by every choice among equal next hops; hops on the way, -1 when one goes wrong.
int hops(const Graph& graph, const std::vector<Placement>& told, unsigned at, unsigned to, unsigned limit = 16) {
  if (at == to) return 0;
  if (limit == 0) return -1;
  std::vector<unsigned> next;
  if (graph.is_host(at)) {
    next.push_back(graph.nodes[at].ports[0].node);
  } else {
    const Placement::Route* best = nullptr;
    for (const Placement::Route& route : told[at].routes) {
      roce::IpAddress masked = graph.nodes[to].address;
      if (route.prefix.bits == 24) masked.back() = 0;
      if (masked == route.prefix.address && (!best || route.prefix.bits > best->prefix.bits)) best = &route;
    }
    if (!best) return -1;
    for (const Placement::Hop& hop : best->via) {
      const unsigned node = graph.nodes[at].ports[hop.port].node;
      if (graph.nodes[node].mac != hop.mac) return -1;
      next.push_back(node);
    }
  }
  int all = -2;
  for (const unsigned node : next) {
    const int here = hops(graph, told, node, to, limit - 1);
    if (here < 0 || (all >= 0 && all != here)) return -1;  // every equal path is as long
    all = here;
  }
  return all + 1;
}

TEST(Topology, EveryShapeHasItsSizeAndLeadsEverywhereByShortestPaths) {
  const struct Row {
    std::string yaml;
    std::size_t hosts, switches, edges;
    int diameter;
  } rows[] = {
      {"back_to_back: {}", 2, 0, 1, 1},
      {"dumbbell: {hosts_per_side: 3}", 6, 2, 7, 3},
      {"leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 4}", 12, 5, 18, 4},
      {"fat_tree: {k: 4}", 16, 20, 48, 6},
      {"fat_tree: {radix: 8, hosts: 32}", 32, 8 + 4, 32 + 8 * 4, 4},
      {"fat_tree: {radix: 36, hosts: 188}", 188, 11 + 6, 188 + 11 * 6 * 3, 4},
      {"fat_tree: {radix: 36, hosts: 40}", 40, 3 + 2, 40 + 3 * 2 * 9, 4},
      {"fat_tree: {radix: 4, hosts: 9}", 9, 4 + 3 * 4, 9 + 3 * 4 + 3 * 4, 6},
      {"fat_tree: {radix: 4, hosts: 16}", 16, 20, 48, 6},
      {"dragonfly: {routers: 2, hosts_per_router: 1, global_links: 1}", 6, 6, 12, 5},
      {"dragonfly: {routers: 4, hosts_per_router: 2, global_links: 2}", 72, 36, 72 + 9 * 6 + 36, 5},
      {"dragonfly: {routers: 3, hosts_per_router: 1, global_links: 2, groups: 4}", 12, 12, 12 + 4 * 3 + 2 * 6, 5},
      {kRing, 5, 5, 5 + 7, 4},
  };
  for (const Row& row : rows) {
    const Graph graph = graph_of(row.yaml);
    EXPECT_EQ(graph.hosts(), row.hosts) << row.yaml;
    EXPECT_EQ(graph.switches(), row.switches) << row.yaml;
    EXPECT_EQ(graph.edges.size(), row.edges) << row.yaml;
    const std::vector<Placement> told = placements(graph);
    int longest = 0;
    for (unsigned a = 0; a < graph.nodes.size(); a++)
      for (unsigned b = 0; b < graph.nodes.size(); b++) {
        if (a == b || !graph.is_host(a) || !graph.is_host(b)) continue;
        const int far = hops(graph, told, a, b);
        ASSERT_GT(far, 0) << row.yaml << " " << graph.nodes[a].name << " " << graph.nodes[b].name;
        longest = std::max(longest, far);
      }
    EXPECT_EQ(longest, row.diameter) << row.yaml;
  }
}

// Wires between groups on the ways from a switch to those that `told` sends to `to`, at most.
unsigned global_wires(const Graph& graph, const std::vector<Placement>& told, unsigned at, unsigned to) {
  const auto group = [&](unsigned node) { return graph.nodes[node].name.substr(0, graph.nodes[node].name.find('_')); };
  unsigned most = 0;
  for (const Placement::Route& route : told[at].routes)
    for (const Placement::Hop& hop : route.via) {
      const unsigned next = graph.nodes[at].ports[hop.port].node;
      roce::IpAddress masked = graph.nodes[to].address;
      masked.back() = 0;
      if (route.prefix.bits != 24 || masked != route.prefix.address) continue;
      most = std::max(most, (group(at) != group(next)) + global_wires(graph, told, next, to));
    }
  return most;
}

TEST(Topology, DragonfliesAreRoutedMinimally) {
  for (const char* yaml : {"dragonfly: {routers: 4, hosts_per_router: 2, global_links: 2}",
                           "dragonfly: {routers: 4, hosts_per_router: 1, global_links: 2, groups: 3}"}) {
    const Graph graph = graph_of(yaml);
    const std::vector<Placement> told = placements(graph);
    for (unsigned a = 0; a < graph.nodes.size(); a++)
      for (unsigned b = 0; b < graph.nodes.size(); b++)
        if (!graph.is_host(a) && graph.is_host(b)) {
          EXPECT_LE(global_wires(graph, told, a, b), 1U) << yaml;
        }
  }
}

TEST(Topology, FewGroupsHaveAsManyWiresBetweenThemAsThereArePorts) {
  const Graph graph = graph_of("dragonfly: {routers: 4, hosts_per_router: 1, global_links: 2, groups: 3}");
  for (const Graph::Node& node : graph.nodes) {
    if (node.tier == 0) continue;
    const auto local = std::ranges::count_if(node.ports, [&](const Graph::Neighbor& port) {
      return graph.edges[port.edge].wire.cost == 1 && !graph.is_host(port.node);
    });
    EXPECT_EQ(local, 3);
    EXPECT_EQ(node.ports.size(), 1U + 3 + 2) << node.name;
  }
}

TEST(Topology, NamesAndAddressesAreOneEach) {
  const Graph graph = graph_of("fat_tree: {k: 6}");
  std::set<std::string> names;
  std::set<roce::Mac> macs;
  std::set<roce::IpAddress> addresses;
  for (const Graph::Node& node : graph.nodes) {
    EXPECT_TRUE(names.insert(node.name).second) << node.name;
    EXPECT_TRUE(macs.insert(node.mac).second);
    EXPECT_TRUE(node.tier != 0 || addresses.insert(node.address).second) << roce::address_text(node.address);
  }
  for (const Graph::Edge& edge : graph.edges) EXPECT_TRUE(names.insert(edge.name).second) << edge.name;
  EXPECT_EQ(addresses.size(), 54u);
}

TEST(Topology, TablesAreSmallAndHopsEqual) {
  const Graph graph = graph_of("fat_tree: {k: 8}");
  const std::vector<Placement> told = placements(graph);
  for (unsigned i = 0; i < graph.nodes.size(); i++) {
    if (graph.is_host(i)) continue;
    const std::size_t own = graph.nodes[i].tier == 1 ? 4 : 0, prefixes = 8 * 4 - (graph.nodes[i].tier == 1 ? 1 : 0);
    EXPECT_EQ(told[i].routes.size(), own + prefixes) << "a prefix for each switch with hosts";
  }
}

const std::string kLeafSpine =
    "topology:\n"
    "  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 3, host_rate: 10Gbps, spine_rate: 40Gbps, host_delay: 2us}\n"
    "  hosts: {station: {}}\n"
    "  switches: {switch: {}}\n";

TEST(Topology, SwitchesRouteBetweenHosts) {
  SimBox box(kLeafSpine + "workloads: {shout: {bytes: 10kB, times: 4}}\n");
  EXPECT_EQ(box.config.devices.size(), 6u + 4u);
  EXPECT_EQ(box.config.links.size(), 6u + 4u);
  const Json report = box.run();
  EXPECT_TRUE(box.sim.succeeded()) << report.dump(1).substr(0, 4000);
  EXPECT_EQ(report["workloads"]["shout"]["transfers_done"], 24);
  EXPECT_EQ(report["workloads"]["shout"]["hosts"], 6);
  std::int64_t up = 0;
  for (const char* spine : {"spine0", "spine1"})
    for (const Json& port : report["devices"][spine]["ports"]) up += port["rx_packets"].get<std::int64_t>();
  EXPECT_EQ(up, 2 * 4 * 10) << "of h2 to h3 and of h5 to h0, ten packets each message";
  // Nobody waits for anybody but on the last wire, so transfers take what they take in an empty network, headers aside.
  EXPECT_GT(report["workloads"]["shout"]["slowdown"]["p50"], 1.0);
  EXPECT_LT(report["workloads"]["shout"]["slowdown"]["p50"], 1.3);
}

TEST(Topology, WhatIsWrittenForOneDeviceOrLinkIsLaidOverIt) {
  const config::RunConfig config = load(kLeafSpine +
                                        "devices: {h1: {station: {rate: 1Gbps}}}\n"
                                        "links: {h1_leaf0: {loss: 50%}}\n");
  const auto value = [](const OptionValues& values, const std::string& name) {
    for (const auto& [path, text] : flatten_all(values))
      if (path == name) return text;
    return std::string("none");
  };
  const auto device = [&](const char* name) {
    return std::ranges::find(config.devices, name, &config::DeviceConfig::name)->kernels[0].values;
  };
  const auto link = [&](const char* name) {
    return std::ranges::find(config.links, name, &config::LinkConfig::name)->kernel.values;
  };
  EXPECT_EQ(value(device("h1"), "rate"), "1Gbps");
  EXPECT_EQ(value(device("h1"), "address"), "10.0.0.2") << "as the topology gives it";
  EXPECT_EQ(value(device("h0"), "rate"), "10Gbps");
  EXPECT_EQ(value(link("h1_leaf0"), "loss"), "50%");
  EXPECT_EQ(value(link("h1_leaf0"), "delay"), "2us");
  EXPECT_EQ(value(link("h0_leaf0"), "loss"), "0%");
}

// 100 Gbit/s over 10 ms are 125 MB: 1.5 million of the shortest frames, of which a link has room for 1048576 at most.
TEST(Topology, AWireHasRoomForWhatIsOnItsWay) {
  const auto packets = [](const char* wire) {
    const config::RunConfig config =
        load("topology:\n  dumbbell: {hosts_per_side: 1, " + std::string(wire) +
             "}\n  hosts: {station: {}}\n  switches: {switch: {}}\nworkloads: {shout: {bytes: 10kB}}\n");
    const auto bottleneck = std::ranges::find(config.links, "left_right", &config::LinkConfig::name);
    for (const auto& [path, text] : flatten_all(bottleneck->kernel.values))
      if (path == "packets") return text;
    return std::string("none");
  };
  EXPECT_EQ(packets("bottleneck_rate: 100Gbps, bottleneck_delay: 1us"), "65536");
  EXPECT_EQ(packets("bottleneck_rate: 100Gbps, bottleneck_delay: 1ms"), std::to_string(100'000'000 / (84 * 8) + 1));
  EXPECT_EQ(packets("bottleneck_rate: 100Gbps, bottleneck_delay: 10ms"), "1048576");
}

TEST(Topology, MistakesAreTold) {
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {"topology: {hosts: {station: {}}}\n", "a topology needs a shape"},
      {"topology: {leaf_spine: {}, hosts: {station: {}}}\n", "the topology has 4 switches: say what each is"},
      {"topology: {back_to_back: {}, hosts: {station: {}}, switches: {switch: {}}}\n", "the topology has no switches"},
      {"topology: {back_to_back: {}, dumbbell: {}, hosts: {station: {}}}\n", "exclude each other"},
      {"topology: {fat_tree: {k: 5}, hosts: {station: {}}, switches: {switch: {}}}\n", "must be even"},
      {"topology: {fat_tree: {k: 64}, hosts: {station: {}}, switches: {switch: {}}}\n", "at most 16384"},
      {"topology: {fat_tree: {radix: 8}, hosts: {station: {}}, switches: {switch: {}}}\n", "`radix` needs `hosts`"},
      {"topology: {fat_tree: {radix: 7, hosts: 2}, hosts: {station: {}}, switches: {switch: {}}}\n", "must be even"},
      {"topology: {fat_tree: {radix: 8, hosts: 129}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`hosts` must not exceed radix^3/4"},
      {"topology: {fat_tree: {hosts: 9}, hosts: {station: {}}, switches: {switch: {}}}\n", "`hosts` needs `radix`"},
      {"topology: {fat_tree: {radix: 8, hosts: 9, pods: 2}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`pods` and `radix` exclude each other"},
      {"topology: {fat_tree: {radix: 8, hosts: 9, core_rate: 1Gbps}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`core_rate` is of three tiers"},
      {"topology: {fat_tree: {k: 8, hosts: 9}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`hosts` needs `radix`"},
      {"topology: {fat_tree: {k: 8, radix: 8, hosts: 9}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`k` and `radix` exclude each other"},
      {"topology: {dumbbell: {hosts_per_side: 200}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`ports` must name 1 to 160 ports, names 201"},
      {"topology: {dragonfly: {routers: 2, global_links: 1, groups: 4}, hosts: {station: {}}, switches: {switch: "
       "{}}}\n",
       "must not exceed routers * global_links + 1"},
      {"topology: {leaf_spine: {leaves: 0}, hosts: {station: {}}, switches: {switch: {}}}\n", "`leaves` must be"},
      {"topology: {leaf_spine: {leaves: 4, hosts_per_leaf: 300}, hosts: {station: {}}, switches: {switch: {}}}\n",
       "`hosts_per_leaf` must be from 1 to 240"},
      {"topology: {ns3: {}, hosts: {station: {}}, switches: {switch: {}}}\n", "needs `file: NAME`"},
      {"topology: {leaf_spin: {}}\n", "unknown key `leaf_spin`; did you mean `leaf_spine`?"},
      {"topology: {back_to_back: {}, hosts: {station: {rat: 1Gbps}}}\n", "unknown key `rat`"},
      {"topology: {dumbbell: {}, hosts: {station: {}}, switches: {station: {}}}\n", "has 1 port(s), and the topology"},
      {kLeafSpine + "links: {h1_laef0: {loss: 50%}}\n",
       ": the topology has no link `h1_laef0`; did you mean `h1_leaf0`?"},
      {kLeafSpine + "links: {haul: {loss: 50%}}\n", "the topology has no link `haul`; known: "},
      {kLeafSpine + "links: {haul: {loss: 50%}}\n", "; a link beside its own needs `between: [device.port"},
      {kLeafSpine + "links: {h1_laef0: {between: [h0.wire]}}\n", "link `h1_laef0` needs `between:"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    load(row.yaml, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << mistakes;
  }
}

TEST(Topology, WhatItPlacesContradictsNothingThatIsWritten) {
  for (const char* yaml :
       {"topology: {fat_tree: {k: 4}, hosts: {station: {}}, switches: {switch: {forward: {ecmp_hash: crc16}}}}\n",
        "topology: {dragonfly: {routers: 2, hosts_per_router: 2, global_links: 2, groups: 3}, hosts: {station: {}}, "
        "switches: {switch: {}}, multicast: [{group: 239.1.0.1, members: all}]}\n"}) {
    std::string mistakes;
    const config::RunConfig config = load(yaml, &mistakes);
    EXPECT_EQ(mistakes, "") << yaml;
    load(config::effective_yaml(config), &mistakes);
    EXPECT_EQ(mistakes, "") << "again: " << yaml;
  }
}

TEST(Topology, TheEffectiveConfigurationLoadsToTheSame) {
  const config::RunConfig config = load(kLeafSpine +
                                        "devices: {h1: {station: {rate: 1Gbps}}}\n"
                                        "links: {h1_leaf0: {loss: 50%}}\n"
                                        "workloads: {shout: {times: 2}}\nsim: {time: 1s}\n");
  const std::string text = config::effective_yaml(config);
  const config::RunConfig again = load(text);
  EXPECT_EQ(text, config::effective_yaml(again));
  ASSERT_EQ(again.devices.size(), config.devices.size());
  for (std::size_t i = 0; i < config.devices.size(); i++)
    EXPECT_EQ(flatten_all(config.devices[i].kernels[0].values), flatten_all(again.devices[i].kernels[0].values));
  for (std::size_t i = 0; i < config.links.size(); i++)
    EXPECT_EQ(flatten_all(config.links[i].kernel.values), flatten_all(again.links[i].kernel.values));
}

}  // namespace
}  // namespace rocebox::topology_test
