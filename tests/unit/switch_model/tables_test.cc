// SPDX-License-Identifier: BSD-3-Clause
// Tables and meters against scans and sums that are too simple to be wrong.
#include <gtest/gtest.h>

#include <random>

#include "runtime/limits.h"
#include "switch_model/meter.h"
#include "switch_model/tables/lpm_table.h"
#include "switch_model/tables/ternary_table.h"

namespace rocebox::switch_model {
namespace {

TEST(TernaryTable, GivesTheEntryOfHighestPriority) {
  struct Key {
    std::array<std::uint8_t, 8> bytes;
  };
  Layout layout(1);
  TernaryTable<Key, std::uint32_t> table(layout, "acl", {Gress::kIngress, 0}, 200);
  EXPECT_EQ(table.lookup(Key{}), kMiss) << "an empty table";
  std::mt19937 random(3);
  const auto draw = [&](std::uint32_t bound) { return static_cast<std::uint8_t>(random() % bound); };
  std::vector<TernaryTable<Key, std::uint32_t>::Entry> entries(150);
  for (std::uint32_t i = 0; i < entries.size(); i++) {
    for (std::size_t b = 0; b < 8; b++) {
      entries[i].value.bytes[b] = draw(4);
      entries[i].mask.bytes[b] = draw(3) ? 0 : draw(2) ? 0xFF : 0x02;
    }
    entries[i].priority = i + 1;
    entries[i].action = 1000 + i;
  }
  ASSERT_TRUE(table.set(entries));
  unsigned hits = 0;
  for (unsigned round = 0; round < 200; round++) {
    std::array<Key, kBatchMax> keys;
    std::array<std::uint32_t, kBatchMax> found;
    for (Key& key : keys)
      for (std::uint8_t& byte : key.bytes) byte = draw(4);
    table.lookup_bulk(keys, found);
    for (std::size_t k = 0; k < keys.size(); k++) {
      std::uint32_t wanted = kMiss;
      for (std::uint32_t i = 0; i < entries.size(); i++) {
        bool matches = true;
        for (std::size_t b = 0; b < 8; b++)
          matches &= ((keys[k].bytes[b] ^ entries[i].value.bytes[b]) & entries[i].mask.bytes[b]) == 0;
        if (matches) wanted = i;
      }
      ASSERT_EQ(found[k], wanted);
      if (wanted == kMiss) continue;
      hits++;
      ASSERT_EQ(table.value(found[k]), 1000 + wanted);
    }
  }
  EXPECT_GT(hits, 1000u);
  EXPECT_FALSE(table.set(std::vector<TernaryTable<Key, std::uint32_t>::Entry>(201)));
  EXPECT_TRUE(table.set({}));
  EXPECT_EQ(table.lookup(Key{}), kMiss);
}

TEST(Lpm, GivesTheLongestPrefix) {
  Layout layout(1);
  Ipv4Lpm table(layout, "routes", {Gress::kIngress, 0}, 300, 16);
  EXPECT_EQ(table.lookup(1), kMiss);
  std::mt19937 random(4);
  struct Prefix {
    std::uint32_t address, mask;
    unsigned bits;
  };
  std::vector<Prefix> prefixes;
  for (std::uint32_t i = 0; i < 200; i++) {
    const unsigned bits = static_cast<unsigned>(random() % 33);
    const std::uint32_t mask = bits ? ~std::uint32_t{0} << (32 - bits) : 0;
    const std::uint32_t address = (0x0A000000 | (random() & 0x0F0F)) & mask;
    prefixes.push_back({address, mask, bits});
    ASSERT_TRUE(table.insert(address, bits, i));
  }
  const auto wanted = [&](std::uint32_t address) {
    std::uint32_t best = kMiss;
    for (std::uint32_t i = 0; i < prefixes.size(); i++)
      if ((address & prefixes[i].mask) == prefixes[i].address &&
          (best == kMiss || prefixes[i].bits >= prefixes[best].bits))
        best = i;
    return best;
  };
  for (unsigned round = 0; round < 100; round++) {
    std::array<std::uint32_t, kBatchMax> keys, found;
    for (std::uint32_t& key : keys)
      key = random() % 8 ? 0x0A000000 | (random() & 0x0F0F) : static_cast<std::uint32_t>(random());
    table.lookup_bulk(keys, found);
    for (std::size_t i = 0; i < keys.size(); i++) ASSERT_EQ(found[i], wanted(keys[i])) << keys[i];
  }
}

TEST(Meter, ColorsAsRfc2698Says) {
  // 8 Mbps and 16 Mbps: a byte and two bytes in a microsecond.
  Layout layout(2);
  MeterArray meters(layout, "m", {Gress::kIngress, 0}, 4, {8'000'000, 16'000'000, 1000, 3000});
  EXPECT_EQ(meters.execute(0, 1, 1000, 0), Color::kGreen) << "full buckets";
  EXPECT_EQ(meters.execute(0, 1, 1000, 0), Color::kYellow);
  EXPECT_EQ(meters.execute(0, 1, 1000, 0), Color::kYellow);
  EXPECT_EQ(meters.execute(0, 1, 1, 0), Color::kRed);
  EXPECT_EQ(meters.execute(0, 1, 100, 50'000), Color::kYellow) << "100 peak bytes, 50 committed ones";
  EXPECT_EQ(meters.execute(0, 1, 1, 50'000), Color::kRed);
  EXPECT_EQ(meters.execute(0, 1, 100, 100'000), Color::kGreen);
  EXPECT_EQ(meters.execute(1, 1, 1000, 100'000), Color::kGreen) << "another pipe";
  std::uint64_t bytes[3] = {};
  for (Nanos now = kSecond; now < 2 * kSecond; now += 250'000)  // 4000 packets of 1000 bytes: 4 bytes a microsecond
    bytes[static_cast<std::size_t>(meters.execute(0, 2, 1000, now))] += 1000;
  EXPECT_NEAR(static_cast<double>(bytes[0]), 1e6, 1100);
  EXPECT_NEAR(static_cast<double>(bytes[0] + bytes[1]), 2e6, 3100);
}

}  // namespace
}  // namespace rocebox::switch_model
