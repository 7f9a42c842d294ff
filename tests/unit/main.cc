// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <malloc.h>

#include "runtime/process/eal.h"
#include "tests/unit/harness.h"

int main(int argc, char** argv) {
  // Large arrays are new to the process, whatever the tests before gave back: some look at how their pages are had.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  testing::InitGoogleTest(&argc, argv);
  // A death test that forks would share DPDK's memory with its child, which would leave it in disorder.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // A switch's routes, and those of a reload beside them.
  constexpr std::uint64_t kRoutesMebibytes = 2 * 144;
  rocebox::start_eal(rocebox::test::kPoolSizes.mebibytes() * 2 + kRoutesMebibytes);
  return RUN_ALL_TESTS();
}
