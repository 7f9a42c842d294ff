// SPDX-License-Identifier: BSD-3-Clause
// What a report says of transfers and links: ranks, slowdowns, shares of rates, and which transfers it shows.
#include "runtime/drives/virtual/flow_report.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/virtual/fabric_kit.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::fabric_test {
namespace {

// Two NICs, of these options, and a link.
std::string two_nics(const std::string& a, const std::string& b, const std::string& link = "delay: 1us") {
  return "devices:\n"
         "  a: {nic: {address: 10.0.0.1, header_only: true" +
         a +
         "}}\n"
         "  b: {nic: {address: 10.0.0.2, header_only: true" +
         b +
         "}}\n"
         "links: {cable: {between: [a.wire, b.wire], " +
         link + "}}\n";
}

std::string flow(const std::string& more) { return "{source: 0, destination: 1, " + more + "}"; }

TEST(FlowReport, OfAThousandTransfersTheLastButOneIsP999) {
  std::string flows = flow("bytes: 10MB");
  for (int i = 1; i < 1000; i++) flows += ", " + flow("bytes: 1KiB, start: " + std::to_string(i) + "ms");
  FabricBox box(two_nics(", rate: 100Gbps", ", rate: 100Gbps") + "workloads: {flows: {hosts: [a, b], flows: [" + flows +
                "]}}\n");
  const Json& one = box.run()["workloads"]["flows"];
  ASSERT_EQ(one["transfers_done"], 1000);
  EXPECT_LT(one["completion"]["p999_ns"], 100'000);
  EXPECT_GT(one["completion"]["max_ns"], 800'000);
  EXPECT_LT(one["completion"]["p999_ns"], one["completion"]["max_ns"]);
}

// 10 MB and, a little later, 10 KB from one host to another: each has a sender of its own and they share the wire, or
// they go one after the other over one connection.
TEST(FlowReport, TransfersOfTwoHostsShareTheWireOrWaitForEachOther) {
  const auto run = [](const std::string& more) {
    FabricBox box(two_nics(", rate: 100Gbps", ", rate: 100Gbps") + "workloads: {flows: {hosts: [a, b], " + more +
                  "flows: [" + flow("bytes: 10MB") + ", " + flow("bytes: 10KB, start: 1us") + ", " +
                  flow("bytes: 10KB, start: 2ms") + "]}}\n");
    return box.run();
  };
  const auto longest_short_ns = [](const Json& report) {
    Nanos longest = 0;
    for (const Json& row : report["workloads"]["flows"]["flows"])
      if (row["bytes"] == 10'000) longest = std::max(longest, row["completion_ns"].get<Nanos>());
    return longest;
  };
  const Json shared = run(""), in_turn = run("connections: 1, ");
  EXPECT_LT(longest_short_ns(shared), 10'000) << "twice as long as alone, and a round trip";
  EXPECT_GT(longest_short_ns(in_turn), 700'000) << "behind 10 MB, of which a byte takes 0.08 ns";
  for (const Json* one : {&shared, &in_turn}) EXPECT_EQ((*one)["workloads"]["flows"]["transfers_done"], 3);
  // The third finds an idle connection.
  const auto pairs = [](const Json& report) {
    return report["devices"]["a"]["kernels"]["nic"]["queue_pairs"].get<int>();
  };
  EXPECT_EQ(pairs(shared), 2);
  EXPECT_EQ(pairs(in_turn), 1);
}

Json lone_write(const std::string& yaml) {
  FabricBox box(yaml + "workloads: {flows: {hosts: [a, b], flows: [" + flow("bytes: 1MiB") + "]}}\n");
  return box.run();
}

double slowdown(const Json& report) { return report["workloads"]["flows"]["slowdown"]["mean"].get<double>(); }

TEST(FlowReport, RatesAreThoseOfThePortsThatSend) {
  const Json by_nic = lone_write(two_nics(", rate: 100Gbps", ", rate: 100Gbps"));
  EXPECT_GT(slowdown(by_nic), 1);
  EXPECT_LT(slowdown(by_nic), 1.2) << "alone on the wire";
  EXPECT_GT(by_nic["utilisation"][0]["share"], 0.9);
  EXPECT_LT(by_nic["utilisation"][1]["share"], 0.1);
  ASSERT_TRUE(by_nic["series"]["utilisation"].contains("cable from a.wire"));
  const Json by_link = lone_write(two_nics(", window: 16", "", "delay: 1us, rate: 10Gbps"));
  EXPECT_GT(slowdown(by_link), 1);
  EXPECT_LT(slowdown(by_link), 1.2);
  const Json unknown = lone_write(two_nics("", ""));
  EXPECT_EQ(slowdown(unknown), 0) << "no rate is known";
  EXPECT_GT(unknown["utilisation"][0]["packets"], 0);
  EXPECT_FALSE(unknown["utilisation"][0].contains("share"));
}

TEST(FlowReport, APortOfASwitchMayBeTheSlowest) {
  const auto through = [](const std::string& manager) {
    return "devices:\n"
           "  a: {nic: {address: 10.0.0.1, header_only: true, rate: 100Gbps}}\n"
           "  b: {nic: {address: 10.0.0.2, header_only: true, rate: 100Gbps}}\n"
           "  s: {switch: {ports: [p0, p1], traffic_manager: {" +
           manager +
           "}, forward: {unknown: flood}}}\n"
           "links:\n"
           "  left: {between: [a.wire, s.p0], delay: 1us}\n"
           "  right: {between: [s.p1, b.wire], delay: 1us}\n";
  };
  for (const char* manager : {"rate: 20Gbps", "rate: 100Gbps, rates: [{ports: [p1], rate: 20Gbps}]"}) {
    const Json report = lone_write(through(manager));
    EXPECT_GT(slowdown(report), 1) << manager;
    EXPECT_LT(slowdown(report), 1.2) << manager;
    EXPECT_GT(report["utilisation"][2]["share"], 0.8) << report["utilisation"][2].dump();
  }
}

// By time, of the workload's goodput, in bits per second.
std::vector<std::pair<Nanos, double>> goodput(const Json& report) {
  std::vector<std::pair<Nanos, double>> all;
  for (const Json& row : report["goodput"])
    all.emplace_back(row["at_ns"].get<Nanos>(), row["flows_bits_per_second"].get<double>());
  return all;
}
double bytes_of(const Json& report) {
  const auto rates = goodput(report);
  const auto end = report["run"]["span_ns"].get<Nanos>();
  double bits = 0;
  for (std::size_t i = 0; i < rates.size(); i++)
    bits += rates[i].second * static_cast<double>((i + 1 < rates.size() ? rates[i + 1].first : end) - rates[i].first);
  return bits / 8e9;
}

// 100 Gbit/s for a millisecond, of which headers take 2%, over each of two connections in turn.
TEST(FlowReport, WhatIsNotDoneHasWhatItHasPlaced) {
  FabricBox box(two_nics(", rate: 100Gbps", ", rate: 100Gbps") + "workloads: {flows: {hosts: [a, b], flows: [" +
                flow("bytes: 10GiB") + ", " + flow("bytes: 10GiB") + ", " + flow("bytes: 1KiB") + "]}}\n" +
                "sim: {time: 1ms}\n");
  const Json& report = box.run();
  const Json& one = report["workloads"]["flows"];
  EXPECT_EQ(one["transfers_done"], 1);
  EXPECT_NEAR(one["bytes"].get<double>(), 12.5e6 * 0.98, 0.01 * 12.5e6);
  EXPECT_NEAR(one["goodput_bits_per_second"].get<double>(), 98e9, 1e9);
  std::uint64_t sum = 0;
  for (const Json& row : one["flows"]) {
    const auto placed = row["bytes_placed"].get<std::uint64_t>();
    sum += placed;
    if (row["done"].get<bool>()) {
      EXPECT_EQ(placed, row["bytes"]);
      continue;
    }
    EXPECT_EQ(row["bytes"], 10ull << 30);
    EXPECT_NEAR(static_cast<double>(placed), 6.1e6, 0.2e6);
  }
  EXPECT_EQ(one["bytes"], sum);
  EXPECT_NEAR(bytes_of(report), static_cast<double>(sum), 1000);
}

// A link that is down for half a millisecond: what was carried is not spread over that time.
TEST(FlowReport, GoodputHasTheHoleOfALinkThatWasDown) {
  for (const char* end : {"", "sim: {time: 3ms}\n"}) {
    FabricBox box(
        two_nics(", rate: 100Gbps, retransmission_timeout: 200us", ", rate: 100Gbps") +
        "workloads: {flows: {hosts: [a, b], flows: [" + flow(*end ? "bytes: 1GB" : "bytes: 20MB") + "]}}\n" +
        "schedule: {cut: {at: 500us, links: {cable: {up: false}}}, mended: {at: 1ms, links: {cable: {up: true}}}}\n" +
        end);
    const Json& report = box.run();
    for (const auto& [at, rate] : goodput(report)) {
      const Nanos width = report["goodput"][1]["at_ns"].get<Nanos>();
      if (at > 10'000 && at + width < 500'000) {
        EXPECT_GT(rate, 90e9) << at;
      } else if (at > 510'000 && at + width < 1'000'000) {
        EXPECT_EQ(rate, 0) << at;
      }
    }
    EXPECT_NEAR(bytes_of(report), report["workloads"]["flows"]["bytes"].get<double>(), 1000);
    EXPECT_TRUE(*end || report["workloads"]["flows"]["bytes"] == 20'000'000);
  }
}

TEST(FlowReport, WhatDrainsIsNotInTheUtilisation) {
  const Json report = lone_write(two_nics(", rate: 1Gbps", ", rate: 1Gbps"));
  const auto packets = report["utilisation"][1]["packets"].get<std::uint64_t>();
  const auto all = report["links"]["cable"]["counters"]["reverse_packets"].get<std::uint64_t>();
  EXPECT_EQ(all, packets + 1) << "the ACK of the last packet";
}

TEST(FlowReport, ShowsTransfersAtEvenStepsAndHasThemAll) {
  sim_test::SimBox box(
      "devices:\n"
      "  a: {station: {mac: 02:00:00:00:00:01, address: 10.0.0.1}}\n"
      "  b: {station: {mac: 02:00:00:00:00:02, address: 10.0.0.2}}\n"
      "links: {cable: {between: [a.wire, b.wire], delay: 1us}}\n"
      "workloads: {shout: {hosts: [a, b], bytes: 64, times: 10500}}\n");
  const Json shout = box.run()["workloads"]["shout"];
  EXPECT_EQ(shout["transfers"], 21'000);
  EXPECT_EQ(shout["transfers_omitted"], 1'000);
  std::vector<Nanos> starts;
  std::set<std::string> rows;
  box.sim.for_each_transfer([&](const Json& row) {
    EXPECT_EQ(row["workload"], "shout");
    starts.push_back(row["start_ns"].get<Nanos>());
    rows.insert(row.dump());
  });
  ASSERT_EQ(starts.size(), 21'000u);
  EXPECT_EQ(rows.size(), 21'000u);
  const Json& shown = shout["flows"];
  ASSERT_EQ(shown.size(), 20'000u);
  EXPECT_EQ(shown.front()["start_ns"], starts.front());
  EXPECT_EQ(shown.back()["start_ns"], starts.back());
  EXPECT_NEAR(shown[10'000]["start_ns"].get<double>(), static_cast<double>(starts[10'500]), 3000);
  Json first = {{"workload", "shout"}};
  first.update(shown[77]);
  EXPECT_TRUE(rows.contains(first.dump()));
}

}  // namespace
}  // namespace rocebox::fabric_test
