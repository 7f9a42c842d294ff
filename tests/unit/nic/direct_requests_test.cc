// SPDX-License-Identifier: BSD-3-Clause
// Where WRITEs are placed as they come: what is no WRITE, and WRITEs that are not kept ahead of their turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nic_model/transport/psn_set.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::direct_requests {
namespace {

constexpr std::uint32_t kPsn = 100, kMtu = 1024;
constexpr const char* kRecoveries[] = {"rnic_sr", "selective"};

// A wire of 1 us that loses this request the first time.
std::string losing(std::uint32_t psn) {
  return fmt::format("delay: 1us\nevents: [{{qpn: 17, psn: {}, source: 10.0.0.1, do: drop}}]", psn);
}

std::string recovering(const char* recovery) { return fmt::format("rate: 100Gbps\nrecovery: {}", recovery); }

using Statuses = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;
Statuses statuses(NicBox& box) {
  Statuses all;
  for (const ibv_wc& wc : box.completions(0)) all.emplace_back(wc.wr_id, wc.status);
  return all;
}

// One request in the midst of many is lost. Those behind it were dropped: the sender goes back to it at once, which
// costs no retry.
TEST(DirectRequests, ALostOneThatIsNoWriteWaitsForNoTimer) {
  constexpr unsigned kRequests = 40;
  for (const char* recovery : kRecoveries)
    for (const auto& each :
         {std::pair(IBV_WR_SEND, 3 * kMtu), {IBV_WR_RDMA_READ, 3 * kMtu}, {IBV_WR_ATOMIC_FETCH_AND_ADD, 8u}}) {
      const ibv_wr_opcode opcode = each.first;
      const std::uint32_t bytes = each.second;
      SCOPED_TRACE(fmt::format("{} {}", recovery, static_cast<int>(opcode)));
      NicBox box(recovering(recovery), losing(kPsn + (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 9 : 27)));
      box.connect({.psn = kPsn, .timeout = 14, .retry_cnt = 0});
      box.run(kMillisecond);  // the way is known
      for (unsigned i = 0; i < kRequests; i++) {
        EXPECT_EQ(0, box.post_receive(1, i, i * 3 * kMtu, 3 * kMtu));
        EXPECT_EQ(0, box.post(0, i, opcode, i * 3 * kMtu, bytes, 0, IBV_SEND_SIGNALED, [&](ibv_send_wr& request) {
          if (opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) return;
          request.wr.atomic = {box.sides[1].address(), 1, 0, box.sides[1].key};
        }));
      }
      box.run(500 * kMicrosecond);
      EXPECT_EQ(box.completions(0).size(), kRequests);
      for (const ibv_wc& wc : box.completions(0)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
      EXPECT_LE(box.count(0, "retransmitted_packets"), 40u) << "a flight of them";
      box.run();
    }
}

// SENDs that overtake each other: no more is sent again than a small factor of what go-back-N sends.
TEST(DirectRequests, SendsThatOvertakeCostAboutWhatGoBackNTakes) {
  const auto sent_again = [](const char* recovery) {
    NicBox box(recovering(recovery), "delay: 5us\nforward: {reorder: 2%, loss: 0.5%}");
    box.connect({.timeout = 8, .send_wr = 256, .receive_wr = 256});
    for (unsigned i = 0; i < 200; i++) {
      EXPECT_EQ(0, box.post_receive(1, i, 0, 8 * kMtu));
      EXPECT_EQ(0, box.post(0, i, IBV_WR_SEND, 0, 8 * kMtu));
    }
    box.run();
    EXPECT_EQ(box.completions(0).size(), 200u);
    EXPECT_EQ(box.completions(1).size(), 200u);
    return box.count(0, "retransmitted_packets");
  };
  const std::uint64_t go_back = sent_again("go_back_n");
  EXPECT_GT(go_back, 0u);
  for (const char* recovery : kRecoveries) EXPECT_LT(sent_again(recovery), 3 * go_back) << recovery;
}

// The sender's window is more than the receiver keeps ahead. What that drops it does not name.
TEST(DirectRequests, AWriteForWhichThereIsNoRoomWaitsForNoTimer) {
  NicBox box(recovering("selective"), losing(kPsn + 50), 1, "window: 16");
  box.connect({.psn = kPsn, .timeout = 14});
  std::iota(box.sides[0].memory.begin(), box.sides[0].memory.end(), std::uint8_t{1});
  box.run(kMillisecond);  // the way is known
  EXPECT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 400 * kMtu));
  box.run(500 * kMicrosecond);
  EXPECT_EQ(statuses(box), (Statuses{{1, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(
      std::equal(box.sides[0].memory.begin(), box.sides[0].memory.begin() + 400 * kMtu, box.sides[1].memory.begin()));
  EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
  box.run();
}

// RNIC-SR's NAK says nothing of what came: that the one with the wrong key is missing, a copy of the last tells.
TEST(DirectRequests, AWriteWithAWrongKeyIsToldSoWithoutATimer) {
  for (const char* recovery : kRecoveries) {
    SCOPED_TRACE(recovery);
    NicBox box(recovering(recovery), losing(kPsn));
    box.connect({.psn = kPsn, .timeout = 14});
    box.run(kMillisecond);  // the way is known
    EXPECT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, kMtu));
    EXPECT_EQ(0, box.post(0, 2, IBV_WR_RDMA_WRITE, 0, kMtu, 0, IBV_SEND_SIGNALED,
                          [](ibv_send_wr& request) { request.wr.rdma.rkey ^= 0x5A00; }));
    EXPECT_EQ(0, box.post(0, 3, IBV_WR_RDMA_WRITE, 0, kMtu));
    box.run(500 * kMicrosecond);
    EXPECT_EQ(statuses(box), (Statuses{{1, IBV_WC_SUCCESS}, {2, IBV_WC_REM_ACCESS_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
    box.run();
  }
}

// In SQD what has begun goes to its end, what is to be sent again with it; later messages wait for RTS.
TEST(DirectRequests, ARecoveryGoesOnWhileTheQueueIsDrained) {
  for (const char* recovery : kRecoveries)
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND}) {
      SCOPED_TRACE(fmt::format("{} {}", recovery, static_cast<int>(opcode)));
      NicBox box(recovering(recovery) + "\nlimiter: {qp_rate: 10Gbps}", losing(kPsn + 5));
      box.connect({.psn = kPsn, .timeout = 14});
      std::iota(box.sides[0].memory.begin(), box.sides[0].memory.end(), std::uint8_t{1});
      box.run(kMillisecond);  // the way is known
      constexpr std::uint32_t kBytes = 20 * kMtu;
      for (std::uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(0, box.post_receive(1, i, i * kBytes, kBytes));
        EXPECT_EQ(0, box.post(0, i, opcode, i * kBytes, kBytes, i * kBytes));
      }
      while (box.count(0, "packet_seq_err") == 0) box.run(100);
      const auto move_to = [&](ibv_qp_state state, int more) {
        box.on(0, [&](nic_model::Host& host) {
          ibv_qp_attr a{};
          a.qp_state = state;
          a.en_sqd_async_notify = 1;
          EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE | more));
        });
      };
      move_to(IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
      EXPECT_EQ(statuses(box), Statuses());
      box.run(500 * kMicrosecond);
      EXPECT_EQ(statuses(box), (Statuses{{0, IBV_WC_SUCCESS}}));
      EXPECT_EQ(std::ranges::count(box.hosts[0]->events, IBV_EVENT_SQ_DRAINED), 1);
      move_to(IBV_QPS_RTS, 0);
      box.run(500 * kMicrosecond);
      EXPECT_EQ(statuses(box), (Statuses{{0, IBV_WC_SUCCESS}, {1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
      EXPECT_TRUE(std::equal(box.sides[0].memory.begin(), box.sides[0].memory.begin() + 3 * kBytes,
                             box.sides[1].memory.begin()));
      EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
      box.run();
    }
}

// As much as has waited at once, and in order, round and round.
TEST(DirectRequests, PsnsThatWaitTakeNoMoreRoomThanTheyNeed) {
  nic_model::PsnFifo fifo;
  EXPECT_EQ(fifo.room(), 0u);
  std::uint32_t in = 0, out = 0;
  for (const std::uint32_t most : {1u, 16u, 17u, 1000u, 3u}) {
    for (unsigned round = 0; round < 100; round++) {
      while (fifo.size() < most) fifo.push(in++);
      while (fifo.size() > most / 3) ASSERT_EQ(fifo.pop(), out++);
    }
    if (most <= 16) {
      EXPECT_EQ(fifo.room(), most == 3 ? 1024u : 16u);
    }
  }
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace rocebox::test::direct_requests
