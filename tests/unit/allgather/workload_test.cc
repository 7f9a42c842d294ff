// SPDX-License-Identifier: BSD-3-Clause
// The workloads' own reports.
#include "tests/unit/nic/star_kit.h"

namespace rocebox::test {
namespace {

// Of three collectives in one buffer the first one registers it, with bytes and without.
TEST(AllgatherWorkload, BuffersThatComeAgainAreRegisteredOnce) {
  for (const char* nic : {"", "header_only: true"}) {
    Star star(3, nic, "delay: 1us");
    const auto options = workload_options("multicast_allgather", "{size: 10000, iterations: 3}");
    const auto workload = options->make(star.all, 1);
    star.run(*workload);
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["released_whole"], 9) << nic;
    EXPECT_EQ(report.values["wrong_blocks"], 0) << nic;
    EXPECT_EQ(report.values["registration_hits"], 6) << nic;
  }
}

// What is lost on the way to a switch's sums is not sent again: who misses it ends by name.
TEST(AllgatherWorkload, SumsThatDoNotComeEndByName) {
  Star star(3, "", "{delay: 1us, loss: 100%, match: {opcode: 0x65}}");
  const auto options = workload_options("inc_reduce_scatter", "{bytes: 1000, mtu: 256, timeout: 5ms}");
  const auto workload = options->make(star.all, 1);
  star.run(*workload);
  EXPECT_TRUE(workload->finished());
  NumbersOf report;
  workload->report(report);
  EXPECT_EQ(report.values["reduction_timeout"], 3);
  EXPECT_EQ(report.values["sums_missing"], 3 * 4);
  EXPECT_EQ(report.values["sums"], 0);
}

}  // namespace
}  // namespace rocebox::test
