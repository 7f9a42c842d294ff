// SPDX-License-Identifier: BSD-3-Clause
// Workloads whose queue pairs fail: the run fails, says whose, and does not go on for what never comes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::fabric_test {
namespace {

// Eight tries with `timeout: 14`, 67 ms each.
constexpr Nanos kGaveUp = 536'870'912;

// Two pairs of hosts; the link of the first pair loses all.
std::string two_pairs(const std::string& rest, const std::string& lost = "loss: 100%") {
  std::string devices;
  for (const char* name : {"a: {nic: {address: 10.0.0.1", ", b: {nic: {address: 10.0.0.2",
                           ", c: {nic: {address: 10.0.0.3", ", d: {nic: {address: 10.0.0.4"})
    devices += name + std::string(", header_only: true, rate: 10Gbps}}");
  return "devices: {" + devices +
         "}\n"
         "links: {ab: {between: [a.wire, b.wire], delay: 1us, " +
         lost + "}, cd: {between: [c.wire, d.wire], delay: 1us}}\n" + rest;
}

TEST(FailedWorkloads, FailTheRunAndEndIt) {
  const struct Row {
    const char *workload, *error;
  } rows[] = {
      {"write_bw, hosts: [a, b], iters: 10", "10 work requests failed, first `a` to `b`, QPN 0x000011: RETRY_EXC_ERR"},
      {"write_bw, hosts: [b, a], duration: 3ms, rate_limit: 100Mbps", "`b` to `a`, QPN 0x000011: RETRY_EXC_ERR"},
      {"write_bw, hosts: [a, b], iters: 10, qp: 3, bidirectional: true", "work requests failed, first `"},
      {"read_lat, hosts: [b, a], iters: 5", "a work request failed: `b` to `a`, QPN 0x000011: RETRY_EXC_ERR"},
      {"send_lat, hosts: [a, b], iters: 5", "work requests failed, first `a` to `b`, QPN 0x000011: RETRY_EXC_ERR"},
      {"permutation, hosts: [b, a]", "2 queue pairs failed, first `"},
      {"all_reduce, hosts: [a, b]", "2 queue pairs failed, first `"},
      {"flows, hosts: [b, a], connections: 1, flows: [{source: 0, destination: 1}, {source: 0, destination: 1, start: "
       "1ms}]",
       "a queue pair failed: `b` to `a`, QPN 0x000011: RETRY_EXC_ERR"},
      {"flows, hosts: [a, b], rdma_cm: true, flows: [{source: 0, destination: 1}]",
       "no connection from `a` to `b`: no answer"},
      {"all_reduce, hosts: [a, b], rdma_cm: true", "no connection from `"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.workload);
    const std::string noise =
        "  noise: {type: write_bw, hosts: [c, d], duration: 3600s, rate_limit: 10kbps, size: 100, background: true}\n";
    const std::string yaml = two_pairs("workloads:\n  w: {type: " + std::string(row.workload) + "}\n" + noise);
    FabricBox box(yaml);
    const Json& report = box.run();
    EXPECT_EQ(report["run"]["end"], "all workloads had finished");
    const Json& failed = report["workloads"]["w"];
    EXPECT_TRUE(failed["failed"].get<bool>() && failed["finished"].get<bool>());
    EXPECT_EQ(failed["transfers_done"], 0);
    EXPECT_FALSE(failed["details"].contains("completion_time_ns"));
    EXPECT_FALSE(report["workloads"]["noise"]["failed"].get<bool>());
    EXPECT_FALSE(box.sim.succeeded());
    const std::vector<std::string> told = box.sim.failures();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(told[0].starts_with("f.yaml: workload `w` failed: ")) << told[0];
    EXPECT_NE(told[0].find(row.error), std::string::npos) << told[0];

    FabricBox wanted(yaml + "expect: workloads.w.failed == 1\n");
    wanted.run();
    EXPECT_TRUE(wanted.sim.succeeded());
  }
}

// What others of it carry still comes, and what is to begin later is waited for.
TEST(FailedWorkloads, EndWithWhatHasNotFailed) {
  for (const char* more : {"{source: 2, destination: 3, bytes: 250MB, start: 400ms}",
                           "{source: 2, destination: 3, bytes: 1kB, start: 1600ms}"}) {
    SCOPED_TRACE(more);
    FabricBox box(
        two_pairs("workloads:\n  w: {type: flows, hosts: [a, b, c, d], flows: [{source: 0, destination: 1}, " +
                  std::string(more) + "]}\n"));
    const Json& report = box.run();
    EXPECT_EQ(report["run"]["end"], "all workloads had finished");
    EXPECT_EQ(report["workloads"]["w"]["transfers_done"], 1);
    EXPECT_TRUE(report["workloads"]["w"]["failed"].get<bool>());
    EXPECT_GT(report["run"]["span_ns"], 590 * kMillisecond);
    EXPECT_FALSE(box.sim.succeeded());
  }
}

TEST(FailedWorkloads, EndWhenTheyHaveFailed) {
  FabricBox box(
      two_pairs("workloads: {w: {type: flows, hosts: [a, b], flows: [{source: 0, destination: 1}]}}\nsim: {time: 2s}\n",
                "loss: 100%, match: {kind: roce}"));
  EXPECT_NEAR(box.run()["run"]["span_ns"].get<double>(), kGaveUp, 1e6);
}

// Its ACKs are lost, and it is all there.
TEST(FailedWorkloads, WhatCameAllTheSameIsDone) {
  FabricBox box(
      two_pairs("workloads: {w: {type: flows, hosts: [a, b], flows: [{source: 0, destination: 1, bytes: 100kB}]}}\n",
                "reverse: {delay: 1us, loss: 100%, match: {kind: roce}}"));
  const Json& report = box.run();
  EXPECT_EQ(report["workloads"]["w"]["transfers_done"], 1);
  EXPECT_TRUE(report["workloads"]["w"]["finished"].get<bool>());
}

}  // namespace
}  // namespace rocebox::fabric_test
