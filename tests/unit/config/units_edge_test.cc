// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/config/units.h"

namespace rocebox::config {
namespace {

// The whole part just fits into 64 bits, and the fraction carries it beyond: 584 years become 0.19 seconds.
TEST(UnitsEdge, TheFractionCarriesBeyond64Bits) {
  EXPECT_FALSE(parse_duration("18446744073.9s")) << *parse_duration("18446744073.9s") << " ns";
  EXPECT_FALSE(parse_rate("18446744.9Tbps")) << *parse_rate("18446744.9Tbps") << " bps";
  EXPECT_FALSE(parse_bytes("18446744073.9GB")) << *parse_bytes("18446744073.9GB") << " B";
}

// A digit finer than the smallest unit is refused, but not when a zero stands in the place before it.
TEST(UnitsEdge, DigitsFarBehindTheSmallestUnit) {
  EXPECT_FALSE(parse_duration("1.0000000001s")) << "ten places";
  EXPECT_FALSE(parse_duration("1.00000000001s")) << "eleven places are taken as 1s";
  EXPECT_FALSE(parse_duration("0.05ns"));
  EXPECT_FALSE(parse_bytes("1.0000001kB"));
}

}  // namespace
}  // namespace rocebox::config
