// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/flows/flow_table.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

namespace rocebox::flows {
namespace {

using Key = std::array<std::uint8_t, 36>;
using Table = FlowTable<Key>;

Key key_of(std::uint32_t number) {
  Key key{};
  std::memcpy(key.data() + 16, &number, sizeof(number));
  return key;
}

TEST(FlowTable, NumbersKeysInOrderUntilFull) {
  for (const std::uint32_t capacity : {1u, 2u, 3u, 64u, 1000u, 65536u}) {
    Table table(capacity);
    for (std::uint32_t i = 0; i < capacity; i++) {
      ASSERT_EQ(table.find(key_of(i)), Table::kNone);
      ASSERT_EQ(table.insert(key_of(i)), i);
      ASSERT_EQ(table.insert(key_of(i)), i) << "known";
    }
    EXPECT_EQ(table.insert(key_of(capacity)), Table::kNone) << "full";
    EXPECT_EQ(table.find(key_of(capacity)), Table::kNone);
    EXPECT_EQ(table.size(), capacity);
    for (std::uint32_t i = 0; i < capacity; i++) ASSERT_EQ(table.find(key_of(i)), i);
    std::uint32_t number = 0;
    for (const Key& key : table.keys()) ASSERT_EQ(key, key_of(number++));
  }
}

TEST(FlowTable, AgreesWithAMapWhereKeysAreErased) {
  std::mt19937 random(8);
  for (int round = 0; round < 50; round++) {
    Table table(static_cast<std::uint32_t>(1 + random() % 300));
    std::map<Key, std::uint32_t> model;
    std::set<std::uint32_t> numbers;
    for (int step = 0; step < 4000; step++) {
      const Key key = key_of(static_cast<std::uint32_t>(random() % 500));
      const auto known = model.find(key);
      if (random() % 3 == 0) {
        ASSERT_EQ(table.find(key), known == model.end() ? Table::kNone : known->second);
      } else if (random() % 2 && known != model.end()) {
        table.erase(known->second);
        numbers.erase(known->second);
        model.erase(known);
        ASSERT_EQ(table.find(key), Table::kNone);
      } else if (known != model.end()) {
        ASSERT_EQ(table.insert(key), known->second);
      } else if (model.size() == table.capacity()) {
        ASSERT_EQ(table.insert(key), Table::kNone);
      } else {
        const std::uint32_t number = table.insert(key);
        ASSERT_LT(number, table.capacity());
        ASSERT_TRUE(numbers.insert(number).second) << "given twice";
        ASSERT_EQ(table.key(number), key);
        model[key] = number;
      }
      ASSERT_EQ(table.size(), model.size());
    }
  }
}

TEST(FlowTable, ErasedKeysLeaveNoTrace) {
  Table table(64);
  for (std::uint32_t i = 0; i < 100'000; i++) {  // each slot has been erased many times
    const std::uint32_t number = table.insert(key_of(i));
    ASSERT_NE(number, Table::kNone);
    if (table.size() == 64) {
      for (std::uint32_t k = i - 63; k <= i; k++) table.erase(table.find(key_of(k)));
      ASSERT_EQ(table.size(), 0u);
    }
  }
}

TEST(FlowTable, AgreesWithAMap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; round++) {
    Table table(static_cast<std::uint32_t>(1 + random() % 300));
    std::map<Key, std::uint32_t> model;
    for (int step = 0; step < 2000; step++) {
      const Key key = key_of(static_cast<std::uint32_t>(random() % 500));
      const auto known = model.find(key);
      if (random() % 2) {
        ASSERT_EQ(table.find(key), known == model.end() ? Table::kNone : known->second);
      } else if (known != model.end()) {
        ASSERT_EQ(table.insert(key), known->second);
      } else if (model.size() == table.capacity()) {
        ASSERT_EQ(table.insert(key), Table::kNone);
      } else {
        const auto number = static_cast<std::uint32_t>(model.size());
        ASSERT_EQ(table.insert(key), number);
        model[key] = number;
      }
    }
  }
}

TEST(FlowTable, EveryBitOfTheKeyMovesHalfTheHash) {
  std::mt19937_64 random(3);
  Key key{};
  for (auto& byte : key) byte = static_cast<std::uint8_t>(random());
  const std::uint64_t hash = Table::hash(key);
  double flipped = 0;
  for (unsigned bit = 0; bit < key.size() * 8; bit++) {
    Key other = key;
    other[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const int changed = __builtin_popcountll(hash ^ Table::hash(other));
    EXPECT_GT(changed, 10) << "bit " << bit;
    flipped += changed;
  }
  EXPECT_NEAR(flipped / static_cast<double>(key.size() * 8), 32, 1.5);
}

TEST(FlowTable, ZeroedArrayIsZeroAndAligned) {
  const ZeroedArray<std::uint64_t> array(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % 64, 0u);
  for (std::size_t i = 0; i < array.size(); i++) ASSERT_EQ(array[i], 0u);
  EXPECT_THROW(ZeroedArray<std::uint64_t>(SIZE_MAX / 4), std::bad_alloc);
}

}  // namespace
}  // namespace rocebox::flows
