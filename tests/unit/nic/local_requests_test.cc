// SPDX-License-Identifier: BSD-3-Clause
// Work requests that send nothing: as a program writes them into its queue, and among packets that are sent again.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "tests/unit/nic/bind_kit.h"

namespace rocebox::test::binding {
namespace {

// A WQE that a program has written by itself, byte by byte as mlx5's hardware takes it.
struct WrittenByHand {
  static constexpr std::uint32_t kQpn = 0x41, kKey = 0x4512, kRegion = 0x2101;
  WrittenByHand() {
    put_number(&ring[0], 0x25, 4);               // UMR
    put_number(&ring[4], kQpn << 8 | 12, 4);     // twelve segments
    put_number(&ring[12], kKey, 4);              // the window
    ring[16] = 0x80 | 0x08;                      // what it is bound to is in the WQE; the QPN is checked
    put_number(&ring[20], 4, 2);                 // one block of it
    put_number(&ring[24], 0x20386041, 8);        // what is set: length, start, key, QPN, remote rights, free
    ring[66] = 0x20 | 0x40;                      // remote WRITE, atomics
    put_number(&ring[68], kQpn << 8 | 0x13, 4);  // ... of the key the low bits
    put_number(&ring[80], 0x7F0000001000, 8);    // its first address
    put_number(&ring[88], 0x140000000, 8);       // bytes
    put_number(&ring[128], INT32_MAX, 4);
    put_number(&ring[132], kRegion, 4);
    put_number(&ring[136], 0x7F0000001000, 8);
  }
  // What the NIC reads there; false: nothing that it knows.
  bool read(nic_model::BindRequest& bind) const {
    nic_model::SendQueue queue(kQpn, {.send_ring = ring.data(), .send_blocks = 4, .doorbell = doorbell}, false);
    queue.ring_doorbell(3);
    nic_model::SendWork work;
    if (!queue.has_posted()) return false;
    queue.fetch(work);
    return work.error == IBV_WC_SUCCESS && !queue.has_posted() && queue.read_bind(work, bind);
  }
  alignas(64) std::array<std::uint8_t, 256> ring{};
  __be32 doorbell[2] = {};
};

TEST(LocalRequests, AWqeWrittenByHandIsRead) {
  WrittenByHand wqe;
  nic_model::BindRequest bind;
  ASSERT_TRUE(wqe.read(bind));
  EXPECT_EQ(bind.window, WrittenByHand::kKey);
  EXPECT_EQ(bind.variant, 0x13);
  EXPECT_EQ(bind.region, WrittenByHand::kRegion);
  EXPECT_EQ(bind.address, 0x7F0000001000u);
  EXPECT_EQ(bind.bytes, 0x140000000u) << "more than a KLM can say";
  EXPECT_EQ(bind.access, unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC});
  put_number(&wqe.ring[80], 0, 8);
  ASSERT_TRUE(wqe.read(bind));
  EXPECT_EQ(bind.access, unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED});
  WrittenByHand end;
  put_number(&end.ring[24], 0x20002000, 8);  // key and free alone
  end.ring[64] = 0x40;
  ASSERT_TRUE(end.read(bind));
  EXPECT_EQ(bind.bytes, 0u) << "it ends the binding";
}

TEST(LocalRequests, AWqeOfAnotherFormIsRefused) {
  struct Row {
    const char* what;
    std::size_t at;
    std::uint64_t value;
    unsigned bytes;
  } const rows[] = {{"starts where the region does not", 80, 0x7F0000002000, 8},
                    {"has no bytes", 88, 0, 8},
                    {"another's queue pair", 68, (WrittenByHand::kQpn + 1) << 8, 4},
                    {"two blocks of KLMs", 20, 8, 2},
                    {"KLMs elsewhere", 16, 0x08, 1},
                    {"sets the rights of local access, too", 24, 0x203C6041, 8},
                    {"is shorter", 4, WrittenByHand::kQpn << 8 | 8, 4},
                    {"posted for another queue pair", 4, (WrittenByHand::kQpn + 1) << 8 | 12, 4}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    WrittenByHand wqe;
    put_number(&wqe.ring[row.at], row.value, row.bytes);
    nic_model::BindRequest bind;
    EXPECT_FALSE(wqe.read(bind));
  }
}

// A window that is bound once has a new key: to bind it again by the old one is an error.
TEST(LocalRequests, AreDoneOnceWhereAPacketBeforeThemIsSentAgain) {
  for (const char* recovery : {"go_back_n", "rnic_sr", "selective", "timeout_only"}) {
    SCOPED_TRACE(recovery);
    Bound box({.timeout = 8}, std::string("rate: 100Gbps\nrecovery: ") + recovery,
              "delay: 1us\nreverse: {events: [{kind: [data], occurrence: 1, do: drop}]}");
    ASSERT_EQ(0, box.post(1, 1, IBV_WR_RDMA_WRITE, 0, 64));  // is lost
    ASSERT_EQ(0, box.bind(2, 0, 4096));
    ASSERT_EQ(0, box.invalidate(3));
    ASSERT_EQ(0, box.bind(4, 8192, 4096));
    ASSERT_EQ(0, box.post(1, 5, IBV_WR_RDMA_WRITE, 0, 64));
    EXPECT_EQ(
        box.statuses(),
        (Bound::Statuses{
            {1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}, {5, IBV_WC_SUCCESS}}));
    EXPECT_GT(box.count(1, "retransmitted_packets"), 0u);
    EXPECT_EQ(box.write(8192, 64), IBV_WC_SUCCESS);
    EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR);
  }
}

TEST(LocalRequests, AreDoneOnceWhereThePeerWasNotReady) {
  Bound box;
  ASSERT_EQ(0, box.post(1, 1, IBV_WR_SEND, 0, 64));  // nothing is posted for it
  ASSERT_EQ(0, box.bind(2, 0, 4096));
  ASSERT_EQ(0, box.invalidate(3));
  box.run(100 * kMicrosecond);
  ASSERT_EQ(0, box.post_receive(0, 9, 0, 64));
  EXPECT_EQ(box.statuses(), (Bound::Statuses{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
  EXPECT_GT(box.count(1, "rnr_nak_retry_err"), 0u);
  EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR);
}

// The response comes when the READ is about to be asked for again, but may not leave yet: what was fenced behind it has
// its turn all the same.
TEST(LocalRequests, BehindALateResponseAreDone) {
  Bound box({}, "rate: 100Gbps\nretransmission_timeout: 100us\nlimiter: {qp_rate: 1Mbps}",
            "delay: 1us\nforward: {events: [{kind: [read_response], occurrence: 1, do: delay, by: 300us}]}");
  ASSERT_EQ(0, box.bind(1, 0, 4096));
  ASSERT_EQ(box.write(0, 64), IBV_WC_SUCCESS);
  box.completions(1).clear();
  ASSERT_EQ(0, box.post(1, 2, IBV_WR_RDMA_READ, 0, 64));
  ASSERT_EQ(0, box.invalidate(3, IBV_SEND_FENCE));
  EXPECT_EQ(box.statuses(), (Bound::Statuses{{2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
  EXPECT_EQ(box.count(1, "local_ack_timeout_err"), 1u);
  EXPECT_EQ(box.count(1, "retransmitted_packets"), 0u);
  EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR) << "the window is closed";
}

}  // namespace
}  // namespace rocebox::test::binding
