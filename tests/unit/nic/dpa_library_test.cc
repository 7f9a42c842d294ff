// SPDX-License-Identifier: BSD-3-Clause
// The library of device programs against exact sets, maps and counts, and the bounds that its headers state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "nic_model/dpa/include/rocebox/bloom_filter.h"
#include "nic_model/dpa/include/rocebox/count_min.h"
#include "nic_model/dpa/include/rocebox/ewma.h"
#include "nic_model/dpa/include/rocebox/hash_map.h"
#include "nic_model/dpa/include/rocebox/hyperloglog.h"

namespace rocebox::test::dpa_library {
namespace {

BLOOM_FILTER(PaperFilter, 16, 3);  // SCR, 6.1: 8192 flows with 8 bits each
BLOOM_FILTER(SmallFilter, 10, 5);
HASH_MAP(SmallMap, std::uint32_t, 6);
HYPERLOGLOG(SmallLog, 4);
HYPERLOGLOG(Log, 10);
HYPERLOGLOG(LargeLog, 14);
COUNT_MIN(Sketch, 8, 4);

TEST(DpaLibrary, ABloomFilterIsAsWrongAsItsFormulaSays) {
  static_assert(sizeof(PaperFilter) == 8192);
  std::mt19937_64 random(1);
  const auto filter = std::make_unique<PaperFilter>();
  std::unordered_set<std::uint64_t> in;
  unsigned wrong_before = 0;
  while (in.size() < 8192) {
    const std::uint64_t key = random() & 0xFFFFFF;  // flow identifiers have 24 bits
    if (in.insert(key).second)
      wrong_before += static_cast<unsigned>(PaperFilter_add(filter.get(), key));
    else
      ASSERT_TRUE(PaperFilter_add(filter.get(), key));
  }
  for (const std::uint64_t key : in) ASSERT_TRUE(PaperFilter_has(filter.get(), key));
  unsigned wrong = 0, asked = 0;
  while (asked < 200'000) {
    const std::uint64_t key = random() & 0xFFFFFF;
    if (in.contains(key)) continue;
    asked++;
    wrong += static_cast<unsigned>(PaperFilter_has(filter.get(), key));
  }
  const double stated = std::pow(1 - std::exp(-3.0 * 8192 / 65536), 3);
  EXPECT_NEAR(stated, 0.03, 0.001) << "the paper's number";
  EXPECT_NEAR(wrong / 200'000.0, stated, 0.002);
  EXPECT_LT(wrong_before, 8192 * stated);
  SmallFilter small{};
  EXPECT_FALSE(SmallFilter_has(&small, 0));
  EXPECT_FALSE(SmallFilter_add(&small, 0));
  EXPECT_TRUE(SmallFilter_add(&small, 0));
}

TEST(DpaLibrary, AHashMapIsAMap) {
  std::mt19937_64 random(2);
  for (unsigned round = 0; round < 20; round++) {
    SmallMap map{};
    std::unordered_map<std::uint64_t, std::uint32_t> exact;
    for (unsigned i = 0; i < 20'000; i++) {
      const std::uint64_t key = random() % 80;
      std::uint32_t* const found = SmallMap_find(&map, key);
      ASSERT_EQ(found != nullptr, exact.contains(key));
      if (found) {
        ASSERT_EQ(*found, exact[key]);
      }
      if (random() % 2) {
        std::uint32_t* const made = SmallMap_insert(&map, key);
        ASSERT_EQ(made == nullptr, !found && exact.size() == 56) << "7 of 8 slots can be used";
        if (!made) continue;
        ASSERT_EQ(*made, found ? exact[key] : 0);
        exact[key] = *made = i;
      } else if (random() % 2) {
        ASSERT_EQ(SmallMap_remove(&map, key), static_cast<int>(exact.erase(key)));
      }
      ASSERT_EQ(SmallMap_count(&map), exact.size());
    }
  }
}

// Errors of many runs: their deviation and mean are those of 1.04 / sqrt(m).
template <class L>
void check_log(void (*add)(L*, std::uint64_t), std::uint64_t (*estimate)(const L*), double registers, double slack) {
  std::mt19937_64 random(3);
  for (const std::uint64_t keys : {0u, 1u, 10u, 300u, 5'000u, 100'000u}) {
    double sum = 0, squares = 0;
    constexpr unsigned kRuns = 40;
    for (unsigned run = 0; run < kRuns; run++) {
      const auto log = std::make_unique<L>();
      for (std::uint64_t i = 0; i < keys; i++) {
        const std::uint64_t key = random();
        add(log.get(), key);
        if (i % 3 == 0) add(log.get(), key);  // again: it does not count
      }
      const auto counted = static_cast<double>(estimate(log.get()));
      if (keys == 0) {
        ASSERT_EQ(counted, 0);
      }
      const double error = keys ? counted / static_cast<double>(keys) - 1 : 0;
      sum += error;
      squares += error * error;
    }
    const double stated = 1.04 / std::sqrt(registers), grain = keys ? 1.0 / static_cast<double>(keys) : 0;
    EXPECT_LT(std::abs(sum / kRuns), 4 * stated / std::sqrt(kRuns) + slack + grain) << keys;
    EXPECT_LT(std::sqrt(squares / kRuns), 1.4 * stated + slack + grain) << keys;
  }
}

TEST(DpaLibrary, AHyperLogLogIsWithinItsDeviation) {
  check_log<SmallLog>(&SmallLog_add, &SmallLog_estimate, 16, 0.05);
  check_log<Log>(&Log_add, &Log_estimate, 1024, 0.01);  // its formulas meet with a bias of some percent
  check_log<LargeLog>(&LargeLog_add, &LargeLog_estimate, 16384, 0.005);
}

TEST(DpaLibrary, ACountMinSketchIsNeverBelowAndSeldomFarAbove) {
  std::mt19937_64 random(4);
  unsigned far = 0, asked = 0;
  for (unsigned run = 0; run < 20; run++) {
    Sketch sketch{};
    std::unordered_map<std::uint64_t, std::uint32_t> exact;
    std::uint64_t all = 0;
    for (unsigned i = 0; i < 5'000; i++) {
      const std::uint64_t key = random() % 1000 + run * 7777;
      const auto n = static_cast<std::uint32_t>(random() % 1500);
      Sketch_add(&sketch, key, n);
      exact[key] += n;
      all += n;
    }
    for (const auto& [key, counted] : exact) {
      const std::uint32_t estimate = Sketch_estimate(&sketch, key);
      ASSERT_GE(estimate, counted);
      asked++;
      far += estimate - counted > std::exp(1) / 256 * static_cast<double>(all);
    }
  }
  EXPECT_LT(far, asked * std::exp(-4));
  Sketch sketch{};
  Sketch_add(&sketch, 1, 0xFFFFFFF0);
  Sketch_add(&sketch, 1, 0x20);
  EXPECT_EQ(Sketch_estimate(&sketch, 1), 0xFFFFFFFFu) << "it stops there";
}

TEST(DpaLibrary, AMovingAverageIsAsCloseAsItSays) {
  std::mt19937_64 random(5);
  for (const unsigned weight : {1u, 3u, 6u}) {
    ewma average{};
    EXPECT_EQ(ewma_value(&average), 0u);
    double exact = 0;
    for (unsigned i = 0; i < 50'000; i++) {
      const auto sample = static_cast<std::uint32_t>(random() >> random() % 32 >> 32);
      exact = i ? exact + (sample - exact) / (1 << weight) : sample;
      ASSERT_NEAR(ewma_add(&average, sample, weight), exact, 1.01) << i;
    }
    for (unsigned i = 0; i < 5'000; i++) ewma_add(&average, 0, weight);
    EXPECT_EQ(ewma_value(&average), 0u) << "it gets there";
  }
}

}  // namespace
}  // namespace rocebox::test::dpa_library
