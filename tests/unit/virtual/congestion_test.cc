// SPDX-License-Identifier: BSD-3-Clause
// Flows that share a bottleneck: what arithmetic gives, and what DCQCN's authors say of it.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::congestion_test {
namespace {

// Bytes on the wire for each packet of 4096: Ethernet, IPv4, UDP, BTH, ICRC, and preamble, FCS and gap.
constexpr double kPayload = 4096, kOnWire = 4096 + 14 + 20 + 8 + 12 + 4 + 24;

// Two flows through one bottleneck, of so many bytes.
std::string two_flows(const std::string& first, const std::string& second) {
  return "topology:\n"
         "  dumbbell: {hosts_per_side: 2, host_rate: 25Gbps, bottleneck_rate: 10Gbps, host_delay: 1us, "
         "bottleneck_delay: 5us}\n"
         "  hosts: {nic: {header_only: true, window: 256}}\n"
         "  switches: {switch: {traffic_manager: {buffer: 64MiB, packets: 65536}}}\n"
         "workloads:\n"
         "  flows:\n"
         "    flows: [{source: 0, destination: 2, bytes: " +
         first + "}, {source: 1, destination: 3, bytes: " + second + "}]\n";
}

// Senders are not held back, and the buffer holds their windows: each has half of the bottleneck until both are done.
TEST(Bottleneck, TwoFlowsHaveHalfEach) {
  fabric_test::FabricBox box(two_flows("10MB", "10MB"));
  const Json& report = box.run();
  ASSERT_TRUE(box.sim.succeeded());
  const double expected = 2 * 10e6 * 8 * (kOnWire / kPayload) / 10;  // ns
  for (const Json& flow : report["workloads"]["flows"]["flows"])
    EXPECT_NEAR(flow["completion_ns"].get<double>(), expected, 0.005 * expected);
  for (const char* host : {"h0", "h1"}) EXPECT_EQ(box.count(host, "retransmitted_packets"), 0u);
  // A second on its own has all of it, and with other lengths the shorter one ends when twice its bytes have gone.
  fabric_test::FabricBox other(two_flows("4MB", "10MB"));
  const Json& flows = other.run()["workloads"]["flows"]["flows"];
  const double short_one = 2 * 4e6 * 8 * (kOnWire / kPayload) / 10, long_one = 14e6 * 8 * (kOnWire / kPayload) / 10;
  EXPECT_NEAR(flows[0]["completion_ns"].get<double>(), short_one, 0.01 * short_one);
  EXPECT_NEAR(flows[1]["completion_ns"].get<double>(), long_one, 0.01 * long_one);
}

// Directions are transfers of their own: each has a whole wire, and takes about as long as that needs.
TEST(Bottleneck, SlowdownsOfBothDirectionsAreThoseOfOne) {
  const auto run = [](const char* bidirectional) {
    fabric_test::FabricBox box(std::string("topology:\n"
                                           "  back_to_back: {host_rate: 100Gbps}\n"
                                           "  hosts: {nic: {header_only: true}}\n"
                                           "workloads:\n"
                                           "  write_bw: {hosts: [h0, h1], size: 1MiB, iters: 50, bidirectional: ") +
                               bidirectional + "}\n");
    return Json(box.run()["workloads"]["write_bw"]);
  };
  const Json one = run("false"), both = run("true");
  EXPECT_EQ(one["flows"].size(), 1u);
  ASSERT_EQ(both["flows"].size(), 2u);
  EXPECT_EQ(both["flows"][0]["source"], "h0");
  EXPECT_EQ(both["flows"][1]["source"], "h1");
  EXPECT_EQ(both["bytes"], 2 * one["bytes"].get<std::int64_t>());
  for (const Json& flow : both["flows"]) {
    EXPECT_EQ(flow["bytes"], one["bytes"]);
    EXPECT_GT(flow["slowdown"].get<double>(), 1.0);
    EXPECT_LT(flow["slowdown"].get<double>(), 1.1);
  }
  EXPECT_GT(both["details"]["average_bits_per_second"].get<double>(),
            1.9 * one["details"]["average_bits_per_second"].get<double>());
}

// Jain's index of the columns' means over the last quarter.
double fairness(const std::vector<Json>& columns, double* sum_of_all) {
  double sum = 0, squares = 0;
  for (const Json& column : columns) {
    double mean = 0;
    const std::size_t from = column.size() * 3 / 4;
    for (std::size_t i = from; i < column.size(); i++) mean += column[i].get<double>();
    mean /= static_cast<double>(column.size() - from);
    sum += mean;
    squares += mean * mean;
  }
  *sum_of_all = sum;
  return sum * sum / (static_cast<double>(columns.size()) * squares);
}

// Zhu et al., SIGCOMM 2015, with their parameters (g = 1/256, 55 us of both timers, 10 MB, F = 5, R_AI = 40 Mbps; a CNP
// each 50 us at most, each of which reduces rate and target; marks from 5 to 200 KB, 1%): flows that begin one after
// the other converge to equal shares, the bottleneck stays used, and its queue where it marks.
void converge(int flows) {
  SCOPED_TRACE(flows);
  std::string yaml =
      "topology:\n"
      "  dumbbell: {hosts_per_side: " +
      std::to_string(flows) +
      ", host_rate: 40Gbps, bottleneck_rate: 40Gbps}\n"
      "  hosts: {nic: {header_only: true, window: 512, dcqcn: {enabled: true, dce_tcp_g: 1020, dce_tcp_rtt: 55us, "
      "rpg_time_reset: 55us, rpg_byte_reset: 10MB, rpg_threshold: 5, rpg_ai_rate: 40Mbps, rpg_hai_rate: 200Mbps, "
      "clamp_tgt_rate: true, rate_reduce_monitor_period: 0, min_time_between_cnps: 50us}}}\n"
      "  switches: {switch: {traffic_manager: {buffer: 32MiB, packets: 32768, ecn: {min: 5KB, max: 200KB, probability: "
      "1%}}}}\n"
      "sim: {time: 120ms, sample: 1ms}\n"
      "workloads:\n";
  for (int i = 0; i < flows; i++)
    yaml += "  w" + std::to_string(i) + ": {type: write_bw, hosts: [h" + std::to_string(i) + ", h" +
            std::to_string(i + flows) + "], size: 1MB, duration: 1s, start: " + std::to_string(2 * i) + "ms}\n";
  fabric_test::FabricBox box(yaml);
  const Json& series = box.run()["series"];
  std::vector<Json> loads;
  for (int i = 0; i < flows; i++) {
    const std::string host = "h" + std::to_string(i);
    loads.push_back(series["utilisation"][host + "_left from " + host + ".wire"]);
  }
  double used = 0;
  const double index = fairness(loads, &used);
  EXPECT_GT(index, 0.97) << "Jain's index";
  EXPECT_GT(used, 0.95) << "of the bottleneck";
  EXPECT_LT(used, 1.02);
  EXPECT_GT(loads[0][1].get<double>(), 0.95) << "alone it has all";
  EXPECT_EQ(box.count("left", "drop_buffer_full"), 0u);
  const Json& queue = series["levels"]["left.switch.buffer_bytes"];
  double sum = 0;
  const std::size_t from = queue.size() / 2;
  for (std::size_t i = from; i < queue.size(); i++) {
    sum += queue[i].get<double>();
    EXPECT_LT(queue[i].get<double>(), 300'000.0) << "soon above where all is marked";
  }
  const double mean = sum / static_cast<double>(queue.size() - from);
  EXPECT_LT(mean, 200'000.0);
  EXPECT_GT(mean, 5'000.0);
}

TEST(Dcqcn, FlowsConvergeToEqualSharesOfABottleneck) {
  for (const int flows : {2, 4, 10, 20}) converge(flows);
}

}  // namespace
}  // namespace rocebox::congestion_test
