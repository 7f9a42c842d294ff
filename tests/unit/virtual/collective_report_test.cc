// SPDX-License-Identifier: BSD-3-Clause
// What a report says of collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::collective_report_test {
namespace {

// Four hosts; those on either side share a wire of their own rate.
std::string dumbbell(const std::string& workload) {
  return "topology:\n"
         "  dumbbell: {hosts_per_side: 2, host_rate: 100Gbps, bottleneck_rate: 100Gbps}\n"
         "  hosts: {nic: {header_only: true}}\n"
         "  switches: {switch: {}}\n"
         "workloads: {" +
         workload + "}\n";
}

Json run(const std::string& yaml) {
  fabric_test::FabricBox box(yaml);
  return box.run();
}

Nanos longest_group(const Json& workload) {
  Nanos longest = 0;
  for (const Json& row : workload["details"]["groups"])
    longest = std::max(longest, row["completion_time_ns"].get<Nanos>());
  return longest;
}

// Of a ring of four one flow leaves each side, so nobody waits for anybody; of two groups of two both do.
TEST(CollectiveReport, HasTimesAndSlowdownsOfGroups) {
  const Json one = run(dumbbell("all_reduce: {size: 4MiB}"))["workloads"]["all_reduce"];
  EXPECT_EQ(one["collectives"]["count"], 1);
  EXPECT_EQ(one["collectives"]["done"], 1);
  EXPECT_EQ(one["collectives"]["completion"]["mean_ns"], longest_group(one));
  EXPECT_EQ(one["collectives"]["completion"]["max_ns"], longest_group(one));
  EXPECT_GT(one["collectives"]["slowdown"]["mean"], 1);
  EXPECT_LT(one["collectives"]["slowdown"]["mean"], 1.1);

  const Json two = run(dumbbell("all_reduce: {size: 4MiB, groups: 2}"))["workloads"]["all_reduce"];
  EXPECT_EQ(two["collectives"]["done"], 2);
  EXPECT_EQ(two["collectives"]["completion"]["max_ns"], longest_group(two));
  EXPECT_LE(two["collectives"]["completion"]["p50_ns"], two["collectives"]["completion"]["max_ns"]);
  EXPECT_GT(two["collectives"]["slowdown"]["mean"], 1.8);
  EXPECT_LT(two["collectives"]["slowdown"]["mean"], 2.3);
}

TEST(CollectiveReport, HasNoSlowdownWhereTransfersAloneDoNotSayIt) {
  const Json spread = run(dumbbell("all_to_all: {size: 1MiB}"))["workloads"]["all_to_all"];
  EXPECT_EQ(spread["collectives"]["slowdown"]["mean"], 0);
  EXPECT_GT(spread["collectives"]["completion"]["mean_ns"], 0);
  const Json pairs = run(dumbbell("all_to_all: {size: 1MiB, algorithm: pairwise}"))["workloads"]["all_to_all"];
  EXPECT_GE(pairs["collectives"]["slowdown"]["mean"], 1);
  const Json tree = run(dumbbell("broadcast: {size: 1MiB}"))["workloads"]["broadcast"];
  EXPECT_GE(tree["collectives"]["slowdown"]["mean"], 1);
  EXPECT_LT(tree["collectives"]["slowdown"]["mean"], 2);
  EXPECT_FALSE(run(dumbbell("permutation: {size: 1KiB}"))["workloads"]["permutation"].contains("collectives"));
}

TEST(CollectiveReport, CountsFromTheFirstStep) {
  const Json one = run(dumbbell("all_reduce: {size: 64KiB, rdma_cm: true}"))["workloads"]["all_reduce"];
  const auto connecting = one["details"]["connected_after_ns"].get<Nanos>();
  EXPECT_GT(connecting, 0);
  EXPECT_EQ(one["collectives"]["completion"]["max_ns"].get<Nanos>() + connecting, one["duration_ns"]);
}

TEST(CollectiveReport, OfOneThatIsCutOffHasNoTimes) {
  const Json one =
      run(dumbbell("all_reduce: {size: 1GiB}") + "sim: {time: 100us}\n")["workloads"]["all_reduce"]["collectives"];
  EXPECT_EQ(one["count"], 1);
  EXPECT_EQ(one["done"], 0);
  EXPECT_EQ(one["completion"]["max_ns"], 0);
}

}  // namespace
}  // namespace rocebox::collective_report_test
