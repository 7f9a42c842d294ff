// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel/carried.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocebox {
namespace {

struct Sum {
  double bytes = 0;
  Nanos end = 0;
  std::size_t steps = 0;
};

Sum sum_of(const BytesOverTime& bytes) {
  Sum sum;
  bytes.for_each([&](Nanos from, Nanos to, double step) {
    EXPECT_TRUE(sum.steps == 0 || from == sum.end);
    sum.end = to;
    sum.bytes += step;
    sum.steps++;
  });
  return sum;
}

TEST(Carried, StepsDoubleAndNothingIsLost) {
  BytesOverTime bytes;
  constexpr Nanos kBegin = 5 * kSecond;
  bytes.start(kBegin);
  Nanos last = kBegin;
  for (int i = 1; i <= 3000; i++) {
    const Nanos now = kBegin + i * 777;
    bytes.add(last, now, 1000);
    last = now;
  }
  const Sum sum = sum_of(bytes);
  EXPECT_NEAR(sum.bytes, 3e6, 1e-3);
  EXPECT_EQ(sum.end, last);
  EXPECT_GE(sum.steps, BytesOverTime::kSteps / 2);
  EXPECT_LE(sum.steps, BytesOverTime::kSteps);
}

TEST(Carried, BytesAreWhereTheyCame) {
  BytesOverTime bytes;
  bytes.start(100);
  bytes.add(100, 1'600, 1500);
  bytes.add(2'600, 2'600, 7);  // in no time
  std::vector<double> steps;
  bytes.for_each([&](Nanos, Nanos, double step) { steps.push_back(step); });
  EXPECT_EQ(steps, (std::vector<double>{1000, 500, 7}));
}

TEST(Carried, OfNothingThereIsOneStepWithoutBytes) {
  BytesOverTime bytes;
  bytes.start(100);
  const Sum sum = sum_of(bytes);
  EXPECT_EQ(sum.bytes, 0);
  EXPECT_EQ(sum.end, 100);
  EXPECT_EQ(sum.steps, 1u);
}

}  // namespace
}  // namespace rocebox
