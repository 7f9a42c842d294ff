// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/queues/completion_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

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

// Of several queue pairs, at any fill, round and round: the host sees what is not taken out, in order, and the NIC goes
// on where it was.
TEST(CompletionQueue, WhatIsTakenOutLeavesTheRestInOrder) {
  for (const std::uint32_t entries : {1u, 2u, 8u, 64u}) {
    CompletionQueue cq(1, entries, 0);
    std::deque<std::pair<std::uint32_t, std::uint16_t>> expected;  // queue pair, number
    std::uint64_t state = entries;
    std::uint16_t published = 0;
    unsigned removed = 0;
    for (unsigned step = 0; step < 20000; step++) {
      const std::uint64_t random = splitmix64::next(state);
      const auto qpn = static_cast<std::uint32_t>(random >> 8 & 3);
      const bool failed = (random >> 16 & 3) == 0;
      if (random % 16 == 0) {
        const auto gone =
            std::stable_partition(expected.begin(), expected.end(), [&](const auto& one) { return one.first != qpn; });
        std::vector<std::uint16_t> numbers;
        for (auto one = gone; one != expected.end(); one++) numbers.push_back(one->second);
        expected.erase(gone, expected.end());
        std::vector<std::uint16_t> given;
        cq.remove(qpn, [&](const nic_model::CqeWords& words) { given.push_back(words.wqe_counter); });
        ASSERT_EQ(given, numbers);
        removed += static_cast<unsigned>(numbers.size());
      } else if (cq.unconsumed() < cq.entries() && random % 2) {
        mlx5_cqe64* cqe = cq.next();
        ASSERT_NE(cqe, nullptr);
        if (failed) {
          auto& error = reinterpret_cast<nic_model::ErrorCqe&>(*cqe);
          error.opcode_qpn = htobe32(0x0A000000 | qpn);
          error.wqe_counter = htobe16(published);
        } else {
          cqe->sop_drop_qpn = htobe32(0x0A000000 | qpn);
          cqe->wqe_counter = htobe16(published);
        }
        cq.publish(cqe, failed ? MLX5_CQE_REQ_ERR : MLX5_CQE_REQ, false);
        expected.emplace_back(qpn, published++);
      } else if (const mlx5_cqe64* cqe = cq.peek()) {
        ASSERT_FALSE(expected.empty());
        const nic_model::CqeWords words(*cqe);
        ASSERT_EQ(std::pair(words.qpn, words.wqe_counter), expected.front());
        expected.pop_front();
        cq.advance();
      } else {
        ASSERT_TRUE(expected.empty());
      }
      ASSERT_EQ(cq.unconsumed(), expected.size());
    }
    EXPECT_GT(removed, 50u);
  }
}

}  // namespace
}  // namespace rocebox
