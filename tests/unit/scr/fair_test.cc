// SPDX-License-Identifier: BSD-3-Clause
// The policy `fair` beside closed forms: max-min allocations of senders that are modelled, who comes and goes, Table 5.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

constexpr std::int64_t kMega = 1'000'000, kGiga = 1'000'000'000;
constexpr double kGreedy = 1e15;  // more than any port

// Weighted max-min: flows with less demand than their part of what is left have that; the others share the rest.
std::vector<double> max_min(const std::vector<double>& demands, double capacity, std::vector<double> weights = {}) {
  if (weights.empty()) weights.assign(demands.size(), 1);
  std::vector<double> shares(demands.size(), -1);
  for (bool more = true; more;) {
    more = false;
    double left = capacity, weight = 0;
    for (std::size_t i = 0; i < demands.size(); i++) (shares[i] >= 0 ? left -= shares[i] : weight += weights[i]);
    for (std::size_t i = 0; i < demands.size(); i++)
      if (shares[i] < 0 && demands[i] <= left / weight * weights[i]) {
        shares[i] = demands[i];
        more = true;
      }
    if (more) continue;
    for (std::size_t i = 0; i < demands.size(); i++)
      if (shares[i] < 0) shares[i] = left / weight * weights[i];
  }
  return shares;
}

TEST(ScrFair, TheOracleIsMaxMin) {
  EXPECT_EQ(max_min({10, 20, kGreedy, kGreedy}, 100), (std::vector<double>{10, 20, 35, 35}));
  EXPECT_EQ(max_min({kGreedy, kGreedy}, 90, {1, 2}), (std::vector<double>{30, 60}));
}

TEST(ScrFair, GreedyFlowsComeToEqualShares) {
  for (const std::int64_t arrivals : {0, 1, 2})
    for (const std::size_t flows : {2u, 8u, 30u}) {
      EngineBox box(policy_path("fair"), {{"arrivals", arrivals}, {"step", 100 * kMega}, {"min_rate", 100 * kMega}});
      box.run_flows(std::vector<double>(flows, kGreedy), 3 * kMillisecond);
      for (std::size_t i = 0; i < flows; i++)
        EXPECT_NEAR(box.rates[i], 100e9 / static_cast<double>(flows), 100e6)
            << arrivals << ", flow " << i << " of " << flows;
    }
}

TEST(ScrFair, WaterFillingEndsAtTheMaxMinAllocation) {
  std::mt19937 random(7);
  for (int round = 0; round < 8; round++) {
    std::vector<double> demands(2 + random() % 8);
    for (double& one : demands) one = random() % 2 ? kGreedy : 1e9 * static_cast<double>(1 + random() % 30);
    demands[0] = kGreedy;
    constexpr std::int64_t kStep = 200 * kMega;
    EngineBox box(policy_path("fair"), {{"step", kStep}, {"min_rate", 100 * kMega}, {"saturated", 985}});
    box.run_flows(demands, 6 * kMillisecond);
    const std::vector<double> right = max_min(demands, 100e9);
    for (std::size_t i = 0; i < demands.size(); i++) {
      SCOPED_TRACE(round * 100 + static_cast<int>(i));
      const double had = std::min(demands[i], box.rates[i]);
      // A step, and what counts as saturated.
      EXPECT_NEAR(had, right[i], kStep + 0.02 * right[i]);
    }
  }
}

TEST(ScrFair, ApplicationsWeighTheirFlows) {
  EngineBox box(policy_path("fair"), {{"step", 100 * kMega}, {"min_rate", 100 * kMega}});
  const std::vector<double> weights = {1, 2, 5};
  for (std::uint32_t flow = 0; flow < 3; flow++) {
    Event hint{};
    hint.flow = flow;
    hint.kind = SCR_HOST;
    hint.detail = SCR_HOST_HINT;
    hint.value = static_cast<std::uint64_t>(weights[flow]);
    hint.count = 1;
    box.engine->put(hint);
  }
  box.run_flows({kGreedy, kGreedy, kGreedy}, 3 * kMillisecond);
  const std::vector<double> right = max_min({kGreedy, kGreedy, kGreedy}, 100e9, weights);
  for (std::size_t i = 0; i < 3; i++) EXPECT_NEAR(box.rates[i], right[i], 200e6) << i;
}

TEST(ScrFair, StaticGivesEachTheSameWhateverItNeeds) {
  EngineBox box(policy_path("fair"), {{"algorithm", 1}});
  box.run_flows({kGreedy, kGreedy, 1e9, kGreedy}, kMillisecond);
  for (std::size_t i = 0; i < 4; i++) EXPECT_EQ(box.rates[i], 25e9);
}

TEST(ScrFair, ByDefaultTheNicDecides) {
  EngineBox box(policy_path("fair"), {{"algorithm", 0}});
  box.run_flows({kGreedy, kGreedy}, kMillisecond);
  EXPECT_TRUE(box.actions.empty());
  // Events come all the same: the algorithm can be another one while it runs.
  box.engine->take(box.engine->values_of({{"algorithm", 2}, {"step", 4000 * kMega}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 3 * kMillisecond);
  EXPECT_NEAR(box.rates[0], 50e9, 4e9);
  EXPECT_NEAR(box.rates[1], 50e9, 4e9);
  box.engine->take(box.engine->values_of({{"algorithm", 1}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 4 * kMillisecond);
  EXPECT_EQ(box.rates[0], 50e9);
  box.engine->take(box.engine->values_of({{"algorithm", 0}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 5 * kMillisecond);
  EXPECT_EQ(box.rates[0] + box.rates[1], 0) << "they are the NIC's again";
}

TEST(ScrFair, FlowsThatEndAreNoticedAfterAChangeThereAndBack) {
  EngineBox box(policy_path("fair"), {{"algorithm", 2}, {"step", 4000 * kMega}});
  box.run_flows({kGreedy, kGreedy}, 2 * kMillisecond);
  box.engine->take(box.engine->values_of({{"algorithm", 0}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 5 * kMillisecond);
  box.engine->take(box.engine->values_of({{"algorithm", 2}, {"step", 4000 * kMega}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 7 * kMillisecond);
  EXPECT_NEAR(box.rates[0], 50e9, 4e9);
  box.run_flows({kGreedy, 0}, 10 * kMillisecond);
  EXPECT_EQ(box.rates[1], 0);
  EXPECT_NEAR(box.rates[0], 100e9, 4e9);
}

TEST(ScrFair, ParametersThatChangeNoRatesLeaveThem) {
  EngineBox box(policy_path("fair"), {{"step", 4000 * kMega}});
  box.run_flows({kGreedy, kGreedy}, 2 * kMillisecond);
  ASSERT_NEAR(box.rates[0], 50e9, 4e9);
  box.actions.clear();
  box.engine->take(box.engine->values_of({{"step", 4000 * kMega}, {"patience", 9}}), box.now);
  box.run_flows({kGreedy, kGreedy}, 3 * kMillisecond);
  std::uint64_t least = UINT64_MAX;
  for (const auto& [at, action] : box.actions)
    if (action.kind == SCR_SET_RATE) least = std::min(least, action.value);
  EXPECT_GT(least, 40'000'000'000u);
}

TEST(ScrFair, AWindowLongerThanWhatIsIdleEndsNobody) {
  EngineBox box(policy_path("fair"), {{"step", 4000 * kMega}, {"window", 3 * kMillisecond}});
  box.run_flows({kGreedy, kGreedy}, 10 * kMillisecond);
  EXPECT_EQ(counter_of(box, "flows_left"), 0u);
  EXPECT_EQ(counter_of(box, "flows_joined"), 2u);
}

TEST(ScrFair, WhoLeavesGivesBackAndWhoComesHasAShare) {
  EngineBox box(policy_path("fair"), {{"step", 200 * kMega}, {"min_rate", 100 * kMega}});
  box.run_flows({kGreedy, kGreedy}, 2 * kMillisecond);
  EXPECT_NEAR(box.rates[0], 50e9, 200e6);
  box.run_flows({kGreedy, 0}, 5 * kMillisecond);
  EXPECT_NEAR(box.rates[0], 100e9, 400e6) << "idle for longer than 1 ms";
  EXPECT_EQ(box.rates[1], 0) << "it has ended";
  box.run_flows({kGreedy, kGreedy}, 5 * kMillisecond + 30 * kMicrosecond);
  EXPECT_NEAR(box.rates[1], 50e9, 1e9) << "1/n at once: it does not begin from nothing";
  EXPECT_NEAR(box.rates[0], 50e9, 1e9);
}

// All flows come at once, each makes others' rates new ones: more are under way than there is room for. None overtakes
// another all the same, so that each flow ends with the newest.
TEST(ScrFair, ManyFlowsThatComeTogetherEndWithTheNewestRates) {
  EngineBox box(policy_path("fair"), {{"algorithm", 1}});
  for (std::uint32_t flow = 0; flow < 128; flow++) box.put(SCR_TX, flow, 1000 + flow * 88, 1098);
  box.engine->run(kMillisecond / 2, box);
  EXPECT_GT(box.count("scr_without_latency"), 0u);
  for (std::uint32_t flow = 0; flow < 128; flow++) EXPECT_EQ(box.rates[flow], 1e9) << flow;
}

TEST(ScrFair, NoFlowHasLessThanTheBound) {
  constexpr std::size_t kFlows = 200;  // 500 Mbit/s each would be fair
  for (const std::int64_t algorithm : {1, 2}) {
    EngineBox box(policy_path("fair"), {{"algorithm", algorithm}});
    box.run_flows(std::vector<double>(kFlows, kGreedy), kMillisecond);
    for (std::size_t i = 0; i < kFlows; i++) EXPECT_GE(box.rates[i], 1e9) << i;
  }
}

// Table 5, in GByte/s and microseconds: eight flows at once, from 0.5 Gbit/s. A step takes as long as the law, or as a
// packet at that rate; the paper's times are less by what the first packets take (kernels/scr/README.md).
TEST(ScrFair, AStepTakesTheLawOrAPacket) {
  const std::pair<std::int64_t, double> table[] = {{160 * kMega, 294}, {400 * kMega, 122}, {800 * kMega, 49}};
  double before = 1e9, expected_before = 0;
  for (const auto& [step, paper] : table) {
    EngineBox box(policy_path("fair"),
                  {{"arrivals", 0}, {"step", step}, {"start", 500 * kMega}, {"min_rate", 500 * kMega}});
    box.run_flows(std::vector<double>(8, kGreedy), kMillisecond);
    double expected = 17;
    for (double rate = 0.5e9; rate < 12.5e9; rate += static_cast<double>(step))
      expected += std::max(4.0, 1098 * 8e6 / rate);
    std::vector<double> rates(8);
    Nanos settled = 0;
    for (const auto& [at, action] : box.actions) {
      if (action.kind != SCR_SET_RATE) continue;
      rates[action.flow] = static_cast<double>(action.value);
      for (const double rate : rates)
        if (std::abs(rate - 12.5e9) > static_cast<double>(step)) settled = at;
    }
    const double took = static_cast<double>(settled) / 1000;
    EXPECT_GT(took, paper) << step;
    EXPECT_GT(took, expected) << step;
    EXPECT_LT(took, expected + 220) << step
                                    << ": this model's senders take a new rate only behind the packet that waits";
    EXPECT_LT(took, before) << "larger steps are quicker";
    if (before < 1e9) {
      EXPECT_NEAR(before - took, expected_before - expected, 0.15 * (expected_before - expected) + 10) << step;
    }
    expected_before = expected;
    before = took;
  }
}

}  // namespace
}  // namespace rocebox::scr
