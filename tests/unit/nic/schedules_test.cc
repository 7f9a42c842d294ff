// SPDX-License-Identifier: BSD-3-Clause
// Schedules of collectives: every byte goes, whatever the number of ranks.
#include "nic_model/host/workloads/schedules.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/nic/star_kit.h"

namespace rocebox::nic_model {
namespace {

// Bytes that all ranks send together; transfers are counted at both ends alike.
std::uint64_t sent(const Schedule& schedule, unsigned ranks, std::uint64_t size) {
  std::uint64_t sum = 0;
  std::vector<Schedule::Send> sends;
  for (unsigned step = 0; step < schedule.steps(ranks); step++) {
    std::map<unsigned, unsigned> came;
    for (unsigned rank = 0; rank < ranks; rank++) {
      sends.clear();
      schedule.sends(rank, ranks, step, size, sends);
      for (const Schedule::Send& send : sends) sum += send.bytes, came[send.to]++;
    }
    for (unsigned rank = 0; rank < ranks; rank++) EXPECT_EQ(came[rank], schedule.receives(rank, ranks, step));
  }
  return sum;
}

TEST(Schedules, NoByteIsLost) {
  for (const unsigned ranks : {2u, 3u, 4u, 7u, 8u, 12u, 16u, 33u})
    for (const std::uint64_t size : {1ull, 5ull, 11ull, 12ull, 1000ull, 1ull << 20, (1ull << 33) + 13}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(size) + " bytes");
      const std::uint64_t once = (ranks - 1) * size;  // each part to all ranks but its own
      EXPECT_EQ(sent(*ring_schedule(1), ranks, size), once);
      EXPECT_EQ(sent(*ring_schedule(2), ranks, size), 2 * once);
      EXPECT_EQ(sent(*all_to_all_schedule(), ranks, size), once);
      EXPECT_EQ(sent(*linear_gather_schedule(), ranks, size), once);
      EXPECT_EQ(sent(*pairwise_schedule(), ranks, size), once);
      EXPECT_EQ(sent(*k_nomial_schedule(2), ranks, size), once);
      for (const unsigned segments : {1u, 5u}) EXPECT_EQ(sent(*binary_tree_schedule(segments), ranks, size), once);
      if (!std::has_single_bit(ranks)) continue;
      EXPECT_EQ(sent(*doubling_schedule(), ranks, size), once);
      EXPECT_EQ(sent(*halving_doubling_schedule(), ranks, size), 2 * once);
    }
}

// Five bytes of four ranks: 2, 1, 1, 1.
TEST(Schedules, TheFirstPartsAreOneByteLonger) {
  const auto bytes_of = [](const Schedule& schedule, unsigned rank, unsigned step) {
    std::vector<Schedule::Send> sends;
    schedule.sends(rank, 4, step, 5, sends);
    return sends.at(0).bytes;
  };
  const auto ring = ring_schedule(2);  // rank r sends part r - step
  for (unsigned rank = 0; rank < 4; rank++)
    for (unsigned step = 0; step < 6; step++)
      EXPECT_EQ(bytes_of(*ring, rank, step), (rank + 8 - step) % 4 == 0 ? 2u : 1u) << rank << ", " << step;
  const auto halving = halving_doubling_schedule();
  EXPECT_EQ(bytes_of(*halving, 0, 0), 2u) << "parts 2 and 3";
  EXPECT_EQ(bytes_of(*halving, 2, 0), 3u) << "parts 0 and 1";
  EXPECT_EQ(bytes_of(*halving, 1, 1), 2u) << "part 0";
  EXPECT_EQ(bytes_of(*halving, 0, 2), 2u) << "it comes back";
  EXPECT_EQ(bytes_of(*halving, 0, 3), 3u);
  std::vector<Schedule::Send> sends;
  halving->sends(0, 8, 0, 8, sends);
  EXPECT_EQ(sends[0].to, 4u) << "the farthest first";
}

// A part of nothing is a message of no bytes, for which its receiver waits as for the others.
TEST(Schedules, PartsOfNothingAreMessages) {
  for (const auto& [name, yaml, transfers] : std::initializer_list<std::tuple<const char*, const char*, std::size_t>>{
           {"all_reduce", "size: 3B", 5 * 8},
           {"all_to_all", "{size: 1B, algorithm: pairwise}", 5 * 4},
           {"broadcast", "{size: 2B, algorithm: binary_tree, segments: 3}", 4 * 3}}) {
    for (const char* recovery : {"go_back_n", "selective"}) {
      SCOPED_TRACE(std::string(name) + ", " + recovery);
      test::Star star(5, std::string("header_only: true\nrecovery: ") + recovery, "delay: 1us");
      const auto workload = test::workload_options(name, yaml)->make(star.all, 7);
      star.run(*workload);
      EXPECT_TRUE(workload->finished());
      EXPECT_EQ(workload->flows().size(), transfers);
      test::NumbersOf report;
      workload->report(report);
      EXPECT_EQ(report.values["misplaced"], 0);
      EXPECT_EQ(report.values["failed_queue_pairs"], 0);
    }
  }
}

}  // namespace
}  // namespace rocebox::nic_model
