// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace rocebox {
namespace {

TEST(Histogram, EmptyIsZeroEverywhereAndZeroBytesAreEmpty) {
  Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.percentile(50), 0);
  EXPECT_EQ(histogram.mean(), 0);
  alignas(Histogram) std::uint8_t zeros[sizeof(Histogram)] = {};
  EXPECT_EQ(std::memcmp(&histogram, zeros, sizeof(zeros)), 0);
}

TEST(Histogram, OneValueIsEveryPercentile) {
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{15}, std::int64_t{16}, std::int64_t{1'000'003},
                                   (std::int64_t{1} << 40) - 1, std::int64_t{1} << 50}) {
    Histogram histogram;
    histogram.add(value);
    for (const double percent : {0.0, 50.0, 99.0, 100.0}) EXPECT_EQ(histogram.percentile(percent), value);
  }
}

TEST(Histogram, PercentilesAreNearestRankWithinASixteenth) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; round++) {
    std::vector<std::int64_t> values(1 + random() % 500);
    auto histogram = std::make_unique<Histogram>();
    for (auto& value : values) {
      value = static_cast<std::int64_t>((random() & ((1ull << 40) - 1)) >> random() % 40);
      histogram->add(value);
    }
    std::sort(values.begin(), values.end());
    for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto permille = static_cast<std::size_t>(std::lround(percent * 10));
      const auto exact = values[std::max<std::size_t>(1, (values.size() * permille + 999) / 1000) - 1];
      const auto got = histogram->percentile(percent);
      EXPECT_GE(got, exact);
      EXPECT_LE(got, exact + exact / 16);
    }
    EXPECT_EQ(histogram->min(), values.front());
    EXPECT_EQ(histogram->max(), values.back());
  }
}

// 99.9% of 1000 is 999, though 99.9 / 100 * 1000 is not.
TEST(Histogram, RanksAreExact) {
  EXPECT_EQ(nearest_rank(0, 500), 1u);
  EXPECT_EQ(nearest_rank(1, 0), 1u);
  EXPECT_EQ(nearest_rank(3, 500), 2u);
  for (std::uint64_t thousands = 1; thousands <= 2000; thousands++) {
    ASSERT_EQ(nearest_rank(1000 * thousands, 999), 999 * thousands);
    ASSERT_EQ(nearest_rank(1000 * thousands, 990), 990 * thousands);
    ASSERT_EQ(nearest_rank(1000 * thousands + 1, 999), 999 * thousands + 1);
  }
  Histogram histogram;
  for (int i = 0; i < 999; i++) histogram.add(1);
  histogram.add(1'000'000);
  EXPECT_EQ(histogram.percentile(99.9), 1);
  EXPECT_EQ(histogram.percentile(100), 1'000'000);
}

TEST(Histogram, NegativeCountsAsZeroAndHugeInTheLastBucket) {
  Histogram histogram;
  histogram.add(-5);
  histogram.add(std::int64_t{1} << 60);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.percentile(50), 0);
  EXPECT_EQ(histogram.percentile(100), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace rocebox
