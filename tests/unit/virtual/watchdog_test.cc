// SPDX-License-Identifier: BSD-3-Clause
// The watchdog of a run: what waits by right is waited for, and what stands still is not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::fabric_test {
namespace {

std::string pair(const std::string& rate, const std::string& nic, const std::string& rest) {
  return "topology:\n"
         "  back_to_back: {host_rate: " +
         rate +
         ", host_delay: 1us}\n"
         "  hosts: {nic: {header_only: true" +
         nic + "}}\n" + rest;
}

std::string told_by(const FabricBox& box) { return fmt::format("{}\n", fmt::join(box.sim.warnings(), "\n")); }

// The time, or the two times between which, a run says it came to a standstill.
std::pair<Nanos, Nanos> since(const std::string& told) {
  double from = -1, to = -1;
  char from_unit[8] = "", to_unit[8] = "";
  const char* const text = std::strstr(told.c_str(), "since ");
  if (!text) return {-1, -1};
  if (std::sscanf(text, "since some time between %lf %7s and %lf %7[a-z]", &from, from_unit, &to, to_unit) != 4) {
    if (std::sscanf(text, "since %lf %7[a-z]", &from, from_unit) != 2) return {-1, -1};
    to = from;
    std::strcpy(to_unit, from_unit);
  }
  const auto nanos = [](double value, const std::string& unit) {
    return static_cast<Nanos>(value * (unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 1));
  };
  return {nanos(from, from_unit), nanos(to, to_unit)};
}

// Whether a run ends as it should, though its watchdog is much shorter than what it has to wait for.
void expect_to_finish(const std::string& yaml) {
  FabricBox box(yaml);
  const Json& report = box.run();
  EXPECT_EQ(report["run"]["end"], "all workloads had finished");
  EXPECT_TRUE(box.sim.succeeded());
}

// One message of 200 MB at 100 Mbps takes 16 s, and a program hears of nothing before that.
TEST(Watchdog, AMessageThatTakesLongAdvances) {
  const char* const kFlow = "workloads: {flows: {flows: [{source: 0, destination: 1, bytes: 200MB}]}}\n";
  expect_to_finish(pair("100Mbps", "", kFlow));
  expect_to_finish(pair("100Mbps", "", "workloads: {write_bw: {size: 200MB, iters: 1}}\n"));
  expect_to_finish(pair("100Mbps", "", "workloads: {read_bw: {size: 200MB, iters: 1}}\n"));
  expect_to_finish(pair("100Mbps", "", "workloads: {write_bw: {size: 200MB, iters: 1, connection: UC}}\n"));
}

// The network is away for longer than the watchdog is; everybody tries again.
TEST(Watchdog, RetriesAreWaitedFor) {
  const auto away = [](const std::string& from, const std::string& until) {
    return "schedule:\n"
           "  stops: {at: " +
           from +
           ", links: {h0_h1: {up: false}}}\n"
           "  back: {at: " +
           until + ", links: {h0_h1: {up: true}}}\n";
  };
  const auto flows = [](const std::string& options) {
    return "workloads: {flows: {" + options + "flows: [{source: 0, destination: 1, bytes: 10MB}]}}\n";
  };
  const std::string watchdog = "sim: {watchdog: 100ms}\n";
  {
    SCOPED_TRACE("RDMA CM: 4.3 s from a REQ to the next one");
    expect_to_finish(pair("10Gbps", "", flows("rdma_cm: true, ") + watchdog + away("0ms", "9s")));
  }
  {
    SCOPED_TRACE("verbs' longest timeout, 2.4 hours");
    expect_to_finish(pair("10Gbps", "", flows("timeout: 31, ") + watchdog + away("2ms", "12ms")));
  }
  {
    SCOPED_TRACE("seven tries of 1 s each");
    expect_to_finish(pair("10Gbps", "", flows("timeout: 18, ") + watchdog + away("2ms", "6s")));
  }
  {
    SCOPED_TRACE("ARP");
    expect_to_finish(
        "devices:\n"
        "  h0: {nic: {address: 10.0.0.1, header_only: true, arp_timeout: 3s}}\n"
        "  h1: {nic: {address: 10.0.0.2, header_only: true, arp_timeout: 3s}}\n"
        "links: {h0_h1: {between: [h0.wire, h1.wire], delay: 1us}}\n" +
        flows("hosts: [h0, h1], ") + watchdog + away("0ms", "5s"));
  }
  {
    SCOPED_TRACE("a rate of a packet a second");
    expect_to_finish(pair("10Gbps", ", limiter: {qp_rate: 34kbps}, retransmission_timeout: 20s",
                          "workloads: {flows: {flows: [{source: 0, destination: 1, bytes: 16KiB}]}}\n" + watchdog));
  }
}

// A program's own time counts, a host that is awaited in the midst of other hosts' traffic, too.
TEST(Watchdog, WhatProgramsHaveStillToBeginIsWaitedFor) {
  expect_to_finish(
      pair("10Gbps", "",
           "workloads:\n"
           "  flows: {flows: [{source: 0, destination: 1, bytes: 1MB},"
           " {source: 0, destination: 1, bytes: 1MB, start: 3s}]}\n"
           "  noise: {type: write_bw, hosts: [h1, h0], duration: 10s, rate_limit: 100kbps, background: true}\n"
           "sim: {watchdog: 100ms}\n"));
}

// What is lost and not asked for again stands still, whatever goes on in the background.
TEST(Watchdog, WhatNothingIsDueForStandsStill) {
  FabricBox box(
      "devices:\n"
      "  a: {nic: {address: 10.0.0.1, header_only: true, rate: 10Gbps}}\n"
      "  b: {nic: {address: 10.0.0.2, header_only: true}}\n"
      "  c: {nic: {address: 10.0.0.3, header_only: true}}\n"
      "  d: {nic: {address: 10.0.0.4, header_only: true}}\n"
      "links: {ab: {between: [a.wire, b.wire], delay: 1us}, cd: {between: [c.wire, d.wire], delay: 1us}}\n"
      "workloads:\n"
      "  flows: {hosts: [a, b], timeout: 0, window: 16, flows: [{source: 0, destination: 1, bytes: 10MB}]}\n"
      "  noise: {type: write_bw, hosts: [c, d], size: 1000, duration: 60s, rate_limit: 100kbps, background: true}\n"
      "schedule: {stops: {at: 100us, links: {ab: {up: false}}}}\n");
  const Json& report = box.run();
  EXPECT_EQ(report["run"]["end"], "nothing advanced any more");
  EXPECT_LT(report["run"]["span_ns"], 13 * kSecond);
  EXPECT_GE(report["run"]["span_ns"], 10 * kSecond);
  const auto [from, to] = since(told_by(box));
  // When the window is full: 16 packets, 3.3 us each.
  EXPECT_TRUE(80 * kMicrosecond < from && from <= 160 * kMicrosecond) << told_by(box);
  EXPECT_TRUE(100 * kMicrosecond <= to && to < 190 * kMicrosecond) << told_by(box);
}

// With nothing due: since when, and which queue pairs wait.
TEST(Watchdog, SaysSinceWhenAndWhatWaits) {
  const struct Row {
    std::string workload;
    std::vector<std::string> words;
  } rows[] = {
      {"write_bw: {iters: 5, timeout: 0, start: 5ms}",
       {"host", "qpn", "peer", "peer_qpn", "\n      h0 ", " h1 ", " waits"}},
      {"read_lat: {iters: 5, timeout: 0, start: 5ms}", {"\n      h0 ", " waits"}},
      {"flows: {hosts: [h1, h0], timeout: 0, start: 5ms, flows: [{source: 0, destination: 1, bytes: 100}]}",
       {" qpn ", " waits", "source  destination ", "\n      h1      h0 "}},
  };
  for (const Row& row : rows) {
    FabricBox box(pair("100Gbps", "", "links: {h0_h1: {loss: 100%}}\nworkloads: {" + row.workload + "}\n"));
    box.run();
    const std::string told = told_by(box);
    const auto [from, to] = since(told);
    EXPECT_TRUE(5 * kMillisecond <= from && from <= to && to < 5100 * kMicrosecond) << told;
    EXPECT_NE(told.find(": nothing is due\n  workload "), std::string::npos) << told;
    for (const std::string& words : row.words) EXPECT_NE(told.find(words), std::string::npos) << words << " " << told;
    EXPECT_EQ(told.find("SUCCESS"), std::string::npos) << "of what waits: " << told;
  }
}

// Five lossless switches in a ring, each full of what the next one does not take: no packet ever moves again.
TEST(Watchdog, SaysWhereALosslessNetworkHasLockedUp) {
  std::string hosts, switches, wires;
  for (int i = 0; i < 5; i++) {
    const std::string n = std::to_string(i), next = std::to_string((i + 1) % 5);
    hosts += (i ? ", h" : "h") + n;
    switches += (i ? ", s" : "s") + n;
    wires += (i ? ", " : "") + ("{between: [h" + n + ", s" + n + "]}, {between: [s" + n + ", s" + next + "]}");
  }
  FabricBox box(
      "topology:\n  explicit: {hosts: [" + hosts + "], switches: [" + switches +
      "], host_rate: 100Gbps, trunk_rate: 50Gbps, wires: [" + wires +
      "]}\n"
      "  hosts: {nic: {header_only: true, window: 4096}}\n"
      "  switches: {switch: {traffic_manager: {buffer: 1MiB, pfc: {classes: [0], xoff: 40KiB, xon: 20KiB}}}}\n"
      "workloads: {permutation: {size: 10MB, shift: 2}}\n");
  const Json& report = box.run();
  EXPECT_EQ(report["run"]["end"], "nothing advanced any more");
  EXPECT_EQ(report["waiting"]["workloads"]["permutation"]["unfinished"].size(), 5u);
  const std::string told = told_by(box);
  const auto [from, to] = since(told);
  EXPECT_TRUE(0 < from && from <= 67'109 * kMicrosecond && to < 80 * kMillisecond)
      << told << "a timeout is the last try";
  for (int i = 0; i < 5; i++) {
    const std::string name = "s" + std::to_string(i);
    EXPECT_NE(told.find("\n  " + name + " holds "), std::string::npos) << told;
    // By the ring's port alone: the host behind the other one takes all that comes.
    std::uint64_t waiting = 0;
    for (const Json& queue : report["devices"][name]["kernels"]["switch"]["traffic_manager"]["queues"]) {
      const auto bytes = queue["bytes_waiting"].get<std::uint64_t>();
      waiting += bytes;
      EXPECT_EQ(bytes > 0, queue["bytes_max"].get<std::uint64_t>() > 40000) << queue.dump();
    }
    EXPECT_GT(waiting, 40000u) << "more than is told to wait";
  }
}

// Also where the run would end before anything else were due.
TEST(Watchdog, TheEndOfTimeHidesNothing) {
  for (const std::string time : {"11s", "3000s"}) {
    SCOPED_TRACE(time);
    FabricBox box(pair("10Gbps", "",
                       "workloads: {flows: {timeout: 0, flows: [{source: 0, destination: 1, bytes: 10MB}]}}\n"
                       "schedule: {stops: {at: 100us, links: {h0_h1: {up: false}}}}\n"
                       "sim: {time: " +
                           time + "}\n"));
    const Json& report = box.run();
    EXPECT_EQ(report["run"]["end"], "nothing advanced any more");
    EXPECT_FALSE(box.sim.succeeded());
    EXPECT_LT(report["run"]["span_ns"], 11 * kSecond);
  }
}

// Before that, or where no workload is to advance, it is the time that ends a run.
TEST(Watchdog, ATimeOfLessIsOverFirst) {
  for (const std::string rest :
       {"workloads: {flows: {timeout: 0, flows: [{source: 0, destination: 1, bytes: 10MB}]}}\nsim: {time: 9s}\n"
        "schedule: {stops: {at: 100us, links: {h0_h1: {up: false}}}}\n",
        "sim: {time: 60s}\n"}) {
    SCOPED_TRACE(rest);
    FabricBox box(pair("10Gbps", "", rest));
    EXPECT_EQ(box.run()["run"]["end"], "its time was over");
  }
}

// Of a program that means to do more, or to end by itself, much later: its timers do not hide what is stuck.
TEST(Watchdog, ATimerFarAheadHidesNothing) {
  const struct {
    const char *name, *workload;
  } rows[] = {{"a flow that begins in an hour",
               "flows: {hosts: [h0, h1], timeout: 0, flows: [{source: 0, destination: 1, bytes: 10MB},"
               " {source: 0, destination: 1, bytes: 1MB, start: 3600s}]}"},
              {"an end in an hour", "write_bw: {hosts: [h0, h1], timeout: 0, duration: 3600s}"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    FabricBox box(pair("10Gbps", "",
                       std::string("workloads: {") + row.workload +
                           "}\n"
                           "schedule: {stops: {at: 100us, links: {h0_h1: {up: false}}}}\n"));
    const Json& report = box.run();
    ASSERT_EQ(report["run"]["end"], "nothing advanced any more");
    EXPECT_LT(report["run"]["span_ns"], 13 * kSecond);
    EXPECT_FALSE(report["waiting"]["workloads"].empty()) << "and which";
  }
}

}  // namespace
}  // namespace rocebox::fabric_test
