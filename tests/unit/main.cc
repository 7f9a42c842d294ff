// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/packet/eal.h"
#include "tests/unit/harness.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // A death test that forks would share DPDK's memory with its child, which would leave it in disorder.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  rocebox::start_eal(rocebox::test::kPoolSizes.mebibytes() * 2);
  return RUN_ALL_TESTS();
}
