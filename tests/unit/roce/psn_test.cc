// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/psn.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rocebox::roce {
namespace {

constexpr std::uint32_t kHalf = 1u << 23;

// 64 numbers on each side of 0 (the wrap), of the middle and of the quarters.
std::vector<std::uint32_t> edges() {
  std::vector<std::uint32_t> psns;
  for (std::uint32_t centre : {0u, kHalf, kHalf / 2, kHalf / 2 * 3})
    for (std::uint32_t i = 0; i < 128; i++) psns.push_back((centre - 64 + i) & kPsnMask);
  return psns;
}

// The definition in wide integers: the distance of least size, -2^23 rather than +2^23.
std::int64_t oracle_distance(std::int64_t a, std::int64_t b) {
  const std::int64_t forward = ((a - b) % (1 << 24) + (1 << 24)) % (1 << 24);
  return forward >= (1 << 23) ? forward - (1 << 24) : forward;
}

TEST(Psn, DistanceIsTheSignedDistanceOfLeastSize) {
  for (std::uint32_t a : edges())
    for (std::uint32_t b : edges()) ASSERT_EQ(psn_distance(a, b), oracle_distance(a, b)) << a << " - " << b;
}

TEST(Psn, AddUndoesDistance) {
  for (std::uint32_t a : edges())
    for (std::uint32_t b : edges()) ASSERT_EQ(psn_add(b, psn_distance(a, b)), a);
}

TEST(Psn, DistanceIsAntisymmetricButForTheOppositePoint) {
  for (std::uint32_t a : edges()) {
    for (std::uint32_t b : edges()) {
      if (((a - b) & kPsnMask) == kHalf) {
        EXPECT_EQ(psn_distance(a, b), -static_cast<std::int32_t>(kHalf));
        EXPECT_TRUE(psn_before(a, b) && psn_before(b, a)) << "the opposite point is before, from both sides";
      } else {
        ASSERT_EQ(psn_distance(a, b), -psn_distance(b, a));
        ASSERT_EQ(psn_before(a, b), psn_after(b, a));
        ASSERT_EQ(psn_before(a, b) + psn_after(a, b) + (a == b), 1);
      }
    }
  }
}

TEST(Psn, AddWraps) {
  struct Row {
    std::uint32_t psn;
    std::int64_t n;
    std::uint32_t sum;
  };
  constexpr Row kRows[] = {
      {0, 0, 0},         {0xFFFFFF, 1, 0},     {0, -1, 0xFFFFFF},       {0xFFFFFF, 0xFFFFFF, 0xFFFFFE},
      {5, -6, 0xFFFFFF}, {0, 1 << 24, 0},      {1, -(1 << 24), 1},      {0x800000, 0x800000, 0},
      {3, 1ll << 40, 3}, {3, -(1ll << 40), 3}, {0, (1ll << 40) + 7, 7}, {0, -(1ll << 40) - 7, 0xFFFFF9}};
  for (const Row& row : kRows) EXPECT_EQ(psn_add(row.psn, row.n), row.sum) << row.psn << " + " << row.n;
}

TEST(Psn, UpperBitsOfAnArgumentDoNotMatter) {
  for (std::uint32_t a : {0u, 5u, 0xFFFFFFu}) {
    EXPECT_EQ(psn_distance(a | 0xAB000000u, 7), psn_distance(a, 7));
    EXPECT_EQ(psn_distance(7, a | 0xAB000000u), psn_distance(7, a));
    EXPECT_EQ(psn_in_window(a | 0xAB000000u, 0, 6), psn_in_window(a, 0, 6));
    EXPECT_EQ(psn_add(a | 0xAB000000u, 1), psn_add(a, 1));
  }
}

TEST(Psn, WindowHoldsExactlyCountNumbers) {
  for (std::uint32_t first : edges()) {
    for (std::uint32_t count : {0u, 1u, 2u, 100u}) {
      unsigned inside = 0;
      for (std::int64_t i = -130; i < 130; i++) inside += psn_in_window(psn_add(first, i), first, count);
      ASSERT_EQ(inside, count) << first;
      ASSERT_EQ(psn_in_window(first, first, count), count > 0);
      ASSERT_FALSE(psn_in_window(psn_add(first, -1), first, count));
    }
  }
  EXPECT_TRUE(psn_in_window(0xFFFFFF, 0, kPsnModulus)) << "the whole ring";
}

TEST(Psn, RandomWalkKeepsItsDistance) {
  std::mt19937 random(1);
  for (int round = 0; round < 100'000; round++) {
    const std::uint32_t start = random() & kPsnMask;
    const std::int64_t step = static_cast<std::int64_t>(random() % (2 * kHalf - 1)) - (kHalf - 1);
    ASSERT_EQ(psn_distance(psn_add(start, step), start), step);
  }
}

}  // namespace
}  // namespace rocebox::roce
