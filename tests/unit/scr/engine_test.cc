// SPDX-License-Identifier: BSD-3-Clause
// The framework: latencies to the nanosecond, granularity, what is put aside, lost probes, and policies that go wrong.
#include "kernels/scr/engine.h"

#include <gtest/gtest.h>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

TEST(ScrEngine, TakesTheTimesOfThePaper) {
  EngineBox box(probe_policy_path(), {{"rate", 5'000'000'000}, {"probe_port", 5101}, {"message", 9}});
  box.put(SCR_TX, 3, 1000, 1098);
  box.engine->run(kMillisecond, box);
  ASSERT_EQ(box.actions.size(), 3u);
  EXPECT_EQ(box.actions[0].second.kind, SCR_SEND);
  EXPECT_EQ(box.actions[0].first, 1000 + 7000 + 4000);
  EXPECT_EQ(box.actions[1].second.kind, SCR_PROBE);
  EXPECT_EQ(box.actions[1].first, 1000 + 7000 + 4000 + 5000);
  EXPECT_EQ(box.actions[2].second.kind, SCR_SET_RATE);
  EXPECT_EQ(box.actions[2].first, 1000 + 7000 + 4000 + 6000);
  EXPECT_EQ(box.engine->rate(3), 5'000'000'000u);
}

// Only the law occupies a thread: trigger and install are pipelined.
TEST(ScrEngine, OneThreadHandlesAnEventEveryFourMicroseconds) {
  FrameworkConfig config;
  config.threads = {1, 1, 1};
  config.coalescing.fill(Strategy::kNone);
  EngineBox box(probe_policy_path(), {{"message", 1}}, config);
  for (std::uint32_t flow = 0; flow < 10; flow++) box.put(SCR_TX, flow, 1000, 100);
  box.engine->run(kMillisecond, box);
  ASSERT_EQ(box.actions.size(), 10u);
  for (std::size_t i = 0; i < 10; i++) {
    EXPECT_EQ(box.actions[i].first, 1000 + 7000 + 4000 * static_cast<Nanos>(i + 1));
    EXPECT_EQ(box.actions[i].second.flow, i);
  }
}

// Granularity invariance (4.3.3): with more flows than threads the bytes of an event stay as they are, and with fewer
// threads they grow in proportion.
TEST(ScrEngine, BytesOfAnEventDependOnThreadsAlone) {
  const auto granularity = [](std::uint32_t flows, std::int64_t threads) {
    FrameworkConfig config;
    config.threads = {threads, 1, 1};
    config.flows = 1024;
    EngineBox box(probe_policy_path(), {}, config);
    for (std::uint32_t i = 0; i < 40000; i++) box.put(SCR_TX, i % flows, Nanos{i} * 88, 1100);
    box.engine->run(kSecond, box);
    EXPECT_EQ(box.count("scr_tx_bytes_handled"), 40000u * 1100);
    return static_cast<double>(box.count("scr_tx_bytes_handled")) /
           static_cast<double>(box.count("scr_tx_events_handled"));
  };
  const double at_64 = granularity(64, 16);
  for (const std::uint32_t flows : {128u, 256u, 512u}) EXPECT_NEAR(granularity(flows, 16), at_64, at_64 * 0.1) << flows;
  // 16 threads take 4 events a microsecond, and 12.5 KB come.
  EXPECT_NEAR(at_64, 12500.0 / 4, 12500.0 / 4 * 0.15);
  EXPECT_NEAR(granularity(64, 4), 4 * at_64, at_64);
}

TEST(ScrEngine, EventsOfFlowsAtAStableRateArePutAside) {
  FrameworkConfig config;
  config.coalescing[SCR_TX] = Strategy::kRateStable;
  config.stable_after = 10;
  config.stable_events = 5;
  EngineBox box(probe_policy_path(), {{"rate", 5'000'000'000}}, config);
  for (int i = 0; i < 1000; i++) box.put(SCR_TX, 0, 20'000 * (i + 1), 100);
  box.engine->run(kSecond, box);
  const std::uint64_t handled = box.count("scr_tx_events_handled");
  EXPECT_NEAR(static_cast<double>(handled), 11 + 990 / 5.0, 3);
  EXPECT_EQ(box.count("scr_events_put_aside"), 1000 - handled);
  // The last few wait for more.
  EXPECT_GE(box.count("scr_tx_bytes_handled"), 100'000u - 4 * 100);
}

TEST(ScrEngine, AProbeWithoutAnAnswerIsLostAtItsTimeout) {
  EngineBox box(probe_policy_path(), {{"probe_port", 5102}});
  box.put(SCR_TX, 0, 0, 100);
  box.engine->run(16'000, box);  // it leaves at 16 us
  ASSERT_EQ(box.actions.size(), 1u);
  box.engine->run(115'999, box);
  EXPECT_EQ(box.count("scr_probes_lost"), 0u);
  box.engine->run(116'000, box);
  EXPECT_EQ(box.count("scr_probes_lost"), 1u);
  // An answer in time is not lost, and one of another path is no answer.
  box.put(SCR_TX, 0, 200'000, 100);
  box.put(SCR_RTT, 0, 250'000, 0, 0, 5101);
  box.engine->run(kMillisecond, box);
  EXPECT_EQ(box.count("scr_probes_lost"), 2u);
  box.put(SCR_TX, 0, 2'000'000, 100);
  box.put(SCR_RTT, 0, 2'050'000, 0, 0, 5102);
  box.engine->run(10 * kMillisecond, box);
  EXPECT_EQ(box.count("scr_probes_lost"), 2u);
}

TEST(ScrEngine, ATimerComesOnceAndEachCopyHasItsOwnGlobals) {
  EngineBox one(probe_policy_path(), {{"wake", 50'000}}), other(probe_policy_path(), {});
  one.put(SCR_TX, 0, 1000, 100);
  one.engine->run(kSecond / 1000, one);
  other.put(SCR_TX, 0, 1000, 100);
  other.engine->run(kSecond / 1000, other);
  const auto counter = [](const EngineBox& box, const std::string& name) {
    Json json;
    JsonReport report(json);
    box.engine->report(report);
    return json["policy_counters"][name].get<std::uint64_t>();
  };
  EXPECT_EQ(counter(one, "timers"), 1u);
  EXPECT_EQ(counter(other, "timers"), 0u);
  EXPECT_EQ(counter(one, "tx"), 1u);
  EXPECT_EQ(counter(other, "tx"), 1u);
  EXPECT_EQ(counter(one, "events"), counter(other, "events") + 1) << "a global of the program's";
}

TEST(ScrEngine, WhatAPolicyMustNotAskForIsBoundedAndCounted) {
  EngineBox box(probe_policy_path(), {{"mischief", 4}});
  box.put(SCR_TX, 0, 1000, 100);
  box.engine->run(kMillisecond, box);
  EXPECT_EQ(box.count("scr_wrong_actions"), 3u);
  ASSERT_EQ(box.actions.size(), 2u);
  EXPECT_EQ(box.actions[0].second.value, 100'000'000'000u) << "no more than the port";
  EXPECT_EQ(box.actions[1].second.value, kRateFloor) << "no less than the floor";
  EngineBox flood(probe_policy_path(), {{"mischief", 5}});
  flood.put(SCR_TX, 0, 1000, 100);
  flood.engine->run(kMillisecond, flood);
  EXPECT_GT(flood.count("scr_wrong_actions"), 900'000u);
  EXPECT_FALSE(flood.engine->stopped());
}

TEST(ScrEngine, PoliciesThatGoWrongAreStoppedAndNamed) {
  const std::pair<int, const char*> cases[] = {
      {1, "SEGV"}, {2, "ran too long, in scr_handle"}, {3, "it wrote where only the NIC does"}};
  for (const auto& [mischief, why] : cases) {
    FrameworkConfig config;
    config.watchdog = 5 * kMillisecond;
    EngineBox box(probe_policy_path(), {{"mischief", mischief}, {"rate", 1'000'000'000}}, config);
    box.put(SCR_TX, 0, 1000, 100);
    box.put(SCR_TX, 1, 1000, 100);
    box.engine->run(kMillisecond, box);
    EXPECT_TRUE(box.engine->stopped());
    EXPECT_EQ(box.stopped, 1);
    EXPECT_TRUE(box.actions.empty());
    EXPECT_EQ(box.engine->due(), kNever) << "nothing of it is left";
    Json json;
    JsonReport report(json);
    box.engine->report(report);
    EXPECT_NE(json["policy_error"].get<std::string>().find(why), std::string::npos) << json;
  }
}

TEST(ScrEngine, ParametersAreCheckedByNameAndRange) {
  const auto error = [](const ParameterValue& one) -> std::string {
    try {
      EngineBox box(policy_path("fair"), {one});
    } catch (const ConfigError& what) {
      return what.what();
    }
    return "";
  };
  EXPECT_NE(error({"stpe", 1}).find("has no parameter `stpe`, but: algorithm, arrivals, step"), std::string::npos);
  EXPECT_NE(error({"algorithm", 3}).find("parameter `algorithm` is from 0 to 2, and not 3"), std::string::npos);
  EXPECT_EQ(error({"algorithm", 1}), "");
}

}  // namespace
}  // namespace rocebox::scr
