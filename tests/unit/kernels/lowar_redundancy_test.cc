// SPDX-License-Identifier: BSD-3-Clause
// What is measured of a link, and which (r, c) is chosen by that: against an oracle of its own, without packets.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_follower.h"

namespace rocebox::lowar {
namespace {

using namespace oracle;

TEST(LowarRedundancy, TheModelIsExactOnGilbertChannels) {
  for (const double rate : {1e-4, 1e-3, 0.01, 0.03, 0.2})
    for (const double burst : {1 / (1 - rate), 2.0, 5.0, 12.0})
      for (const Coding coding : {Coding{1, 1}, {8, 1}, {8, 8}, {64, 8}, {128, 4}, {256, 32}, {256, 1}}) {
        const double exact = residual(coding, {rate, burst});
        EXPECT_NEAR(residual_loss(coding, true_loss({rate, burst})), exact, exact * 1e-6)
            << rate << " " << burst << " (" << coding.r << ", " << int{coding.c} << ")";
      }
  EXPECT_EQ(residual_loss({}, true_loss(bernoulli(0.01))), 0.01);
}

struct Case {
  Channel channel;
  double target;
};

TEST(LowarRedundancy, FindsTheLeastThatIsEnough) {
  std::vector<Case> cases = {{bernoulli(1e-4), 1e-6}, {bernoulli(1e-4), 1e-5}, {bernoulli(1e-3), 1e-5},
                             {bernoulli(1e-3), 1e-4}, {bernoulli(0.01), 1e-3}, {bernoulli(0.01), 5e-4},
                             {bernoulli(0.03), 3e-3}, {bernoulli(0.1), 0.03}};
  for (const double burst : {2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0})
    cases.push_back({{1e-3, burst}, 2e-4}), cases.push_back({{0.01, burst}, 2.5e-3});
  for (const Case& c : cases) {
    const unsigned wanted = most_packets_a_repair(c.channel, c.target);
    ASSERT_NE(wanted, 0u) << c.channel.rate << " " << c.channel.burst;
    for (std::uint64_t seed = 1; seed <= (c.channel.rate < 5e-3 ? 1 : 2); seed++) {
      LossProcess losses(c.channel, seed);
      Follower follower;
      follower.aim = {c.target, 1, 32};
      const auto enough = static_cast<std::uint64_t>(2500 * c.channel.burst / c.channel.rate);
      follower.run(losses, enough);
      const std::string what = "rate " + std::to_string(c.channel.rate) + " burst " + std::to_string(c.channel.burst) +
                               " target " + std::to_string(c.target * 1e6) + "e-6 seed " + std::to_string(seed) +
                               ": (" + std::to_string(follower.coding.r) + ", " + std::to_string(follower.coding.c) +
                               ")";
      // On a border the measured mean decides, which is exact to some percent.
      EXPECT_LE(residual(follower.coding, c.channel), 1.1 * c.target) << what;
      EXPECT_GE(packets_a_repair(follower.coding), wanted / 2) << what;
      EXPECT_LE(follower.changes, 6u) << what;
    }
  }
}

TEST(LowarRedundancy, ALongSteadyRunHasFewChanges) {
  for (const Case& c : {Case{bernoulli(1e-3), 1e-5},
                        {bernoulli(0.01), 1e-3},
                        {{0.01, 6}, 1e-3},
                        {{1e-3, 3}, 1e-5},
                        // On the border between two settings.
                        {bernoulli(0.01), 7.726e-4},
                        {bernoulli(0.01), 0.0101}}) {
    LossProcess losses(c.channel, 77);
    Follower follower;
    follower.aim = {c.target, 0.25, 32};
    follower.run(losses, 5'000'000);
    const unsigned found = follower.changes;
    EXPECT_LE(found, 6u) << c.channel.rate << " " << c.channel.burst;
    follower.run(losses, 20'000'000);
    EXPECT_LE(follower.changes - found, 2u) << c.channel.rate << " " << c.channel.burst;
  }
}

// The README's number of packets without loss.
std::uint64_t packets_to_switch_off(const Aim& aim) { return static_cast<std::uint64_t>(7 / (0.8 * aim.target_loss)); }

TEST(LowarRedundancy, IsOffOnACleanLinkAndOnAgainWithinFewLosses) {
  LossProcess losses({0, 1}, 5);
  Follower follower;
  follower.aim = {1e-6, 0.25, 32};
  follower.run(losses, packets_to_switch_off(follower.aim) - 1);
  EXPECT_FALSE(follower.coding.off());
  follower.run(losses, packets_to_switch_off(follower.aim) + 2);
  EXPECT_TRUE(follower.coding.off()) << "within twice that";
  follower.run(losses, 100'000'000);
  EXPECT_EQ(follower.changes, 1u);
  for (const double rate : {1e-4, 1e-3, 0.01}) {
    Follower after = follower;
    LossProcess lossy(bernoulli(rate), 6);
    after.run(lossy, static_cast<std::uint64_t>(40 / rate));
    EXPECT_FALSE(after.coding.off()) << rate;
    after.run(lossy, static_cast<std::uint64_t>(500 / rate));
    const double best = residual({128, 32}, bernoulli(rate));  // as good as it gets within a quarter
    EXPECT_LE(residual(after.coding, bernoulli(rate)), std::max(1e-6, 1.01 * best)) << rate;
  }
}

TEST(LowarRedundancy, FollowsStepsOfTheLossRate) {
  Follower follower;
  follower.aim = {1e-3, 1, 32};
  LossProcess losses(bernoulli(1e-4), 9);
  follower.run(losses, 1'000'000);
  EXPECT_TRUE(follower.coding.off());
  for (const Channel channel : {bernoulli(0.03), {0.01, 4}, bernoulli(0.005), bernoulli(1e-4), {0.02, 2}}) {
    losses.change(channel);
    const unsigned wanted = most_packets_a_repair(channel, 1e-3), changes = follower.changes;
    // README: within 256 clusters, and 33 to notice; within 2500, and 2048 to forget another rate. Each may take twice
    // as long.
    const auto in_clusters = [&](double count) {
      return static_cast<std::uint64_t>(std::min(2 * count * channel.burst / channel.rate, 6e6));
    };
    follower.run(losses, in_clusters(256 + 33));
    EXPECT_LE(residual(follower.coding, channel), wanted ? 1e-3 : 1) << channel.rate << " " << channel.burst;
    follower.run(losses, in_clusters(2500 + 2048));
    EXPECT_LE(residual(follower.coding, channel), wanted ? 1e-3 : 1) << channel.rate << " " << channel.burst;
    EXPECT_GE(packets_a_repair(follower.coding), wanted / 2) << channel.rate << " " << channel.burst;
    EXPECT_LE(follower.changes - changes, 6u) << channel.rate << " " << channel.burst;
  }
}

TEST(LowarRedundancy, WhereNothingIsEnoughTheBestStays) {
  Follower follower;
  follower.aim = {1e-6, 0.25, 32};
  LossProcess losses(bernoulli(0.02), 3);
  follower.run(losses, 5'000'000);
  EXPECT_EQ(packets_a_repair(follower.coding), 4u);
  EXPECT_LE(follower.changes, 4u);
}

TEST(LowarRedundancy, AnOutageIsNoReasonForRedundancy) {
  Follower follower;
  follower.aim = {1e-4, 0.25, 32};
  LossProcess losses({0, 1}, 3);
  follower.run(losses, 300'000);
  ASSERT_TRUE(follower.coding.off());
  follower.meter.lost(4096);
  follower.run(losses, 10'000);
  EXPECT_TRUE(follower.coding.off()) << "nothing would have helped";
}

TEST(LowarRedundancy, WhatWasOnlyOvertakenIsTakenBack) {
  LossMeter meter;
  for (unsigned i = 0; i < 1000; i++) {
    for (unsigned k = 0; k < 99; k++) meter.came();
    meter.lost(1);
    meter.take_back();
    if (meter.due()) meter.done();
  }
  EXPECT_EQ(meter.losses(), 0u);
  EXPECT_EQ(meter.packets(), 100'000u);
  EXPECT_LT(meter.high().rate, 1e-4);
}

}  // namespace
}  // namespace rocebox::lowar
