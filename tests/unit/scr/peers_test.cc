// SPDX-License-Identifier: BSD-3-Clause
// The policies of the peer domain beside closed forms (SCR, A.8), and what they make of messages that are absurd: rates
// stay between the floor and the port whatever is said.
#include <gtest/gtest.h>

#include <random>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

constexpr std::uint8_t kAsk = 16;  // of `credits` alone: README.md
constexpr double kGigabit = 1e9;

// Everything at once; the node is looked at each 10 us.
FrameworkConfig at_once() {
  FrameworkConfig config;
  config.timing = {0, 0, 0, 0, 0, 0, 0};
  config.host_period = 10 * kMicrosecond;
  return config;
}

std::vector<scr_action> sent(const EngineBox& box) {
  std::vector<scr_action> all;
  for (const auto& [at, action] : box.actions)
    if (action.kind == SCR_SEND) all.push_back(action);
  return all;
}

void tell(EngineBox& box, std::uint32_t flow, Nanos at, std::uint8_t message, std::uint64_t value,
          std::uint64_t value2 = 0) {
  box.put(SCR_PEER, flow, at, 0, message, 0, value, value2);
  box.engine->run(at, box);
}

TEST(ScrCredits, AReceiverGrantsWhatItsPortHasLeft) {
  for (const double background : {0.0, 20 * kGigabit, 60 * kGigabit, 99 * kGigabit}) {
    for (const std::uint32_t askers : {1u, 2u, 5u}) {
      SCOPED_TRACE(testing::Message() << background << " bit/s beside " << askers);
      EngineBox box(policy_path("credits"), {{"headroom", 950}, {"floor", 1'000'000'000}}, at_once());
      box.port_rate = background;
      for (std::uint32_t flow = 0; flow < askers; flow++) tell(box, flow, 1000, kAsk, 0);
      box.engine->run(900 * kMicrosecond, box);
      const std::vector<scr_action> all = sent(box);
      ASSERT_GT(all.size(), 20u);
      const double part = std::max((0.95 * EngineBox::kLine - background) / askers, 1 * kGigabit);
      for (std::size_t i = all.size() - askers; i < all.size(); i++) {
        EXPECT_EQ(all[i].detail, SCR_CREDIT);
        EXPECT_NEAR(static_cast<double>(all[i].value), part, part * 0.01);
      }
    }
  }
}

// What comes for those that asked is not the background.
TEST(ScrCredits, WhoAskedIsNoBackgroundAndWhoIsSilentGetsNothing) {
  EngineBox box(policy_path("credits"), {{"idle", 500'000}}, at_once());
  box.port_rate = 50 * kGigabit;
  tell(box, 3, 1000, kAsk, 0);
  for (Nanos at = 2000; at < kMillisecond; at += 2000) box.put(SCR_RX, 3, at, 50 * 2000 / 8);
  const std::vector<scr_action> all = sent(box);
  ASSERT_FALSE(all.empty());
  EXPECT_NEAR(static_cast<double>(all.back().value), 95e9, 3e9);
  box.engine->run(1600 * kMicrosecond, box);
  const std::size_t until_idle = sent(box).size();
  box.engine->run(5 * kMillisecond, box);
  EXPECT_EQ(sent(box).size(), until_idle);
}

TEST(ScrCredits, ASenderKeepsItsRateUntilANewCreditComes) {
  EngineBox box(policy_path("credits"), {}, at_once());
  box.put(SCR_TX, 0, 1000, 1098);
  box.engine->run(2000, box);
  ASSERT_EQ(sent(box).size(), 1u);
  EXPECT_EQ(sent(box)[0].detail, kAsk);
  tell(box, 0, 10'000, SCR_CREDIT, 30'000'000'000);
  box.engine->run(kSecond / 10, box);
  EXPECT_EQ(box.rates[0], 30e9) << "a tenth of a second later";
  EXPECT_EQ(sent(box).size(), 1u) << "nor does it ask again";
  tell(box, 0, kSecond / 5, SCR_CREDIT, 12'000'000'000);
  EXPECT_EQ(box.rates[0], 12e9);
}

TEST(ScrCredits, OneThatGetsNoCreditAsksAgain) {
  EngineBox box(policy_path("credits"), {{"period", 20'000}}, at_once());
  box.put(SCR_TX, 0, 1000, 1098);
  box.engine->run(2 * kMillisecond, box);
  EXPECT_NEAR(static_cast<double>(sent(box).size()), 2e6 / 210e3, 2) << "each ten periods";
}

TEST(ScrCredits, AbsurdOnesAreBoundedAndCounted) {
  EngineBox box(policy_path("credits"), {{"floor", 2'000'000'000}}, at_once());
  tell(box, 0, 500, SCR_CREDIT, 5'000'000'000);
  EXPECT_EQ(box.rates[0], 0) << "for a flow that does not send";
  box.put(SCR_TX, 0, 1000, 1098);
  Nanos at = 2000;
  unsigned bounded = 0;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'999'999'999},
                                    std::uint64_t{100'000'000'001}, UINT64_MAX / 2 + 1, UINT64_MAX}) {
    tell(box, 0, at += 1000, SCR_CREDIT, value, UINT64_MAX);
    EXPECT_EQ(box.rates[0], value < 2'000'000'000 ? 2e9 : 100e9) << value;
    EXPECT_EQ(counter_of(box, "bounded"), ++bounded);
  }
  const std::size_t before = box.actions.size();
  for (const unsigned kind : {2u, 3u, 15u, 17u, 255u})
    tell(box, 0, at += 1000, static_cast<std::uint8_t>(kind), 5'000'000'000);
  EXPECT_EQ(box.actions.size(), before) << "kinds that are another policy's";
}

TEST(ScrBackpressure, ASenderCutsOnceInAWhileAndAddsByAndBy) {
  EngineBox box(policy_path("backpressure"),
                {{"cut", 500}, {"guard", 50'000}, {"increase", 1'000'000'000}, {"increase_period", 20'000}}, at_once());
  tell(box, 0, 100'000, SCR_BACKPRESSURE, 1);
  EXPECT_EQ(box.rates[0], 50e9);
  tell(box, 0, 110'000, SCR_BACKPRESSURE, 2);
  EXPECT_EQ(box.rates[0], 50e9) << "within the guard";
  EXPECT_EQ(counter_of(box, "ignored"), 1u);
  // At 120 and 140 us it has risen, then it is cut again.
  tell(box, 0, 151'000, SCR_BACKPRESSURE, 3);
  EXPECT_EQ(box.rates[0], 26e9);
  box.engine->run(kMillisecond, box);
  // 160, 180, ... 1000 us.
  EXPECT_EQ(box.rates[0], 26e9 + 43e9);
  box.engine->run(3 * kMillisecond, box);
  EXPECT_EQ(box.rates[0], 0) << "it has the port again";
  EXPECT_EQ(counter_of(box, "cuts"), 2u);
}

TEST(ScrBackpressure, AStormEndsAtTheFloor) {
  EngineBox box(policy_path("backpressure"), {{"cut", 999}, {"guard", 0}, {"floor", 3'000'000'000}}, at_once());
  for (Nanos at = 1000; at < 500'000; at += 1000) {
    tell(box, 0, at, SCR_BACKPRESSURE, UINT64_MAX, UINT64_MAX);
    EXPECT_GE(box.rates[0], 3e9);
  }
  EXPECT_EQ(box.rates[1], 0) << "another flow was not told";
}

TEST(ScrBackpressure, ReceiversTellWhenPortOrHostIsSlow) {
  const auto told = [](const std::vector<ParameterValue>& parameters, double port, std::uint64_t pcie, Nanos period) {
    FrameworkConfig config = at_once();
    config.host_period = period;
    EngineBox box(policy_path("backpressure"), parameters, config);
    box.port_rate = port;
    box.pcie_latency = pcie;
    for (int i = 1; i <= 40; i++) {
      box.put(SCR_RX, 0, period * i / 4, 1098);
      box.put(SCR_RX, 7, period * i / 4, 1098);
    }
    box.engine->run(period * 10, box);
    for (const scr_action& one : sent(box)) {
      EXPECT_EQ(one.detail, SCR_BACKPRESSURE);
      EXPECT_TRUE(one.flow == 0 || one.flow == 7) << one.flow;
    }
    return sent(box).size();
  };
  // A second is the longest period, in which a port of 100 Gbps receives 12.5 GB.
  for (const Nanos period : {10 * kMicrosecond, kMillisecond, kSecond}) {
    SCOPED_TRACE(period);
    EXPECT_GE(told({{"port_limit", 900}}, 95 * kGigabit, 0, period), 16u);
    EXPECT_EQ(told({{"port_limit", 900}}, 85 * kGigabit, 0, period), 0u);
  }
  EXPECT_GE(told({{"pcie_limit", 2000}}, 0, 2001, 10 * kMicrosecond), 16u);
  EXPECT_EQ(told({{"pcie_limit", 2000}}, 0, 2000, 10 * kMicrosecond), 0u);
  EXPECT_EQ(told({}, 100 * kGigabit, 1'000'000, 10 * kMicrosecond), 0u) << "nothing is looked at";
}

// Swift's receivers tell of their hosts: each period, or by the bytes that came.
TEST(ScrPeers, AHostIsToldOfByTimeOrByBytes) {
  const auto told = [](std::int64_t bytes) {
    EngineBox box(policy_path("swift"), {{"tell_peer", 1}, {"tell_bytes", bytes}}, at_once());
    box.pcie_latency = 1234;
    box.engine->run(15 * kMicrosecond, box);
    for (Nanos at = 20'000; at < 1'020'000; at += 1000) box.put(SCR_RX, 2, at, 1000);
    box.engine->run(1'020'000, box);
    for (const scr_action& one : sent(box)) {
      EXPECT_EQ(one.detail, SCR_UTILISATION);
      EXPECT_EQ(one.flow, 2u);
      EXPECT_EQ(one.value, 1234u);
    }
    return sent(box).size();
  };
  // A million bytes in a millisecond, and a period of 10 us.
  EXPECT_NEAR(static_cast<double>(told(0)), 100, 1);
  EXPECT_EQ(told(4000), 250u);
  EXPECT_EQ(told(1'000'000), 1u);
  EXPECT_EQ(told(1'000'001), 0u);
}

// Whatever peers say and whatever comes beside it: no policy asks for a rate below its own floor or above the port's,
// which the framework would have to bound, and count. `floor` is no policy's default, and above the framework's.
TEST(ScrPeers, NoiseLeavesRatesBetweenTheFloorAndThePort) {
  struct Row {
    const char *policy, *floor;
    unsigned rates_at_least;  // that it gives
    bool comes_to_floor;
  };
  constexpr std::uint64_t kFloor = 7'000'000'000;
  for (const Row& row : {Row{"credits", "floor", 500, true}, Row{"backpressure", "floor", 500, true},
                         Row{"swift", "floor", 500, true}, Row{"fair", "min_rate", 8, false},
                         Row{"paths", nullptr, 0, false}, Row{"dcqcn_policy", "rpg_min_rate", 500, false}}) {
    SCOPED_TRACE(row.policy);
    std::mt19937_64 random(11);
    FrameworkConfig config = at_once();
    config.flows = 8;
    std::vector<ParameterValue> parameters;
    if (row.floor) parameters.emplace_back(row.floor, static_cast<std::int64_t>(kFloor));
    EngineBox box(policy_path(row.policy), parameters, config);
    Nanos at = 1000;
    for (int i = 0; i < 15000; i++) {
      at += static_cast<Nanos>(random() % 3000);
      const auto flow = static_cast<std::uint32_t>(random() % 8);
      const std::uint64_t bits = random() >> random() % 64;
      const auto noise = random() % 8;
      if (noise < 2)
        box.put(noise ? SCR_TX : SCR_RX, flow, at, 1098);
      else if (noise == 2)
        box.put(random() % 2 ? SCR_CNP : SCR_NACK, flow, at, 0, SCR_NACK_SEQUENCE);
      else if (noise == 3)
        box.put_rtt(flow, at, static_cast<std::uint32_t>(random() >> random() % 64));
      else
        box.put(SCR_PEER, flow, at, 0, static_cast<std::uint8_t>(random() % 3 ? 1 + random() % 3 : random()), 0, bits,
                random());
    }
    box.engine->run(at + kMillisecond, box);
    EXPECT_FALSE(box.engine->stopped());
    EXPECT_EQ(box.count("scr_wrong_actions"), 0u);
    std::uint64_t rates = 0, least = UINT64_MAX, most = 0;
    for (const auto& [when, action] : box.actions) {
      if (action.kind != SCR_SET_RATE || action.value == 0) continue;  // 0: the port's
      rates++;
      least = std::min(least, action.value);
      most = std::max(most, action.value);
    }
    EXPECT_GE(rates, row.rates_at_least);
    if (!row.floor) continue;
    EXPECT_GE(least, kFloor);
    EXPECT_LE(static_cast<double>(most), EngineBox::kLine);
    if (row.comes_to_floor) {
      EXPECT_LT(least, kFloor + kFloor / 8) << "the floor was tried";
    }
  }
}

}  // namespace
}  // namespace rocebox::scr
