// SPDX-License-Identifier: BSD-3-Clause
// Switches hand packets over as they begin to send them, and lines count later: what a run reports is the same, at
// every sample and wherever it ends. A schedule, whatever it says, makes packets wait for their time.
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::ahead_test {
namespace {

using fabric_test::FabricBox;

constexpr char kLater[] = "schedule: {later: {at: 100s, links: {leaf0_spine0: {delay: 2us}}}}\n";

std::string fabric(const std::string& switches, const std::string& links, const std::string& workloads,
                   const std::string& sim) {
  return "topology:\n"
         "  leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 3, host_rate: 100Gbps, spine_rate: 40Gbps}\n"
         "  hosts: {nic: {header_only: true, ack_every: 1, congestion_control: dcqcn}}\n"
         "  switches: {switch: {" +
         switches + "}}\n  links: {" + links + "}\nworkloads:\n" + workloads + "sim: {" + sim + "}\n";
}

void expect_same(const std::string& yaml) {
  FabricBox ahead(yaml), in_time(yaml + kLater);
  ahead.run();
  in_time.run();
  ASSERT_GT(ahead.report["utilisation"].size(), 0u);
  for (const char* part : {"workloads", "goodput", "series", "utilisation", "devices", "links", "hash"})
    EXPECT_EQ(ahead.report[part], in_time.report[part]) << part << '\n' << yaml;
  for (const char* word : {"span_ns", "end", "packets_out", "held_at_end", "pool_packets_max"})
    EXPECT_EQ(ahead.report["run"][word], in_time.report["run"][word]) << word << '\n' << yaml;
  EXPECT_GT(ahead.report["run"]["events"], 0);
}

const std::string kWorkloads =
    "  permutation: {size: 40KiB, shift: 3, timeout: 16}\n"
    "  incast: {size: 30KiB, start: 3us, timeout: 16}\n";

TEST(Ahead, EverySampleIsTheSame) {
  expect_same(fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, "sample: 700ns"));
  expect_same(fabric("traffic_manager: {buffer: 60KiB, ecn: {min: 4KiB, max: 40KiB, probability: 50%}}", "", kWorkloads,
                     "sample: 900ns"));
}

TEST(Ahead, SoItIsWithLossWithPausesAndWithOthersBeside) {
  expect_same(fabric("traffic_manager: {buffer: 1MiB}", "loss: 1%", kWorkloads, "sample: 900ns"));
  expect_same(fabric("traffic_manager: {buffer: 1MiB, pfc: {classes: [0], xoff: 20KiB, xon: 10KiB}}", "", kWorkloads,
                     "sample: 900ns"));
  expect_same(fabric("forward: {balance: least_queue}", "", kWorkloads, "sample: 900ns"));
}

TEST(Ahead, WhereverTheRunEnds) {
  for (const char* time : {"5us", "7777ns", "10us", "12345ns", "20us"})
    expect_same(fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, std::string("sample: 1us, time: ") + time));
}

TEST(Ahead, ItCostsLess) {
  const std::string yaml = fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, "sample: 10us");
  FabricBox ahead(yaml), in_time(yaml + kLater);
  EXPECT_LT(ahead.run()["run"]["events"], in_time.run()["run"]["events"]);
}

}  // namespace
}  // namespace rocebox::ahead_test
