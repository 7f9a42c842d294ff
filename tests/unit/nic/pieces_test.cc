// SPDX-License-Identifier: BSD-3-Clause
// Requests whose memory is in pieces: what is gathered here and scattered there is what one piece would have been.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::pieces {
namespace {

constexpr unsigned kPiecesMax = 4;  // NicBox's
constexpr std::uint32_t kInlineMax = 64, kRoom = 8192;
using Generator = std::mt19937_64;

std::uint32_t below(Generator& random, std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); }

// Up to kPiecesMax pieces that come to `bytes`, apart from each other and in no order; some have no byte.
std::vector<ibv_sge> pieces_of(Generator& random, const Side& side, std::uint32_t bytes, std::uint64_t from) {
  std::vector<std::uint32_t> ends(below(random, kPiecesMax));
  for (std::uint32_t& end : ends) end = below(random, bytes + 1);
  ends.push_back(bytes);
  std::ranges::sort(ends);
  std::vector<std::uint32_t> slots(ends.size());
  std::iota(slots.begin(), slots.end(), 0u);
  std::ranges::shuffle(slots, random);
  std::vector<ibv_sge> all;
  for (std::size_t i = 0; i < ends.size(); i++)
    all.push_back(
        {side.address() + from + slots[i] * kRoom + below(random, 16), ends[i] - (i ? ends[i - 1] : 0), side.key});
  return all;
}

std::vector<std::uint8_t> bytes_in(const Side& side, const std::vector<ibv_sge>& list) {
  std::vector<std::uint8_t> all;
  for (const ibv_sge& one : list) {
    const auto* at = side.memory.data() + (one.addr - side.address());
    all.insert(all.end(), at, at + one.length);
  }
  return all;
}

// Bytes of a side's memory that are not in the list, and their sum: nobody writes there.
std::uint64_t sum_beside(const Side& side, const std::vector<ibv_sge>& list) {
  std::vector<std::uint8_t> memory = side.memory;
  for (const ibv_sge& one : list)
    std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(one.addr - side.address()), one.length, 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i++) sum += memory[i] * (i + 1);
  return sum;
}

void post_receive(NicBox& box, std::vector<ibv_sge>& list) {
  box.on(1, [&](nic_model::Host& host) {
    ibv_recv_wr wr{9, nullptr, list.data(), static_cast<int>(list.size())};
    EXPECT_EQ(0, host.post_receive(*box.sides[1].qp, &wr, nullptr));
  });
}

// One request of either kind; what it moves, and whereto.
void try_one(NicBox& box, Generator& random, ibv_wr_opcode opcode, bool is_inline) {
  Side &near = box.sides[0], &far = box.sides[1];
  for (Side* side : {&near, &far})
    for (std::uint8_t& byte : side->memory) byte = static_cast<std::uint8_t>(random());
  const std::uint32_t bytes = is_inline ? below(random, kInlineMax + 1) : below(random, 5000);
  std::vector<ibv_sge> local = pieces_of(random, near, bytes, 0);
  std::vector<ibv_sge> remote = {{far.address() + 500, bytes, far.key}};
  if (opcode == IBV_WR_SEND) {
    remote = pieces_of(random, far, bytes, 0);
    post_receive(box, remote);
  }
  const bool reads = opcode == IBV_WR_RDMA_READ;
  const std::vector<std::uint8_t> expected = reads ? bytes_in(far, remote) : bytes_in(near, local);
  Side& to = reads ? near : far;
  const std::vector<ibv_sge>& places = reads ? local : remote;
  const std::uint64_t beside = sum_beside(to, places);
  ASSERT_EQ(
      0, box.post(0, 7, opcode, 0, 1, 500, IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0), [&](ibv_send_wr& wr) {
        wr.sg_list = local.data();
        wr.num_sge = static_cast<int>(local.size());
      }));
  box.run(10 * kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
  ASSERT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS) << box.state();
  EXPECT_EQ(bytes_in(to, places), expected) << local.size() << " pieces to " << remote.size();
  EXPECT_EQ(sum_beside(to, places), beside);
  if (opcode == IBV_WR_SEND) {
    ASSERT_EQ(box.completions(1).size(), 1u);
    EXPECT_EQ(box.completions(1)[0].byte_len, bytes);
  }
  for (const unsigned side : {0u, 1u}) box.completions(side).clear();
}

TEST(Pieces, AreGatheredAndScatteredAsOne) {
  Generator random(17);
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_1024, IBV_MTU_4096}) {
    NicBox box;
    box.connect({.mtu = mtu, .bytes = 4 * kRoom + 64, .min_rnr_timer = 1});
    for (unsigned i = 0; i < 100 && !HasFatalFailure(); i++)
      for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
        for (const bool is_inline : {false, true}) {
          if (is_inline && opcode == IBV_WR_RDMA_READ) continue;
          SCOPED_TRACE(testing::Message()
                       << i << ", MTU " << (128 << mtu) << ", opcode " << opcode << ", inline " << is_inline);
          try_one(box, random, opcode, is_inline);
        }
  }
}

// The key that a SEND brings is good for nothing once it has come, and the completion names it.
TEST(Pieces, ASendTakesBackAWindow) {
  NicBox box;
  PairOptions options;
  options.access |= IBV_ACCESS_MW_BIND;
  box.connect(options);
  std::uint32_t window = 0;
  box.on(1, [&](nic_model::Host& host) {
    nic_model::Memory& memory = host.memory();
    nic_model::MemoryError error;
    window = memory.bind(memory.add_window(box.sides[1].pd), 3, box.sides[1].key, box.sides[1].address(), 4096,
                         IBV_ACCESS_REMOTE_WRITE, box.sides[1].qp->accessor(), error);
  });
  ASSERT_NE(window, 0u);
  const auto write = [&](std::uint64_t id) {
    return box.post(0, id, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED,
                    [&](ibv_send_wr& wr) { wr.wr.rdma.rkey = window; });
  };
  box.post_receive(1, 8, 8192, 3000);
  ASSERT_EQ(0, write(1));
  ASSERT_EQ(0, box.post(0, 2, IBV_WR_SEND_WITH_INV, 0, 3000, 0, IBV_SEND_SIGNALED,
                        [&](ibv_send_wr& wr) { wr.invalidate_rkey = window; }));
  ASSERT_EQ(0, write(3));
  box.run(10 * kMillisecond);
  ASSERT_EQ(box.completions(1).size(), 1u) << box.state();
  const ibv_wc& received = box.completions(1)[0];
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.byte_len, 3000u);
  EXPECT_TRUE(received.wc_flags & IBV_WC_WITH_INV);
  EXPECT_FALSE(received.wc_flags & IBV_WC_WITH_IMM);
  EXPECT_EQ(received.invalidated_rkey, window);
  ASSERT_EQ(box.completions(0).size(), 3u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(0)[1].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(0)[1].opcode, IBV_WC_SEND);
  EXPECT_EQ(box.completions(0)[2].status, IBV_WC_REM_ACCESS_ERR);
}

}  // namespace
}  // namespace rocebox::test::pieces
