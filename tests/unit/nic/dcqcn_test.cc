// SPDX-License-Identifier: BSD-3-Clause
// DCQCN against the paper's equations, and two flows at a bottleneck.
#include <gtest/gtest.h>

#include <cmath>

#include "nic_model/rate/dcqcn.h"

namespace rocebox::nic_model {
namespace {

DcqcnConfig config_on() {
  DcqcnConfig config;
  config.enabled = true;
  config.dce_tcp_g = 1020;  // g = 1/256
  config.initial_alpha_value = 1023;
  config.rpg_threshold = 5;
  return config;
}

TEST(Dcqcn, TheFirstNotificationHalvesTheRate) {
  const DcqcnConfig config = config_on();
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  EXPECT_EQ(rate.rate(), 1e11);
  rate.on_congestion(1000);
  const double alpha = (1 - 1 / 256.0) * 1023 / 1024 + 1 / 256.0;  // equation 1
  EXPECT_NEAR(rate.alpha(), alpha, 1e-9);
  EXPECT_NEAR(rate.rate(), 1e11 * (1 - alpha / 2), 1e3);
  const double reduced = rate.rate();
  rate.on_congestion(1500);  // within rate_reduce_monitor_period
  EXPECT_EQ(rate.rate(), reduced);
}

// Fast recovery halves the distance to the target with each increase (equation 3).
TEST(Dcqcn, FastRecoveryHalvesTheDistance) {
  const DcqcnConfig config = config_on();
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  rate.on_congestion(1000);
  double distance = 1e11 - rate.rate();
  for (unsigned i = 1; i <= 4; i++) {
    rate.on_sent(1000 + i * config.rpg_time_reset, 1);
    distance /= 2;
    EXPECT_NEAR(1e11 - rate.rate(), distance, 1e6) << i;
  }
}

TEST(Dcqcn, BytesIncreaseItToo) {
  const DcqcnConfig config = config_on();
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  rate.on_congestion(1000);
  const double distance = 1e11 - rate.rate();
  rate.on_sent(2000, config.rpg_byte_reset);
  EXPECT_NEAR(1e11 - rate.rate(), distance / 2, 1e6);
}

// With g = 1/256: what `alpha` is after so many periods, in the first of which a notification came and in the last of
// which one comes.
double alpha_after(double alpha, unsigned periods) {
  return alpha * std::pow(1 - 1 / 256.0, periods - 1) * (1 - 1 / 256.0) + 1 / 256.0;
}

TEST(Dcqcn, AlphaDecaysWithoutNotifications) {
  const DcqcnConfig config = config_on();
  for (const bool sends : {false, true}) {
    DcqcnRate rate;
    rate.start(config, 100'000'000'000, 0);
    rate.on_congestion(1000);
    const double alpha = rate.alpha();
    for (unsigned i = 1; sends && i < 44; i++) rate.on_sent(1000 + i * config.dce_tcp_rtt / 4, 1);
    rate.on_congestion(1000 + 11 * config.dce_tcp_rtt);
    EXPECT_NEAR(rate.alpha(), alpha_after(alpha, 11), 1e-9) << sends;
  }
}

// Of a flow that is back at line rate, too: the next reduction is as small as the time since is long.
TEST(Dcqcn, AlphaDecaysAtLineRate) {
  DcqcnConfig config = config_on();
  config.dce_tcp_rtt = 55 * kMicrosecond;
  for (const unsigned periods : {200u, 1000u, 1'000'000u}) {
    DcqcnRate rate;
    rate.start(config, 100'000'000'000, 0);
    rate.on_congestion(0);
    const double alpha = rate.alpha();
    Nanos now = 0;
    while (now < 10 * kMillisecond) rate.on_sent(now += 10 * kMicrosecond, 4096);
    ASSERT_EQ(rate.rate(), 1e11);
    const Nanos end = periods * config.dce_tcp_rtt;
    for (unsigned i = 1; i <= 5; i++) rate.on_sent(now + (end - now) / 5 * i, 4096);
    rate.on_congestion(end);
    EXPECT_NEAR(rate.alpha(), alpha_after(alpha, periods), 1e-9) << periods;
    EXPECT_NEAR(rate.rate(), 1e11 * (1 - alpha_after(alpha, periods) / 2), 1e3) << periods;
  }
}

// mlx5: the first notification of a flow finds alpha as `initial_alpha_value` says, however late it comes.
TEST(Dcqcn, AlphaBeginsWithTheFirstNotification) {
  const DcqcnConfig config = config_on();
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  for (unsigned i = 1; i < 100; i++) rate.on_sent(i * kMillisecond, 4096);
  rate.on_congestion(kSecond);
  EXPECT_NEAR(rate.rate(), 0.5e11, 0.001e11);
}

// What follows are parameters of mlx5 that the paper has not.

TEST(Dcqcn, RpgGdIsTheShareOfAlphaThatAReductionTakes) {
  for (const auto& [gd, part] : {std::pair(10, 1.0), {11, 0.5}, {13, 0.125}}) {
    DcqcnConfig config = config_on();
    config.rpg_gd = gd;
    config.initial_alpha_value = 512;
    config.rpg_min_dec_fac = 0;
    DcqcnRate rate;
    rate.start(config, 100'000'000'000, 0);
    rate.on_congestion(1000);
    EXPECT_NEAR(rate.rate(), 1e11 * (1 - rate.alpha() * part), 1e3) << gd;
  }
}

TEST(Dcqcn, TheLimitEndsAtTheHighestRate) {
  DcqcnConfig config = config_on();
  config.rpg_max_rate = 40'000'000'000;
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  rate.on_congestion(0);
  EXPECT_EQ(rate.rate(), 40e9) << "and not the half of the port's";
  Nanos now = 10'000;
  rate.on_congestion(now);
  EXPECT_LT(rate.rate(), 21e9);
  while (rate.rate() < 40e9) {
    rate.on_sent(now += config.rpg_time_reset, 1);
    ASSERT_TRUE(rate.rate() <= 40e9 || rate.rate() == 100e9) << rate.rate();
    ASSERT_LT(now, kSecond);
  }
  EXPECT_EQ(rate.rate(), 100e9) << "it is not limited any more";
}

// Whenever a limit begins, and not while one is there.
TEST(Dcqcn, TheFirstNotificationReducesFromARateOfItsOwn) {
  DcqcnConfig config = config_on();
  config.rate_to_set_on_first_cnp = 10'000'000'000;
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  rate.on_congestion(1000);
  EXPECT_NEAR(rate.rate(), 10e9 * (1 - rate.alpha() / 2), 1e3);
  const double first = rate.rate();
  rate.on_sent(1000 + config.rpg_time_reset, 1);
  EXPECT_NEAR(rate.rate(), (10e9 + first) / 2, 1e3) << "that is the target, too";
  const double before = rate.rate();
  rate.on_congestion(2000 + config.rpg_time_reset);
  EXPECT_NEAR(rate.rate(), before * (1 - rate.alpha() / 2), 1e3);
}

// After a reduction, an increase by time or by bytes, and another reduction: where the target is then.
TEST(Dcqcn, TheTargetMovesOnceTheRateWasIncreased) {
  const auto target_of = [](bool clamp, bool after_time, bool by_bytes) {
    DcqcnConfig config = config_on();
    config.clamp_tgt_rate = clamp;
    config.clamp_tgt_rate_after_time_inc = after_time;
    DcqcnRate rate;
    rate.start(config, 100'000'000'000, 0);
    rate.on_congestion(0);
    Nanos now = by_bytes ? 10'000 : config.rpg_time_reset;
    rate.on_sent(now, by_bytes ? config.rpg_byte_reset : 1);
    const double increased = rate.rate();
    rate.on_congestion(now += 10'000);
    const double reduced = rate.rate();
    rate.on_sent(now + config.rpg_time_reset, 1);
    const double target = 2 * rate.rate() - reduced;
    EXPECT_TRUE(std::abs(target - 1e11) < 1e3 || std::abs(target - increased) < 1e3) << target;
    return target < 0.99e11 ? "moved" : "stays";
  };
  EXPECT_STREQ(target_of(false, true, false), "moved") << "mlx5's default";
  EXPECT_STREQ(target_of(false, true, true), "moved");
  EXPECT_STREQ(target_of(false, false, false), "stays");
  EXPECT_STREQ(target_of(false, false, true), "moved");
  EXPECT_STREQ(target_of(true, false, false), "moved");
}

}  // namespace
}  // namespace rocebox::nic_model
