// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/interrupts.h"

#include <gtest/gtest.h>

namespace rocebox::lab {
namespace {

// timeout(1) signals a process, and then its group.
TEST(Interrupts, ASignalAtOnceAfterOneSaysTheSameAgain) {
  Interrupts interrupts;
  raise(SIGTERM);
  EXPECT_THROW(interrupts.wait({}, 0), Interrupted);
  const Nanos heard = steady_now();
  raise(SIGTERM);
  try {
    interrupts.wait({}, 0);
    EXPECT_EQ(interrupts.heard(), 1u);
  } catch (const Interrupted&) {
    EXPECT_GT(steady_now() - heard, 100 * kMillisecond) << "this test was held up, and another wish it was";
  }
}

// Whatever has come, it waits as long as it is told, and for no longer.
TEST(Interrupts, AWaitHasItsTime) {
  Interrupts interrupts;
  const Nanos begin = steady_now();
  interrupts.wait({}, 5 * kMillisecond);
  EXPECT_GE(steady_now() - begin, 5 * kMillisecond);
  EXPECT_EQ(interrupts.heard(), 0u);
}

}  // namespace
}  // namespace rocebox::lab
