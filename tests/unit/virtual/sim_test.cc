// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/sim.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/capture/capture_reader.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::sim_test {
namespace {

// Two stations of 1 Gbit/s on a wire of 10 us.
const std::string kPair =
    "devices:\n"
    "  a: {station: {mac: 02:00:00:00:00:01, address: 10.0.0.1}}\n"
    "  b: {station: {mac: 02:00:00:00:00:02, address: 10.0.0.2}}\n"
    "links: {cable: {between: [a.wire, b.wire], delay: 10us}}\n";

TEST(Sim, RunsUntilAllWorkloadsHaveFinished) {
  SimBox box(kPair + "workloads: {shout: {hosts: [a, b], bytes: 4096, times: 3}}\n");
  const Json report = box.run();
  EXPECT_TRUE(box.sim.succeeded());
  const Json& shout = report["workloads"]["shout"];
  EXPECT_EQ(shout["transfers"], 6);
  EXPECT_EQ(shout["transfers_done"], 6);
  EXPECT_EQ(shout["bytes"], 6 * 4096);
  EXPECT_EQ(shout["details"]["received"], 6 * 4096) << "what the workload itself says";
  // The first message: four packets of 1106 bytes each on the wire.
  EXPECT_EQ(shout["flows"][0]["completion_ns"], 10'000 + 4 * (1024 + 14 + 20 + 8 + 12 + 4 + 24) * 8);
  EXPECT_EQ(report["run"]["end"], "all workloads had finished");
  EXPECT_EQ(report["run"]["held_at_end"], 0);
  EXPECT_EQ(box.pool.in_use(), 0u);
  EXPECT_EQ(report["links"]["cable"]["counters"]["forward_packets"], 12);
}

TEST(Sim, StartsWorkloadsInTheirTimeAndBehindEachOther) {
  SimBox box(kPair +
             "workloads:\n"
             "  one: {type: shout, hosts: [a, b], start: 5us}\n"
             "  two: {type: shout, hosts: [b, a], after: [one]}\n"
             "  three: {type: shout, hosts: [a, b], after: [one, two], start: 1ms}\n");
  const Json all = box.run()["workloads"];
  const auto end = [&](const char* name) {
    return all[name]["start_ns"].get<Nanos>() + all[name]["duration_ns"].get<Nanos>();
  };
  EXPECT_EQ(all["one"]["start_ns"], 5'000);
  EXPECT_EQ(all["two"]["start_ns"], end("one")) << "in the same instant";
  EXPECT_EQ(all["three"]["start_ns"], end("two") + 1'000'000);
  EXPECT_TRUE(box.sim.succeeded());
}

TEST(Sim, EndsWhenItsTimeIsOver) {
  SimBox box(kPair + "workloads: {shout: {hosts: [a, b], bytes: 1MB}}\nsim: {time: 1ms}\n");
  const Json report = box.run();
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_EQ(report["run"]["span_ns"], 1'000'000);
  EXPECT_EQ(report["run"]["end"], "its time was over");
  EXPECT_FALSE(report["workloads"]["shout"]["finished"]);
  EXPECT_EQ(report["workloads"]["shout"]["transfers_done"], 0);
}

TEST(Sim, SaysWhoWaitsWhereNothingAdvances) {
  std::string mute = kPair;
  mute.replace(mute.find("10.0.0.2}"), 8, "10.0.0.2, mute: true");
  SimBox box(mute + "workloads: {shout: {hosts: [a, b]}}\n");
  const Json report = box.run();
  EXPECT_FALSE(box.sim.succeeded());
  EXPECT_EQ(report["run"]["end"], "nothing advanced any more");
  EXPECT_EQ(report["waiting"]["workloads"]["shout"]["flow from 1"], "waits");
  const std::string told = fmt::format("{}\n", fmt::join(box.sim.warnings(), "\n"));
  EXPECT_NE(told.find("flow from 1"), std::string::npos) << told;
  EXPECT_EQ(told.find("flow from 0"), std::string::npos) << told;
}

// Though a packet is held: nothing is due that would let it go. A time that is over before the watchdog's is no
// failure.
TEST(Sim, WhatIsHeldForEverIsNotWaitedForToTheEndOfTime) {
  std::string keeps = kPair;
  keeps.replace(keeps.find("10.0.0.2}"), 8, "10.0.0.2, keeps: true");
  for (const char* time : {"0", "11s", "3000s", "9s"}) {
    SimBox box(keeps + "workloads: {shout: {hosts: [a, b]}}\nsim: {time: " + time + "}\n");
    const Json report = box.run();
    EXPECT_EQ(report["run"]["held_at_end"], 1) << time;
    const bool is_short = time[0] == '9';
    EXPECT_EQ(report["run"]["end"], is_short ? "its time was over" : "nothing advanced any more") << time;
    EXPECT_EQ(box.sim.succeeded(), is_short) << time;
  }
}

TEST(Sim, EqualSeedsGiveEqualRunsAndOthersDoNot) {
  const std::string lossy = kPair + "workloads: {shout: {hosts: [a, b], bytes: 100kB}}\nsim: {time: 10ms}\n";
  const auto hash = [&](const std::string& more) {
    std::string yaml = lossy + more;
    yaml.replace(yaml.find("delay: 10us"), 11, "delay: 10us, loss: 5%");
    return SimBox(yaml).run()["hash"];
  };
  EXPECT_EQ(hash("seed: 1\n"), hash("seed: 1\n"));
  EXPECT_NE(hash("seed: 1\n"), hash("seed: 2\n"));
}

TEST(Sim, ExpectationsAreAboutItsReport) {
  SimBox box(kPair +
             "workloads: {shout: {hosts: [a, b]}}\n"
             "expect: ['workloads.shout.transfers_done == 2', 'run.span_ns < 1']\n");
  box.run();
  EXPECT_FALSE(box.sim.succeeded());
  ASSERT_EQ(box.sim.failures().size(), 1u);
  EXPECT_NE(box.sim.failures()[0].find("run.span_ns < 1"), std::string::npos);
}

// What stands in a capture, one line a packet: when, and its length.
std::vector<std::string> packets_of(const std::string& file) {
  std::vector<std::string> lines;
  CaptureReader reader(file);
  for (CaptureRecord record; reader.next(record) == CaptureReader::Status::kPacket;)
    lines.push_back(std::to_string(record.at) + " " + std::to_string(record.wire_bytes));
  return lines;
}

TEST(Sim, CapturesAtPortsThatLinksJoin) {
  const std::string file = testing::TempDir() + "sim_tap.pcapng";
  {
    SimBox box(kPair + "workloads: {shout: {hosts: [a, b], bytes: 2048}}\nports: {a.wire: {pcap: {out: " + file +
               "}}}\n");
    const Json report = box.run();
    EXPECT_EQ(report["outputs"][0]["packets"], 2);
  }
  const std::string bytes = std::to_string(1024 + 14 + 20 + 8 + 12 + 4);
  const std::string first = std::to_string((1024 + 58 + 24) * 8), second = std::to_string(2 * (1024 + 58 + 24) * 8);
  EXPECT_EQ(packets_of(file), (std::vector<std::string>{first + " " + bytes, second + " " + bytes}))
      << "as they leave, before the link";
  std::remove(file.c_str());
  std::string mistakes;
  load(kPair + "ports: {a.wire: {pcap: {in: x.pcap}}}\n", &mistakes);
  EXPECT_NE(mistakes.find("already taken by link `cable`"), std::string::npos) << mistakes;
}

TEST(Sim, SlowdownIsAgainstTheWireAlone) {
  // 1 Gbit/s and 10 us: 4096 bytes take 32768 ns and 10 us, with headers 4 * 8848 ns.
  std::string wire = kPair;
  wire.replace(wire.find("delay: 10us"), 11, "delay: 10us, rate: 1Gbps, overhead: 24B");
  for (std::size_t at = 0; (at = wire.find("mac:", at)) != std::string::npos; at += 20)
    wire.insert(at, "rate: 100Tbps, ");
  SimBox box(wire + "workloads: {shout: {hosts: [a, b], bytes: 4096}}\n");
  const Json report = box.run();
  const double took = 10'001 + 4 * (1024 + 58 + 24) * 8;  // a station takes a nanosecond
  EXPECT_EQ(report["workloads"]["shout"]["flows"][0]["completion_ns"], took);
  EXPECT_NEAR(report["workloads"]["shout"]["slowdown"]["mean"].get<double>(), took / (10'000 + 32'768), 0.001);
  EXPECT_NEAR(report["utilisation"][0]["share"].get<double>(), 4 * 8848 / took, 0.001);
  EXPECT_EQ(report["utilisation"][0]["from"], "a.wire");
  double bits = 0;
  const Json& goodput = report["goodput"];
  const Nanos width = goodput[1]["at_ns"].get<Nanos>();
  for (const Json& row : goodput) {
    const Nanos wide = std::min<Nanos>(width, static_cast<Nanos>(took) - row["at_ns"].get<Nanos>());
    bits += row["shout_bits_per_second"].get<double>() * static_cast<double>(wide) / 1e9;
  }
  EXPECT_NEAR(bits, 2 * 4096 * 8, 1) << "what the samples come to";
}

TEST(Sim, RefusesHostsThatAreNone) {
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {"workloads: {shout: {hosts: [a, c]}}\n", "there is no device `c`"},
      {"workloads: {shout: {hosts: [a, a]}}\n", "names host `a` twice"},
      {"workloads: {shout: {hosts: [a]}}\n", "runs on 2 hosts at least, `hosts:` has 1"},
      {"workloads: {shout: {}}\n", "there is no topology"},
      {"workloads: {shut: {hosts: [a, b]}}\n", "names no workload: `shut`; did you mean `shout`?"},
      {"workloads: {shout: {hosts: [a, b], after: [shot]}}\n", "there is no workload `shot`"},
      {"workloads: {x: {type: shout, hosts: [a, b], after: [y]}, y: {type: shout, hosts: [a, b], after: [x]}}\n",
       "would wait for itself"},
      {"workloads: {shout: {hosts: [a, b], bites: 3}}\n", "unknown key `bites`; did you mean `bytes`?"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    load(kPair + row.yaml, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << mistakes;
  }
  std::string with_bump = kPair;
  with_bump.insert(with_bump.find("links:"), "  c: {path: x <-> y}\n");
  try {
    SimBox box(with_bump + "workloads: {shout: {hosts: [a, c]}}\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "f.yaml:6:20: workload `shout` cannot run on device `c`, which has no host behind it: it is a bump");
  }
}

}  // namespace
}  // namespace rocebox::sim_test
