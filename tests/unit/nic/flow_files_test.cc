// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/flow_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "runtime/topology/ns3_topology.h"

namespace rocebox::flow_files_test {
namespace {

using nic_model::FileFlow;
using nic_model::FlowFile;
using nic_model::SizeDistribution;

// What is wrong, one a line: `LINE:COLUMN: why`.
template <class Parse>
auto parsed(Parse parse, std::string_view text, std::string& wrong) {
  wrong.clear();
  return parse(text, [&](int line, int column, const std::string& why) {
    wrong += std::to_string(line) + ":" + std::to_string(column) + ": " + why + "\n";
  });
}

TEST(ConnectionMatrix, IsReadAsHtsimReadsIt) {
  std::string wrong;
  const FlowFile file = parsed(nic_model::parse_connection_matrix,
                               "# a comment\n"
                               "Nodes 8\n"
                               "Connections 3\n"
                               "Triggers 1\n"
                               "0->5 id 1 start 0 size 2000000 recv_done_trigger 7\n"
                               "1->6 id 2 start 2500000 size 10 prio 3 send_done_trigger 7\n"
                               "5->0 id 3 trigger 7 size 1\n"
                               "trigger id 7 barrier count 2\n",
                               wrong);
  EXPECT_EQ(wrong, "");
  ASSERT_EQ(file.flows.size(), 3u);
  EXPECT_EQ(file.flows[0].source, 0u);
  EXPECT_EQ(file.flows[0].destination, 5u);
  EXPECT_EQ(file.flows[0].bytes, 2'000'000u);
  EXPECT_EQ(file.flows[1].start, 2'500) << "of picoseconds";
  EXPECT_EQ(file.flows[2].trigger, 1u);
  EXPECT_EQ(file.flows[2].line, 7);
  EXPECT_EQ(file.flows[0].fires[1], 1u);
  EXPECT_EQ(file.flows[1].fires[0], 1u);
  EXPECT_EQ(file.triggers.at(0).needed, 2u);
}

TEST(ConnectionMatrix, TellsEveryMistakeWithItsPlace) {
  const std::string head = "Nodes 4\nConnections 1\n";
  const std::pair<std::string, std::string> rows[] = {
      {"0->4 start 0 size 1", "3:1: `4` is no node: the file has 4"},
      {"0->x start 0 size 1", "3:1: `x` is no node"},
      {"0->0 start 0 size 1", "3:1: goes from a node to itself"},
      {"0->1 size 1", "3:1: nothing says when it begins"},
      {"0->1 start 0", "3:1: has no `size`"},
      {"0->1 start 0 size", "3:14: `size` needs a value"},
      {"0->1 start 0 size 0", "3:19: expected bytes"},
      {"0->1 start soon size 1", "3:12: expected a time"},
      {"0->1 start nan size 1", "3:12: expected a time"},
      {"0->1 start 0 size 1 addon", "`addon` is not taken over"},
      {"0->1 start 0 size 1 colour red", "3:21: unknown word `colour`"},
      {"0->1 trigger 1 size 1\nTriggers 1\ntrigger id 1 oneshot", "nothing fires trigger 1"},
      {"0->1 start 0 size 1 recv_done_trigger 1", "there is no line `trigger id 1 ...`"},
      {"0->1 start 0 trigger 1 size 1\nTriggers 1\ntrigger id 1 oneshot", "begins by `start` and by `trigger`"},
      {"0->1 start 0 size 1\n0->1 start 0 size 1", "`Connections 1` and 2 flows contradict each other"},
      {"0->1 start 0 size 1\ntrigger id 1 multishot", "`multishot`: flows that begin again"},
      {"0->1 start 0 size 1\ntrigger id 1 barrier", "`barrier` needs `count NUMBER`"},
      {"0->1 start 0 size 1\nfailure switch_type TOR", "write them under `schedule:`"},
      {"hello", "3:1: expected Nodes, Connections, Triggers"},
  };
  for (const auto& [text, words] : rows) {
    std::string wrong;
    const FlowFile file = parsed(nic_model::parse_connection_matrix, head + text + "\n", wrong);
    EXPECT_NE(wrong.find(words), std::string::npos) << text << "\n" << wrong;
    EXPECT_TRUE(file.flows.empty()) << text;
  }
}

TEST(Ns3Flows, AreReadInBothFormats) {
  std::string wrong;
  // HPCC's: what follows the last flow is no part of it.
  const FlowFile hpcc =
      parsed(nic_model::parse_ns3_flows,
             "2\n2 1 3 100 200000000 2\n3 1 3 100 5000000 2.000001\n4 1 3 100 1 2\n\nsrc dst\n", wrong);
  EXPECT_EQ(wrong, "");
  ASSERT_EQ(hpcc.flows.size(), 2u);
  EXPECT_EQ(hpcc.flows[0].source, 2u);
  EXPECT_EQ(hpcc.flows[0].bytes, 200'000'000u);
  EXPECT_EQ(hpcc.flows[0].start, 0) << "times count from the earliest";
  EXPECT_EQ(hpcc.flows[1].start, 1'000);
  const FlowFile conweave = parsed(nic_model::parse_ns3_flows, "1 \n0 9 3 4096 2.000000500\n", wrong);
  EXPECT_EQ(wrong, "");
  ASSERT_EQ(conweave.flows.size(), 1u);
  EXPECT_EQ(conweave.flows[0].bytes, 4096u);

  const std::pair<const char*, const char*> rows[] = {
      {"", "1:1: is empty"},
      {"two\n", "1:1: expected the number of flows"},
      {"1\n", "1:1: ends behind 0 of 1 flows"},
      {"1\n0 1 3\n", "2:1: expected `SOURCE DESTINATION"},
      {"2\n0 1 3 9 1\n0 1 3 100 9 1\n", "3:1: has 6 words, those before 5"},
      {"1\n0 0 3 9 1\n", "2:3: goes from a node to itself"},
      {"1\n0 1 3 0 1\n", "2:7: expected bytes"},
      {"1\n0 1 3 9 -1\n", "2:9: expected a time"},
      {"1\n-1 1 3 9 1\n", "2:1: expected a node"},
  };
  for (const auto& [text, words] : rows) {
    EXPECT_TRUE(parsed(nic_model::parse_ns3_flows, text, wrong).flows.empty()) << text;
    EXPECT_NE(wrong.find(words), std::string::npos) << text << "\n" << wrong;
  }
}

TEST(Ns3Topology, BecomesAGraph) {
  std::string wrong;
  const topology::Graph graph = parsed(topology::parse_ns3,
                                       "6 3 5\n0 4 5\n"
                                       "1 0 100Gbps 1us 0\n2 4 25Gbps 1000ns 0.01\n3 4 25Gbps 1000ns 0\n"
                                       "0 5 400Gbps 0.001ms 0\n4 5 400Gbps 1000ns 0\n"
                                       "First line: numbers of nodes, switches, links\n",
                                       wrong);
  EXPECT_EQ(wrong, "");
  ASSERT_EQ(graph.nodes.size(), 6u);
  EXPECT_EQ(graph.hosts(), 3u);
  EXPECT_EQ(graph.nodes[1].name, "h1") << "by its number in the file";
  EXPECT_EQ(graph.nodes[0].name, "s0");
  EXPECT_EQ(graph.nodes[0].tier, 1u);
  EXPECT_EQ(graph.nodes[5].tier, 2u) << "above those with hosts";
  ASSERT_EQ(graph.edges.size(), 5u);
  EXPECT_EQ(graph.edges[1].wire.bits_per_second, 25'000'000'000u);
  EXPECT_EQ(graph.edges[1].wire.loss, 0.01);
  EXPECT_EQ(graph.edges[3].wire.delay, 1'000);

  const std::pair<const char*, const char*> rows[] = {
      {"", "is empty"},
      {"2 1\n", "1:1: expected `NODES SWITCHES LINKS`"},
      {"2 3 0\n", "1:3: 3 of 2 nodes cannot be switches"},
      {"2 1 1\n7\n0 1 1Gbps 1us 0\n", "2:1: expected the number of a node, 0 to 1"},
      {"3 2 1\n0 0\n0 1 1Gbps 1us 0\n", "2:3: node 0 is a switch already"},
      {"2 1 2\n0\n0 1 1Gbps 1us 0\n", "ends where 1 more links should be"},
      {"2 1 1\n0\n0 1 fast 1us 0\n", "3:5: expected a rate"},
      {"2 1 1\n0\n0 1 1Gbps 1 0\n", "3:11: expected a delay"},
      {"2 1 1\n0\n0 1 1Gbps 1us 2\n", "3:15: expected a share"},
      {"2 1 1\n0\n0 0 1Gbps 1us 0\n", "3:3: node 0 cannot be joined to itself"},
      {"2 1 2\n0\n0 1 1Gbps 1us 0\n1 0 1Gbps 1us 0\n", "4:3: nodes 1 and 0 are joined already"},
      {"3 2 2\n0 1\n2 0 1Gbps 1us 0\n2 1 1Gbps 1us 0\n", "node 2 is a host with 2 links"},
      {"2 2 1\n0 1\n0 1 1Gbps 1us 0\n", "has no host"},
  };
  for (const auto& [text, words] : rows) {
    EXPECT_TRUE(parsed(topology::parse_ns3, text, wrong).nodes.empty()) << text;
    EXPECT_NE(wrong.find(words), std::string::npos) << text << "\n" << wrong;
  }
}

// Each that is here, by arithmetic of the test's own: trapezia between the points.
TEST(Sizes, OfTheTreeAreWhatTheirFilesSay) {
  const std::filesystem::path folder =
      std::filesystem::path(__FILE__).parent_path() / ".." / ".." / ".." / "configs" / "sim" / "sizes";
  for (const char* name : {"websearch.txt", "hadoop.txt", "alistorage.txt"}) {
    SCOPED_TRACE(name);
    std::ifstream file(folder / name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ASSERT_NE(text, "");
    EXPECT_NE(text.find("SIGCOMM"), std::string::npos) << "where it is from";
    std::string wrong;
    const SizeDistribution sizes = parsed(SizeDistribution::parse, text, wrong);
    ASSERT_EQ(wrong, "");
    std::istringstream lines(text);
    double mean = 0, before_bytes = 0, before_share = 0, largest = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      double bytes = 0, percent = 0;
      ASSERT_TRUE(words >> bytes >> percent) << line;
      mean += (percent / 100 - before_share) * (bytes + before_bytes) / 2;
      before_bytes = largest = bytes;
      before_share = percent / 100;
    }
    EXPECT_EQ(before_share, 1);
    EXPECT_NEAR(sizes.mean(), mean, mean * 1e-9);
    EXPECT_LE(sizes.at(0.9999999999), largest);
    double sum = 0;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; i++) sum += static_cast<double>(sizes.at((i + 0.5) / kDraws));
    EXPECT_NEAR(sum / kDraws, mean, mean * 1e-3);
  }
}

TEST(Sizes, AreDrawnByTheirDistribution) {
  std::string wrong;
  const SizeDistribution sizes = parsed(SizeDistribution::parse, "# two slopes\n0 0\n1000 50\n5000 100\n", wrong);
  EXPECT_EQ(wrong, "");
  EXPECT_DOUBLE_EQ(sizes.mean(), 0.5 * 500 + 0.5 * 3000);
  EXPECT_EQ(sizes.at(0), 1u) << "at least a byte";
  EXPECT_EQ(sizes.at(0.25), 500u);
  EXPECT_EQ(sizes.at(0.5), 1000u);
  EXPECT_EQ(sizes.at(0.75), 3000u);
  EXPECT_EQ(sizes.at(0.999999999), 5000u);
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; i++) sum += static_cast<double>(sizes.at((i + 0.5) / kDraws));
  EXPECT_NEAR(sum / kDraws, sizes.mean(), 1);
  const SizeDistribution steps = parsed(SizeDistribution::parse, "64 0.5\n1500 0.5\n3000 1\n", wrong);
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(steps.at(0.49), 64u);
  EXPECT_EQ(steps.at(0.5), 1500u) << "a share of 0 between";

  const std::pair<const char*, const char*> rows[] = {
      {"", "has no line"},
      {"0 0\n10\n", "2:1: expected `BYTES SHARE`"},
      {"0 0\nx 100\n", "2:1: expected bytes"},
      {"0 0\n10 110\n", "2:4: expected a share"},
      {"0 0\n10 50\n10 100\n", "3:1: is not above the size before it"},
      {"0 0\n10 50\n20 40\n30 100\n", "3:4: is below the share before it"},
      {"0 0\n10 90\n", "must end with a share of 1, or of 100"},
      {"0 100\n", "has no size above 0"},
  };
  for (const auto& [text, words] : rows) {
    EXPECT_TRUE(parsed(SizeDistribution::parse, text, wrong).empty()) << text;
    EXPECT_NE(wrong.find(words), std::string::npos) << text << "\n" << wrong;
  }
}

// A good text with bytes changed, cut and doubled: each parser takes it or says why not, and what it takes is in
// bounds.
TEST(FlowFiles, NoTextIsTakenHalf) {
  const std::string matrix =
      "Nodes 4\nConnections 2\nTriggers 1\n0->1 start 0 size 10 recv_done_trigger 1\n2->3 trigger 1 size 10\n"
      "trigger id 1 oneshot\n";
  const std::string flows = "2\n0 1 3 100 10 2.0\n1 2 3 100 10 2.5\n";
  const std::string network = "4 2 3\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n";
  const std::string sizes = "0 0\n10 50\n100 100\n";
  constexpr std::string_view kBytes = "0123456789->.-# \n\t\rxe\x80";
  std::mt19937_64 random(17);
  const auto mangled = [&](std::string text) {
    for (std::uint64_t n = 1 + random() % 4; n > 0 && !text.empty(); n--) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(at, random() % 16));
          break;
        default:
          text.resize(at);
      }
    }
    return text;
  };
  std::size_t taken = 0;
  for (int i = 0; i < 20'000; i++) {
    std::string wrong;
    for (const FlowFile& file : {parsed(nic_model::parse_connection_matrix, mangled(matrix), wrong),
                                 parsed(nic_model::parse_ns3_flows, mangled(flows), wrong)}) {
      for (const FileFlow& flow : file.flows) {
        EXPECT_NE(flow.source, flow.destination);
        EXPECT_GE(flow.bytes, 1u);
        EXPECT_GE(flow.start, 0);
        for (const std::uint32_t trigger : {flow.trigger, flow.fires[0], flow.fires[1]})
          EXPECT_LE(trigger, file.triggers.size());
      }
      taken += !file.flows.empty();
    }
    const topology::Graph graph = parsed(topology::parse_ns3, mangled(network), wrong);
    EXPECT_EQ(graph.nodes.empty(), !wrong.empty()) << wrong;
    taken += !graph.nodes.empty();
    const SizeDistribution some = parsed(SizeDistribution::parse, mangled(sizes), wrong);
    EXPECT_EQ(some.empty(), !wrong.empty()) << wrong;
    if (some.empty()) continue;
    taken++;
    for (const double u : {0.0, 0.3, 0.5, 0.9, 0.999}) EXPECT_GE(some.at(u), 1u);
  }
  EXPECT_GT(taken, 1'000u) << "texts that are good after all, or nothing was tested";
}

}  // namespace
}  // namespace rocebox::flow_files_test
