// SPDX-License-Identifier: BSD-3-Clause
// What strict mode refuses, and that it computes what fast mode does.
#include "switch_model/access.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/kernel.h"
#include "switch_model/counter_array.h"
#include "switch_model/hash.h"
#include "switch_model/meter.h"
#include "switch_model/tables/exact_table.h"
#include "tests/unit/harness.h"

namespace rocebox::switch_model {
namespace {

struct Bench {
  CounterSet stats;
  Counter& counter = stats.counter("strict_violations", "");
  Violations violations{counter};
  Strict strict{violations};
  Layout layout{2};
  std::vector<PacketState> packets{3};

  Bench() { layout.begin("demo"); }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const Violation& violation : violations.list()) all.push_back(violation.text);
    return all;
  }
};
using Texts = std::vector<std::string>;

auto add_one = [](std::uint32_t& cell) { return ++cell; };

TEST(Strict, LetsPassWhatAPipelineCan) {
  Bench b;
  auto early = b.layout.registers<std::uint32_t>("early", {Gress::kIngress, 0}, 4);
  auto late = b.layout.registers<std::uint32_t>("late", {Gress::kIngress, 3}, 4);
  b.strict.begin(Gress::kIngress, b.packets);
  for (PacketState& p : b.packets) b.strict.update(p, early, 1, add_one);
  EXPECT_EQ(b.strict.update(b.packets[0], late, 2, add_one), 1u);
  b.strict.begin(Gress::kIngress, b.packets);  // the next batch begins anew
  EXPECT_EQ(b.strict.update(b.packets[0], early, 1, add_one), 4u) << "three packets before it";
  EXPECT_EQ(b.texts(), Texts{});
}

TEST(Strict, NamesTheAccessThatCannotBe) {
  Bench b;
  auto early = b.layout.registers<std::uint32_t>("early", {Gress::kIngress, 0}, 4);
  auto late = b.layout.registers<std::uint32_t>("late", {Gress::kIngress, 3}, 4);
  auto egress = b.layout.registers<bool>("bits", {Gress::kEgress, 1}, 100);
  b.strict.begin(Gress::kIngress, b.packets);
  for (unsigned i = 0; i < 3; i++) b.strict.update(b.packets[1], late, i, add_one);  // a loop over data
  b.strict.read(b.packets[1], early, 0);
  b.strict.read(b.packets[0], early, 4);
  b.strict.read(b.packets[2], egress, 99);
  EXPECT_EQ(b.texts(), (Texts{"program demo, ingress, stage 3, register `late`: a second access by one packet",
                              "program demo, ingress, stage 0, register `early`: back to an earlier stage than `late` "
                              "of stage 3",
                              "program demo, ingress, stage 0, register `early`: an index beyond the array",
                              "program demo, egress, stage 1, register `bits`: touched by the ingress control"}));
  EXPECT_EQ(b.violations.list()[0].count, 2u);
  EXPECT_EQ(b.counter.read(), 5u);
}

TEST(Strict, SeesTablesAndHashUnits) {
  Bench b;
  ExactTable<std::uint32_t, std::uint32_t> table(b.layout, "qps", {Gress::kEgress, 2}, 10);
  const HashUnit hash(b.layout, "ecmp", {Gress::kEgress, 1}, crc_algorithms()[0], 104);
  table.insert(7, 70);
  b.strict.begin(Gress::kEgress, b.packets);
  EXPECT_EQ(table.value(b.strict.lookup(b.packets[0], table, std::uint32_t{7})), 70u);
  EXPECT_EQ(b.strict.lookup(b.packets[1], table, std::uint32_t{8}), kMiss);
  PacketState* both[] = {&b.packets[0], &b.packets[2]};
  const std::uint32_t keys[] = {7, 9};
  std::uint32_t entries[2];
  b.strict.lookup_bulk(both, table, keys, entries);
  EXPECT_EQ(entries[1], kMiss);
  const std::uint8_t bytes[] = {1, 2};
  b.strict.hash(b.packets[2], hash, bytes);
  EXPECT_EQ(b.texts(), (Texts{"program demo, egress, stage 2, exact table `qps`: a second access by one packet",
                              "program demo, egress, stage 1, hash `ecmp`: back to an earlier stage than `qps` of "
                              "stage 2"}));
}

TEST(Strict, SeesMetersAndCounters) {
  Bench b;
  MeterArray meters(b.layout, "rates", {Gress::kIngress, 1}, 4, {8'000, 8'000, 2000, 2000});
  CounterArray counters(b.layout, "hits", {Gress::kIngress, 1}, 4);
  Pool pool(test::kPoolSizes);
  std::vector<PacketPtr> bytes;
  for (PacketState& p : b.packets) {
    bytes.push_back(pool.allocate(100));
    p.packet = *bytes.back();
  }
  b.packets[2].pipe = 1;
  b.strict.begin(Gress::kIngress, b.packets);
  for (PacketState& p : b.packets) {
    EXPECT_EQ(b.strict.meter(p, meters, 3, 0), Color::kGreen);
    b.strict.count(p, counters, 3);
  }
  EXPECT_EQ(b.texts(), Texts{});
  EXPECT_EQ(counters.read(3).packets, 3u) << "over both pipes";
  EXPECT_EQ(counters.read(3).bytes, 300u);
  b.strict.count(b.packets[0], counters, 2);
  b.strict.count(b.packets[1], counters, 4);
  b.strict.begin(Gress::kEgress, b.packets);
  b.strict.count(b.packets[0], counters, 4);
  EXPECT_EQ(b.texts(), (Texts{"program demo, ingress, stage 1, counters `hits`: a second access by one packet",
                              "program demo, ingress, stage 1, counters `hits`: an index beyond the array",
                              "program demo, ingress, stage 1, counters `hits`: touched by the egress control"}));
}

TEST(CounterArray, CountsByIndexAndPipeUntilItIsCleared) {
  Layout layout(2);
  CounterArray counters(layout, "hits", {Gress::kEgress, 0}, 3);
  for (unsigned i = 0; i < 5; i++) counters.count(i % 2, 1, 64 + i);
  counters.count(1, 2, 9000);
  EXPECT_EQ(counters.read(0).packets, 0u);
  EXPECT_EQ(counters.read(1).packets, 5u);
  EXPECT_EQ(counters.read(1).bytes, 5u * 64 + 10);
  EXPECT_EQ(counters.read(2).bytes, 9000u);
  counters.clear(1);
  EXPECT_EQ(counters.read(1).packets + counters.read(1).bytes, 0u);
  EXPECT_EQ(counters.read(2).packets, 1u);
  EXPECT_EQ(counters.resource().value_bits, 128u);
}

TEST(Registers, BitsAndPipesStandApart) {
  Layout layout(2);
  auto bits = layout.registers<bool>("bits", {Gress::kIngress, 0}, 70);
  auto numbers = layout.registers<std::uint16_t>("numbers", {Gress::kIngress, 0}, 3);
  for (std::uint64_t i : {0u, 63u, 64u, 69u}) bits.operate(0, i, [](bool& bit) { bit = true; });
  numbers.operate(1, 0, [](std::uint16_t& n) { n = 5; });
  for (std::uint64_t i = 0; i < 70; i++) {
    EXPECT_EQ(bits.operate(0, i, [](bool& bit) { return bit; }), i == 0 || i == 63 || i == 64 || i == 69) << i;
    EXPECT_FALSE(bits.operate(1, i, [](bool& bit) { return bit; }));
  }
  bits.operate(0, 64, [](bool& bit) { bit = false; });
  EXPECT_FALSE(bits.operate(0, 64, [](bool& bit) { return bit; }));
  EXPECT_TRUE(bits.operate(0, 63, [](bool& bit) { return bit; }));
  for (std::uint64_t i = 0; i < 3; i++) EXPECT_EQ(numbers.operate(0, i, [](std::uint16_t& n) { return n; }), 0);
  EXPECT_EQ(numbers.operate(1, 0, [](std::uint16_t& n) { return n; }), 5);
}

TEST(Registers, RunsOfBitsAreCleared) {
  Layout layout(2);
  auto bits = layout.registers<bool>("bits", {Gress::kIngress, 0}, 512);
  for (const std::uint64_t count : {1u, 4u, 32u, 64u, 128u}) {
    for (std::uint64_t from = 0; from < 512; from += count) {
      for (std::uint64_t i = 0; i < 512; i++)
        for (const unsigned pipe : {0u, 1u}) bits.operate(pipe, i, [](bool& bit) { bit = true; });
      bits.clear(1, from, count);
      for (std::uint64_t i = 0; i < 512; i++) {
        ASSERT_TRUE(bits.operate(0, i, [](bool& bit) { return bit; }));
        ASSERT_EQ(bits.operate(1, i, [](bool& bit) { return bit; }), i < from || i >= from + count);
      }
    }
  }
}

TEST(Layout, RefusesWhatIsBeyondTheBounds) {
  Layout layout(1);
  EXPECT_THROW(layout.registers<bool>("bits", {Gress::kIngress, 0}, kEntriesMax + 1), ConfigError);
  EXPECT_EQ(layout.metadata(2), 0u);
  EXPECT_EQ(layout.metadata(kMetadataWords - 2), 2u);
  EXPECT_THROW(layout.metadata(1), ConfigError);
  for (unsigned i = 0; i < kResourcesMax; i++) layout.registers<bool>("b", {Gress::kIngress, 0}, 1);
  EXPECT_THROW(layout.registers<bool>("b", {Gress::kIngress, 0}, 1), ConfigError);
}

TEST(HashUnit, GivesTheCataloguesCheckValues) {
  // The CRC of "123456789" that every catalogue lists.
  const std::vector<std::pair<std::string_view, std::uint32_t>> checks = {
      {"crc32", 0xCBF43926},      {"crc32c", 0xE3069283},  {"crc32_bzip2", 0xFC891918},
      {"crc32_mpeg", 0x0376E6E7}, {"crc16", 0xBB3D},       {"crc16_usb", 0xB4C8},
      {"crc16_dnp", 0xEA82},      {"crc16_ccitt", 0x29B1}, {"crc16_xmodem", 0x31C3}};
  const std::string text = "123456789";
  ASSERT_EQ(checks.size(), crc_algorithms().size());
  for (std::size_t i = 0; i < checks.size(); i++) {
    const CrcAlgorithm& algorithm = crc_algorithms()[i];
    EXPECT_EQ(algorithm.name, checks[i].first);
    const HashUnit unit(algorithm);
    EXPECT_EQ(unit.compute({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}), checks[i].second)
        << algorithm.name;
  }
}

TEST(ExactTable, FillsToItsCapacityAndForgets) {
  Layout layout(1);
  ExactTable<std::uint64_t, std::uint32_t> table(layout, "t", {Gress::kIngress, 0}, 1000);
  for (std::uint64_t key = 0; key < 1000; key++) ASSERT_NE(table.insert(key * 0x10001, 1), kMiss) << key;
  EXPECT_EQ(table.insert(77777777777, 1), kMiss);
  EXPECT_NE(table.insert(0x10001, 5), kMiss) << "an old key is overwritten";
  EXPECT_EQ(table.value(table.lookup(0x10001)), 5u);
  EXPECT_TRUE(table.erase(0x10001));
  EXPECT_FALSE(table.erase(0x10001));
  EXPECT_EQ(table.lookup(0x10001), kMiss);
  EXPECT_NE(table.insert(77777777777, 1), kMiss);
  EXPECT_EQ(table.size(), 1000u);
}

// rte_hash has more places than such a table, and gives all of them out in turn.
TEST(ExactTable, OfFewEntriesHoldsAsManyAsItSays) {
  for (std::uint32_t capacity = 1; capacity <= 9; capacity++) {
    Layout layout(1);
    ExactTable<std::uint64_t, std::uint64_t> table(layout, "t", {Gress::kIngress, 0}, capacity);
    for (std::uint64_t first = 0; first < 50; first++) {
      for (std::uint64_t key = first; key < first + capacity; key++) {
        const std::uint32_t entry = table.insert(key, ~key);
        ASSERT_LT(entry, table.rows());
        ASSERT_EQ(table.value(entry), ~key);
      }
      ASSERT_EQ(table.insert(first + capacity, 1), kMiss) << "of " << capacity;
      ASSERT_EQ(table.size(), capacity);
      ASSERT_TRUE(table.erase(first));
    }
  }
}

// Batches of lookups between insertions and erasures, over more keys than the table has entries.
TEST(ExactTable, KnowsAtAnyTimeWhatAMapKnows) {
  Layout layout(1);
  constexpr std::uint32_t kCapacity = 24;
  ExactTable<std::uint64_t, std::uint32_t> table(layout, "t", {Gress::kIngress, 0}, kCapacity);
  std::map<std::uint64_t, std::uint32_t> wanted;
  std::mt19937 random(9);
  unsigned hits = 0, misses = 0;
  for (std::uint32_t round = 0; round < 20'000; round++) {
    const std::uint64_t key =
        random() % 60;  // 0 too: what rows hold that were never used, and what rte_hash confuses with none
    const bool inserts = random() % 2;
    if (inserts && (wanted.size() < kCapacity || wanted.contains(key))) {
      ASSERT_NE(table.insert(key, round), kMiss);
      wanted[key] = round;
    } else {
      ASSERT_EQ(table.erase(key), wanted.erase(key) == 1);
    }
    std::array<std::uint64_t, kBatchMax> keys;
    std::array<std::uint32_t, kBatchMax> entries;
    for (std::uint64_t& asked : keys) asked = random() % 60;
    const std::size_t count = 1 + random() % kBatchMax;
    table.lookup_bulk({keys.data(), count}, {entries.data(), count});
    for (std::size_t i = 0; i < count; i++) {
      const auto known = wanted.find(keys[i]);
      ASSERT_EQ(entries[i] == kMiss, known == wanted.end()) << "round " << round << ", key " << keys[i];
      ASSERT_EQ(entries[i], table.lookup(keys[i]));
      known == wanted.end() ? misses++ : hits++;
      if (known == wanted.end()) continue;
      ASSERT_EQ(table.key(entries[i]), keys[i]);
      ASSERT_EQ(table.value(entries[i]), known->second);
    }
  }
  EXPECT_GT(hits, 100'000u);
  EXPECT_GT(misses, 100'000u);
}

}  // namespace
}  // namespace rocebox::switch_model
