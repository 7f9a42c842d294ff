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

TEST(Dcqcn, AlphaDecaysWithoutNotifications) {
  const DcqcnConfig config = config_on();
  DcqcnRate rate;
  rate.start(config, 100'000'000'000, 0);
  rate.on_congestion(1000);
  const double alpha = rate.alpha();
  rate.on_sent(1000 + 11 * config.dce_tcp_rtt, 1);
  EXPECT_NEAR(rate.alpha(), alpha * std::pow(1 - 1 / 256.0, 10), 1e-9);
}

}  // namespace
}  // namespace rocebox::nic_model
