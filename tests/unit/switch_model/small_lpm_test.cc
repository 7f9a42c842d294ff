// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/tables/small_lpm.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rocebox::small_lpm_test {
namespace {

using switch_model::kMiss;
using switch_model::SmallLpm;
using Key = SmallLpm<2>::Key;

Key key_of(unsigned number) { return {static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)}; }

// Prefixes by (bits, address), the longest that matches by trying each.
class Oracle {
 public:
  void insert(unsigned address, unsigned bits, std::uint32_t value) { all_[{bits, address & mask(bits)}] = value; }
  bool erase(unsigned address, unsigned bits) { return all_.erase({bits, address & mask(bits)}) == 1; }
  std::uint32_t lookup(unsigned address) const {
    for (unsigned bits = 17; bits-- > 0;)
      if (const auto found = all_.find({bits, address & mask(bits)}); found != all_.end()) return found->second;
    return kMiss;
  }
  std::size_t size() const { return all_.size(); }

 private:
  static unsigned mask(unsigned bits) { return (0xFFFF0000u >> bits) & 0xFFFF; }
  std::map<std::pair<unsigned, unsigned>, std::uint32_t> all_;
};

TEST(SmallLpm, GivesWhatTheLongestPrefixSays) {
  for (unsigned seed = 0; seed < 20; seed++) {
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<unsigned>(engine()); };
    SmallLpm<2> table;
    Oracle oracle;
    for (unsigned step = 0; step < 200; step++) {
      const unsigned address = random() & 0xFFFF, bits = random() % 17;
      if (random() % 4 == 0) {
        EXPECT_EQ(table.erase(key_of(address), bits), oracle.erase(address, bits));
      } else {
        const std::uint32_t value = random() % 1000;
        EXPECT_TRUE(table.insert(key_of(address), bits, value, 1000));
        oracle.insert(address, bits, value);
      }
      for (unsigned probe = 0; probe < 50; probe++) {
        const unsigned at = probe < 2 ? address + probe - 1 : random();
        ASSERT_EQ(table.lookup(key_of(at & 0xFFFF)), oracle.lookup(at & 0xFFFF)) << seed << " " << step;
      }
    }
  }
}

TEST(SmallLpm, IsFullWhenItIs) {
  SmallLpm<2> table;
  EXPECT_TRUE(table.insert({1, 0}, 8, 1, 2));
  EXPECT_TRUE(table.insert({2, 0}, 8, 2, 2));
  EXPECT_FALSE(table.insert({3, 0}, 8, 3, 2));
  EXPECT_TRUE(table.insert({2, 0}, 8, 4, 2)) << "which is there";
  EXPECT_EQ(table.lookup({3, 1}), kMiss);
  EXPECT_EQ(table.lookup({2, 1}), 4u);
  EXPECT_EQ(table.lookup({0, 255}), kMiss);
  EXPECT_EQ(table.lookup({255, 255}), kMiss);
}

}  // namespace
}  // namespace rocebox::small_lpm_test
