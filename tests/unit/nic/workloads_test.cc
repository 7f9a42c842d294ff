// SPDX-License-Identifier: BSD-3-Clause
// Workloads over NICs that stand at one switch.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nic_model/host/workloads/collectives.h"
#include "nic_model/host/workloads/perftest_config.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/star_kit.h"

namespace rocebox::test {
namespace {

TEST(Workloads, CollectivesMoveWhatTheyMust) {
  struct Case {
    const char *name, *yaml;
    std::size_t transfers;
    std::uint64_t bytes;
  };
  for (const Case& one : {Case{"all_reduce", "size: 8MiB", 8 * 14, 8ull * 14 << 20},
                          Case{"all_reduce", "{size: 8MiB, algorithm: halving_doubling}", 8 * 6, 8ull * 14 << 20},
                          Case{"all_reduce", "{size: 8MiB, ranks: shuffled, groups: 2}", 8 * 6, 8ull * 6 << 21},
                          Case{"all_gather", "size: 8MiB", 8 * 7, 8ull * 7 << 20},
                          Case{"all_gather", "{size: 8MiB, algorithm: linear}", 8 * 7, 8ull * 7 << 20},
                          Case{"all_gather", "{size: 8MiB, algorithm: recursive_doubling}", 8 * 3, 8ull * 7 << 20},
                          Case{"broadcast", "size: 8MiB", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, radix: 3}", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, groups: 2, radix: 4}", 6, 6ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, algorithm: binary_tree}", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, algorithm: binary_tree, segments: 5}", 35, 7ull * 8 << 20},
                          Case{"reduce_scatter", "{size: 8MiB, groups: 2}", 8 * 3, 8ull * 3 << 21},
                          Case{"all_to_all", "size: 8MiB", 8 * 7, 8ull * 7 << 20},
                          Case{"all_to_all", "{size: 8MiB, algorithm: pairwise}", 8 * 7, 8ull * 7 << 20},
                          Case{"permutation", "{size: 1MiB, order: random}", 8, 8ull << 20},
                          Case{"incast", "size: 1MiB", 7, 7ull << 20}}) {
    Star star(8, "header_only: true", "delay: 1us");
    const auto options = workload_options(one.name, one.yaml);
    const auto workload = options->make(star.all, 7);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << one.name;
    EXPECT_EQ(workload->flows().size(), one.transfers) << one.name << one.yaml;
    std::uint64_t bytes = 0;
    for (const FlowRecord& flow : workload->flows()) bytes += flow.bytes;
    EXPECT_EQ(bytes, one.bytes) << one.name << one.yaml;
  }
}

// In step k each sends to the one k places further, and each step waits for the one before.
TEST(Workloads, APairwiseExchangeIsOneTransferAfterTheOther) {
  Star star(6, "header_only: true", "delay: 1us");
  const auto options = workload_options("all_to_all", "{size: 6MiB, algorithm: pairwise}");
  const auto workload = options->make(star.all, 7);
  star.run(*workload);
  ASSERT_EQ(workload->flows().size(), 6u * 5);
  Nanos free[6] = {};
  unsigned step[6] = {};
  for (const FlowRecord& flow : workload->flows()) {
    EXPECT_EQ(flow.destination, (flow.source + ++step[flow.source]) % 6);
    EXPECT_GE(flow.start, free[flow.source]);
    free[flow.source] = flow.end;
  }
}

TEST(Workloads, APermutationRunsAtLineRate) {
  Star star(8, "header_only: true", "delay: 1us");
  const auto workload = workload_options("permutation", "size: 16MiB")->make(star.all, 7);
  star.run(*workload);
  // 4096 packets of 4096 + 16 (RETH of the first) + 58 + 24 bytes, ICRC included, and four wires' delay.
  const double least = 4096 * (4096 + 58 + 24) * 8.0 / 100;
  EXPECT_GT(static_cast<double>(star.now), least);
  EXPECT_LT(static_cast<double>(star.now), least * 1.02);
}

// From when on they may run ahead of each other.
TEST(Workloads, SayWhenHostsActAlone) {
  for (const auto& [name, yaml, alone] : std::initializer_list<std::tuple<const char*, const char*, bool>>{
           {"permutation", "size: 64KiB", true},
           {"incast", "{size: 64KiB, rdma_cm: true}", true},
           {"flows", "flows: [{source: 0, destination: 1, bytes: 64KiB}, {source: 2, destination: 1, start: 1ms}]",
            true},
           {"all_reduce", "size: 64KiB", false},
           {"write_bw", "iters: 5", false}}) {
    Star star(std::string_view(name) == "write_bw" ? 2 : 4, "header_only: true", "delay: 1us");
    const auto workload = workload_options(name, yaml)->make(star.all, 1);
    EXPECT_FALSE(workload->hosts_act_alone()) << name << " has not begun";
    workload->start(0);
    bool was_alone = false;
    star.run(
        [&, name = name] {
          EXPECT_TRUE(workload->hosts_act_alone() || !was_alone) << name;
          was_alone = was_alone || workload->hosts_act_alone();
          return workload->finished();
        },
        kSecond);
    EXPECT_TRUE(workload->finished()) << name;
    EXPECT_EQ(was_alone, alone) << name;
  }
}

// Each host has one successor in its group's ring; groups go round in orders of their own, which the seed gives.
TEST(Workloads, ShuffledRanksAreARingOfEachGroupsOwn) {
  static constexpr unsigned kHosts = 32, kGroups = 4;
  const auto rings = [](std::uint64_t seed, const char* ranks) {
    Star star(kHosts, "header_only: true", "delay: 1us");
    const auto workload =
        workload_options("reduce_scatter", "{size: 64KiB, groups: 4, ranks: " + std::string(ranks) + "}")
            ->make(star.all, seed);
    star.run(*workload);
    EXPECT_TRUE(workload->finished());
    std::map<unsigned, unsigned> next;
    for (const FlowRecord& flow : workload->flows()) {
      EXPECT_EQ(flow.source % kGroups, flow.destination % kGroups);
      EXPECT_EQ(next.try_emplace(flow.source, flow.destination).first->second, flow.destination);
    }
    EXPECT_EQ(next.size(), kHosts);
    std::set<std::vector<unsigned>> orders;  // of the groups: places within them, from the first host's on
    for (unsigned group = 0; group < kGroups; group++) {
      std::vector<unsigned> order;
      for (unsigned at = group; order.empty() || (at != group && order.size() < kHosts); at = next[at])
        order.push_back(at / kGroups);
      EXPECT_EQ(order.size(), kHosts / kGroups) << "one ring";
      orders.insert(order);
    }
    return orders;
  };
  EXPECT_EQ(rings(1, "in_order").size(), 1u);
  EXPECT_EQ(rings(1, "shuffled").size(), kGroups);
  EXPECT_EQ(rings(1, "shuffled"), rings(1, "shuffled"));
  EXPECT_NE(rings(1, "shuffled"), rings(2, "shuffled"));
}

TEST(Workloads, PerftestMeasuresWhatTheWireAllows) {
  const auto run = [](const std::string& name, const std::string& yaml) {
    Star star(2, "header_only: true", "delay: 1us");
    const auto options = workload_options(name, yaml);
    const auto workload = options->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << name << yaml;
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["failed_completions"], 0) << name;
    return report.values;
  };
  const double share = 4096.0 / (4096 + 58 + 24);
  for (const char* name : {"write_bw", "read_bw", "send_bw"}) {
    const double rate = run(name, "{size: 1MiB, iters: 50, qp: 2}")["average_bits_per_second"];
    EXPECT_GT(rate, 0.97e11 * share) << name;
    EXPECT_LT(rate, 1.0e11 * share) << name;
  }
  const double both = run("write_bw", "{size: 1MiB, iters: 50, bidirectional: true}")["average_bits_per_second"];
  EXPECT_GT(both, 1.9e11 * share);
  const double limited = run("write_bw", "{size: 64KiB, iters: 100, rate_limit: 10Gbps}")["average_bits_per_second"];
  EXPECT_NEAR(limited, 1e10, 2e8);
  EXPECT_EQ(run("write_bw", "{size: 64KiB, duration: 1ms, connection: UC}")["messages"] > 150, true);
  // What was there at 1 ms, at most one message of 128 less than the wire had taken.
  const double in_time = run("write_bw", "{size: 64KiB, duration: 1ms, tx_depth: 64}")["in_duration_bits_per_second"];
  EXPECT_LT(in_time, 1e11 * share);
  EXPECT_GT(in_time, 1e11 * share - 65536 * 8 * 1e3 - 1e9);
  // Two wires of 1 us, and a packet through three serialisers of 100 Gbit/s.
  for (const char* name : {"write_lat", "send_lat"}) EXPECT_NEAR(run(name, "iters: 20")["t_typical"], 2020, 20) << name;
  EXPECT_NEAR(run("read_lat", "iters: 20")["t_typical"], 4040, 40);
  EXPECT_NEAR(run("atomic_lat", "iters: 20")["t_typical"], 4040, 40);
}

// A run that ends before has no rate of that time.
TEST(Workloads, PerftestTellsOfADurationOnceItIsOver) {
  Star star(2, "header_only: true", "delay: 1us");
  const auto workload = workload_options("write_bw", "{size: 64KiB, duration: 1ms, tx_depth: 64}")->make(star.all, 1);
  workload->start(0);
  const auto tells = [&](Nanos until) {
    star.run([] { return false; }, until);
    NumbersOf report;
    workload->report(report);
    return report.values.contains("in_duration_bits_per_second");
  };
  EXPECT_FALSE(tells(500 * kMicrosecond));
  EXPECT_TRUE(tells(1100 * kMicrosecond));
  EXPECT_FALSE(workload->finished());
}

// Each atomic adds one, or swaps once, to eight bytes of the server; sixteen of a queue pair are on their way at most.
TEST(Workloads, PerftestSendsAtomics) {
  for (const char* type : {"FETCH_AND_ADD", "CMP_AND_SWAP"}) {
    Star star(2, "mtu: 4200", "delay: 1us");
    const auto workload =
        workload_options("atomic_bw", std::string("{iters: 64, qp: 2, atomic_type: ") + type + "}")->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << type;
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["messages"], 128) << type;
    EXPECT_EQ(report.values["failed_completions"], 0) << type;
    EXPECT_EQ(workload->flows()[0].bytes, 128 * 8u) << type;
    EXPECT_GT(report.values["completion_time"], 4 * 4000) << type << ": sixteen in a round trip";
    EXPECT_LT(report.values["completion_time"], 4.5 * 4000 + 4000) << type;
  }
}

// A doubled message of an unreliable connection is a message to its NIC, but not one more to respond to.
TEST(Workloads, LatencyTestsEndWhereTheNetworkDoublesMessages) {
  for (const char* name : {"write_lat", "send_lat"}) {
    Star star(2, "header_only: true", "{delay: 1us, duplicate: 60%}");
    const auto workload = workload_options(name, "{iters: 13, connection: UC}")->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << name;
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["messages"], 13) << name;
    EXPECT_TRUE(report.values["t_min"] > 2000 || name == std::string("send_lat"));
    int events = 0;
    while (star.fabric.next_deadline() < 100 * kSecond && ++events < 10'000)
      star.fabric.run(star.now = star.fabric.next_deadline());
    EXPECT_LT(events, 10'000) << name << " goes on after its end";
  }
}

// Completions of some messages only, and time or a rate that cut the last ones off.
TEST(Workloads, PerftestEndsAndCountsAllMessages) {
  struct Case {
    const char* yaml;
    double messages;  // 0: as many as come in the time
  };
  for (const Case& one : {Case{"{size: 1KiB, iters: 5, tx_depth: 8, cq_mod: 4}", 5},
                          Case{"{size: 1KiB, iters: 7, tx_depth: 4, cq_mod: 4, qp: 3}", 21},
                          Case{"{size: 1KiB, iters: 9, tx_depth: 2, cq_mod: 2, qp: 2, bidirectional: true}", 36},
                          Case{"{size: 4KiB, duration: 20us, rate_limit: 1Gbps}", 0},
                          Case{"{size: 4KiB, duration: 20us, rate_limit: 1Gbps, tx_depth: 4, cq_mod: 4}", 0},
                          Case{"{size: 4KiB, duration: 20us, tx_depth: 4, cq_mod: 4}", 0}}) {
    Star star(2, "header_only: true", "delay: 1us");
    const auto options = workload_options("write_bw", one.yaml);
    const auto workload = options->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << one.yaml;
    NumbersOf report;
    workload->report(report);
    EXPECT_TRUE(one.messages == 0 || report.values["messages"] == one.messages) << one.yaml;
  }
}

// Each queue pair's messages have a size between both, by the run's seed.
TEST(Workloads, PerftestDrawsSizes) {
  constexpr std::uint64_t kMessages = 4 * 3, kLeast = 1000, kMost = 9000;
  nic_model::PerftestConfig config;
  config.size = kLeast, config.size_max = kMost, config.qp = 64;
  const std::vector<std::uint64_t> drawn = config.sizes(1);
  EXPECT_GT(std::set(drawn.begin(), drawn.end()).size(), 48u) << "each its own";
  EXPECT_GE(*std::ranges::min_element(drawn), kLeast);
  EXPECT_LE(*std::ranges::max_element(drawn), kMost);
  for (const char* name : {"write_bw", "read_bw", "send_bw"}) {
    std::vector<std::uint64_t> bytes;
    for (const std::uint64_t seed : {1, 1, 2}) {
      Star star(2, "mtu: 1500", "delay: 1us");
      const auto options =
          workload_options(name, "{size: 1000, size_max: 9000, iters: 3, qp: 4, tx_depth: 2, mtu: 1024}");
      const auto workload = options->make(star.all, seed);
      star.run(*workload);
      EXPECT_TRUE(workload->finished()) << name;
      bytes.push_back(workload->flows()[0].bytes);
      EXPECT_GE(bytes.back(), kMessages * kLeast);
      EXPECT_LE(bytes.back(), kMessages * kMost);
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_NE(bytes[0], bytes[2]);
  }
}

TEST(Workloads, ThoseWithNothingToSendEnd) {
  Star star(2, "header_only: true", "delay: 1us");
  const auto workload = workload_options("flows", "flows: []")->make(star.all, 1);
  star.run(*workload);
  EXPECT_TRUE(workload->finished());
}

// The immediate says which transfer has ended; here a bit of it was flipped, and nobody checks ICRCs.
TEST(Workloads, AnImmediateThatNobodySentEndsNothing) {
  for (const char* mask : {"0x80", "0x01"}) {
    Star star(3, "header_only: true\nicrc: false",
              std::string("delay: 1us\nforward: {events: [{opcode: 0x0b, do: corrupt, offset: ") +
                  (mask[2] == '8' ? "70" : "73") + ", mask: " + mask + "}]}");
    const auto workload =
        workload_options("flows", "flows: [{source: 0, destination: 1, bytes: 100B}]")->make(star.all, 1);
    star.run(*workload);
    EXPECT_FALSE(workload->finished());
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["unexpected_messages"], 1);
  }
}

// By their names, in whatever order the workload has its hosts.
TEST(Workloads, WhatWaitsIsNamedAndWhatFailedSaysWhy) {
  Star star(4, "header_only: true", "delay: 1us", 1, {{1, "loss: 100%\nmatch: {kind: roce}"}});
  const std::vector<WorkloadHost> hosts = {star.all[2], star.all[3], star.all[0], star.all[1]};
  const auto workload = workload_options("flows",
                                         "{timeout: 4, flows: [{source: 2, destination: 3, bytes: 1kB},"
                                         " {source: 0, destination: 1, bytes: 100MB}]}")
                            ->make(hosts, 1);
  workload->start(0);
  star.run([] { return false; }, 2 * kMillisecond);
  EXPECT_FALSE(workload->finished()) << "it goes on with the other one";
  Json waiting;
  JsonReport report(waiting);
  workload->explain_waiting(report, 16);
  ASSERT_EQ(waiting["unfinished"].size(), 2u);
  const auto row = [&](int number, const std::string& source, const std::string& destination, const std::string& state,
                       const std::string& status) {
    const Json& one = waiting["unfinished"][static_cast<std::size_t>(number)];
    EXPECT_EQ(one["source"], source);
    EXPECT_EQ(one["destination"], destination);
    EXPECT_EQ(one["state"], state);
    EXPECT_EQ(one["status"], status);
  };
  row(0, "h0", "h1", "failed", "RETRY_EXC_ERR");
  row(1, "h2", "h3", "waits", "");
}

TEST(Workloads, LossDelaysAndLosesNothing) {
  Star star(4, "header_only: true", "delay: 1us\nloss: 0.5%");
  const auto workload = workload_options("all_reduce", "{size: 4MiB, timeout: 8}")->make(star.all, 7);
  star.run(*workload);
  EXPECT_TRUE(workload->finished());
}

}  // namespace
}  // namespace rocebox::test
