// SPDX-License-Identifier: BSD-3-Clause
// Fixed point of device programs against double arithmetic and whole-number division.
#include "nic_model/dpa/include/rocebox/fxp16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rocebox::test::fixed_point {
namespace {

// Of all sizes alike.
std::uint32_t any(std::mt19937_64& random) { return static_cast<std::uint32_t>(random()) >> random() % 32; }

TEST(Fxp16, QuotientsAndRootsAreExact) {
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 200'000; i++) {
    const std::uint32_t a = any(random), b = any(random);
    const std::uint64_t wide = random() >> random() % 64;
    const auto most = std::uint64_t{FXP16_MAX};
    ASSERT_EQ(fxp16_recip(a), a ? std::min(most, (std::uint64_t{1} << 32) / a) : most) << a;
    ASSERT_EQ(fxp16_div(a, b), b ? std::min(most, (std::uint64_t{a} << 16) / b) : most) << a << " " << b;
    ASSERT_EQ(fxp16_quotient(wide, b), b ? std::min(most, wide / b) : most) << wide << " " << b;
    ASSERT_EQ(fxp16_mul(a, b), std::min(most, std::uint64_t{a} * b >> 16));
    ASSERT_EQ(fxp16_add(a, b), std::min(most, std::uint64_t{a} + b));
    ASSERT_EQ(fxp16_sub(a, b), a > b ? a - b : 0);
    const std::uint64_t root = fxp16_isqrt(wide);
    ASSERT_LE(root * root, wide);
    ASSERT_TRUE(root == 0xFFFFFFFF || (root + 1) * (root + 1) > wide) << wide;
    ASSERT_EQ(fxp16_sqrt(a), static_cast<std::uint32_t>(std::sqrt(static_cast<double>(std::uint64_t{a} << 16)))) << a;
  }
  EXPECT_EQ(fxp16_isqrt(~std::uint64_t{0}), 0xFFFFFFFFu);
}

TEST(Fxp16, PowersAndLogarithmsAreCloseToExact) {
  std::mt19937_64 random(2);
  for (unsigned i = 0; i < 200'000; i++) {
    const std::uint32_t a = any(random);
    const double power = std::exp2(a / 65536.0) * 65536;
    if (a < 16 << 16) {
      ASSERT_NEAR(fxp16_pow2(a), power, 2 + power * 2 / 65536) << a;
    } else {
      ASSERT_EQ(fxp16_pow2(a), FXP16_MAX);
    }
    if (a == 0) continue;
    ASSERT_NEAR(static_cast<std::int32_t>(fxp16_log2(a)), std::log2(a / 65536.0) * 65536, 2) << a;
  }
  EXPECT_EQ(fxp16_pow2(0), FXP16_ONE);
  EXPECT_EQ(fxp16_pow2(FXP16(5)), FXP16(32));
  EXPECT_EQ(fxp16_log2(FXP16(32)), FXP16(5));
  EXPECT_EQ(FXP16_OF(3, 2), 98304u);
}

}  // namespace
}  // namespace rocebox::test::fixed_point
