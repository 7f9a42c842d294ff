// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/queues/completion_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/kernel/splitmix64.h"

namespace rocebox {
namespace {

using nic_model::CompletionQueue;

void complete(CompletionQueue& cq, std::uint16_t number) {
  mlx5_cqe64* cqe = cq.next();
  ASSERT_NE(cqe, nullptr);
  cqe->wqe_counter = htobe16(number);
  cq.publish(cqe, MLX5_CQE_REQ, false);
}

// Memory that no completion has reached is not written to: hosts have queues for the most that there can ever be.
TEST(CompletionQueue, IsWrittenToAsItIsUsed) {
  CompletionQueue cq(1, 1 << 20, 0);
  EXPECT_EQ(cq.peek(), nullptr);
  for (std::uint16_t i = 0; i < 100; i++) complete(cq, i);
  for (std::uint32_t i = 200; i < cq.entries(); i += 64) ASSERT_EQ(cq.ring()[i].op_own, 0) << i;
}

// At any fill, round and round: the host sees what was published, in order, and nothing else.
TEST(CompletionQueue, ShowsWhatWasPublished) {
  for (const std::uint32_t entries : {1u, 2u, 8u, 64u}) {
    CompletionQueue cq(1, entries, 0);
    std::uint64_t state = entries;
    std::uint16_t published = 0, seen = 0;
    for (unsigned step = 0; step < 5000; step++) {
      const bool full = cq.unconsumed() == cq.entries();
      if (!full && splitmix64::next(state) & 1) {
        complete(cq, published++);
      } else if (const mlx5_cqe64* cqe = cq.peek()) {
        ASSERT_LT(seen, published);
        ASSERT_EQ(be16toh(cqe->wqe_counter), seen++);
        cq.advance();
      } else {
        ASSERT_EQ(seen, published);
      }
    }
    EXPECT_GT(seen, 1000u);
  }
}

}  // namespace
}  // namespace rocebox
