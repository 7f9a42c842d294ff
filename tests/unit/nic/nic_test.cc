// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

void fill(std::vector<std::uint8_t>& memory, unsigned seed) {
  std::mt19937_64 random(seed);
  for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random());
}

constexpr const char* kRecoveries[] = {"go_back_n", "rnic_sr", "selective", "timeout_only"};

void expect_equal(const NicBox& box, std::ptrdiff_t from, std::ptrdiff_t to, std::ptrdiff_t bytes) {
  EXPECT_TRUE(std::equal(box.sides[0].memory.begin() + from, box.sides[0].memory.begin() + from + bytes,
                         box.sides[1].memory.begin() + to));
}

TEST(Nic, WritesArriveAndComplete) {
  NicBox box;
  box.connect();
  fill(box.sides[0].memory, 1);
  for (unsigned i = 0; i < 8; i++) ASSERT_EQ(0, box.post(0, i, IBV_WR_RDMA_WRITE, i * 100000, 100000, i * 100000));
  box.run();
  ASSERT_EQ(box.completions(0).size(), 8u);
  for (unsigned i = 0; i < 8; i++) {
    EXPECT_EQ(box.completions(0)[i].wr_id, i);
    EXPECT_EQ(box.completions(0)[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(box.completions(0)[i].opcode, IBV_WC_RDMA_WRITE);
  }
  expect_equal(box, 0, 0, 800000);
  EXPECT_EQ(box.count(1, "rx_write_requests"), 8u);
  EXPECT_EQ(box.count(0, "retransmitted_packets"), 0u);
  EXPECT_TRUE(box.completions(1).empty());
}

TEST(Nic, EverythingArrivesOnceUnderLossReorderingAndDuplication) {
  for (unsigned seed = 0; seed < 40; seed++) {
    SCOPED_TRACE(std::string(kRecoveries[seed % 4]) + ", seed " + std::to_string(seed));
    NicBox box(std::string("rate: 100Gbps\nrecovery: ") + kRecoveries[seed % 4],
               "delay: 1us\nloss: 2%\nreorder: 1%\nduplicate: 1%\ncorrupt: 0.5%");
    box.connect({.retry_cnt = 7});
    fill(box.sides[0].memory, seed);
    fill(box.sides[1].memory, seed + 1000);
    const std::vector<std::uint8_t> remote = box.sides[1].memory;
    for (unsigned i = 0; i < 40; i++) box.post_receive(1, 1000 + i, 610000 + i * 2000, 2000);
    std::mt19937 random(seed);
    unsigned receives = 0, adds = 0;
    std::vector<std::array<std::ptrdiff_t, 3>> written, read;
    for (unsigned i = 0; i < 60; i++) {
      const auto kind = static_cast<unsigned>(random() % 4), bytes = static_cast<unsigned>(random() % 10000);
      if (kind == 0)
        written.push_back({i * 10000, i * 10000, bytes}),
            box.post(0, i, IBV_WR_RDMA_WRITE, i * 10000, bytes, i * 10000);
      else if (kind == 1 && receives < 40)
        receives++, box.post(0, i, IBV_WR_SEND_WITH_IMM, i * 10000, bytes % 2000);
      else if (kind == 2)
        read.push_back({700000 + i * 5000, 700000 + i * 5000, bytes % 5000}),
            box.post(0, i, IBV_WR_RDMA_READ, 700000 + i * 5000, bytes % 5000, 700000 + i * 5000);
      else
        adds++, box.post(0, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 1040000 + i * 8, 8, 1048000, IBV_SEND_SIGNALED,
                         [&](ibv_send_wr& wr) {
                           wr.wr.atomic.remote_addr = box.sides[1].address() + 1048000;
                           wr.wr.atomic.compare_add = 1;
                           wr.wr.atomic.rkey = box.sides[1].key;
                         });
    }
    box.run(100 * kSecond);
    ASSERT_EQ(box.completions(0).size(), 60u) << seed << box.state();
    for (unsigned i = 0; i < 60; i++) {
      ASSERT_EQ(box.completions(0)[i].wr_id, i);
      ASSERT_EQ(box.completions(0)[i].status, IBV_WC_SUCCESS) << i << box.state();
    }
    EXPECT_EQ(box.completions(1).size(), receives);
    for (const auto& [from, to, bytes] : written) expect_equal(box, from, to, bytes);
    for (const auto& [from, to, bytes] : read)
      EXPECT_TRUE(std::equal(box.sides[0].memory.begin() + from, box.sides[0].memory.begin() + from + bytes,
                             remote.begin() + to));
    std::uint64_t added = 0;
    std::memcpy(&added, &box.sides[1].memory[1048000], 8);
    std::uint64_t before = 0;
    std::memcpy(&before, &remote[1048000], 8);
    EXPECT_EQ(added - before, adds) << "atomics are executed once";
    for (unsigned i = 0; i < box.completions(1).size(); i++) EXPECT_EQ(box.completions(1)[i].wr_id, 1000 + i);
  }
}

TEST(Nic, UnreliableConnectionsDropWholeMessages) {
  NicBox box("rate: 100Gbps", "delay: 1us\nloss: 3%");
  box.connect({.type = IBV_QPT_UC});
  fill(box.sides[0].memory, 5);
  for (unsigned i = 0; i < 100; i++) {
    box.post_receive(1, i, i * 5000, 5000);
    box.post(0, i, IBV_WR_SEND_WITH_IMM, i * 5000, 5000, 0, IBV_SEND_SIGNALED,
             [&](ibv_send_wr& wr) { wr.imm_data = htobe32(i); });
  }
  box.run();
  EXPECT_EQ(box.completions(0).size(), 100u);
  const auto& got = box.completions(1);
  EXPECT_GT(got.size(), 60u);
  EXPECT_LT(got.size(), 100u);
  for (std::size_t i = 0; i < got.size(); i++) {
    EXPECT_EQ(got[i].wr_id, i) << "a lost message uses up no receive request";
    EXPECT_EQ(got[i].byte_len, 5000u);
    expect_equal(box, be32toh(got[i].imm_data) * 5000, static_cast<std::ptrdiff_t>(i) * 5000, 5000);
  }
}

TEST(Nic, DatagramsBringTheirHeaderAndSource) {
  NicBox box;
  box.connect({.type = IBV_QPT_UD});
  fill(box.sides[0].memory, 6);
  box.post_receive(1, 7, 100, 2040);
  box.on(0, [&](nic_model::Host& host) {
    const auto address =
        host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x1234);
    EXPECT_EQ(0, post_datagram(host, box.sides[0], address, 1500));
    const auto wrong =
        host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x4321);
    EXPECT_EQ(0, post_datagram(host, box.sides[0], wrong, 1500));
  });
  box.run();
  ASSERT_EQ(box.completions(1).size(), 1u) << box.state();
  const ibv_wc& wc = box.completions(1)[0];
  EXPECT_EQ(wc.byte_len, 1540u);
  EXPECT_EQ(wc.src_qp, box.sides[0].qp->number());
  EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
  expect_equal(box, 0, 140, 1500);
  EXPECT_EQ(box.sides[1].memory[120], 0x45);
  EXPECT_EQ(box.count(1, "drop_bad_qkey"), 1u);
}

// One with its top bit set in a work request stands for the queue pair's own: nobody makes up one of the owner's.
TEST(Nic, NoRequestBringsAQKeyOfTheOwner) {
  for (const std::uint32_t qkey : {0x80000000u, 0x80010000u, 0xFFFFFFFFu}) {
    NicBox box;
    box.connect({.type = IBV_QPT_UD});
    box.post_receive(1, 7, 100, 2040);
    box.on(0, [&](nic_model::Host& host) {
      const auto to = host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), qkey);
      EXPECT_EQ(0, post_datagram(host, box.sides[0], to, 64));
    });
    box.run();
    EXPECT_EQ(box.completions(1).size(), 1u) << "sent with its own, 0x1234";
    EXPECT_EQ(box.count(1, "drop_bad_qkey"), 0u);
  }
}

TEST(Nic, ReceiversThatAreNotReadyAreAskedAgain) {
  NicBox box;
  box.connect();
  box.post(0, 1, IBV_WR_SEND, 0, 3000);
  box.run(kMillisecond);
  EXPECT_TRUE(box.completions(0).empty());
  EXPECT_GT(box.count(0, "rnr_nak_retry_err"), 10u);
  box.post_receive(1, 2, 0, 3000);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(1).size(), 1u);
}

struct Misuse {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint64_t offset, remote_offset;
  std::uint32_t bytes;
  std::uint32_t wrong_rkey, wrong_lkey;
  std::uint32_t receive_bytes;
  ibv_wc_status status;
};
constexpr std::uint32_t kAll = 1 << 20;
const Misuse kMisuses[] = {
    {"rkey", IBV_WR_RDMA_WRITE, 0, 0, 5000, 1, 0, 0, IBV_WC_REM_ACCESS_ERR},
    {"beyond the region", IBV_WR_RDMA_WRITE, 0, kAll - 10, 5000, 0, 0, 0, IBV_WC_REM_ACCESS_ERR},
    {"READ beyond the region", IBV_WR_RDMA_READ, 0, kAll - 10, 5000, 0, 0, 0, IBV_WC_REM_ACCESS_ERR},
    {"lkey", IBV_WR_RDMA_WRITE, 0, 0, 5000, 0, 1, 0, IBV_WC_LOC_PROT_ERR},
    {"own memory's end", IBV_WR_SEND, kAll - 10, 0, 5000, 0, 0, 5000, IBV_WC_LOC_PROT_ERR},
    {"receive too short", IBV_WR_SEND, 0, 0, 5000, 0, 0, 4999, IBV_WC_REM_INV_REQ_ERR},
    {"atomic unaligned", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8, 0, 0, 0, IBV_WC_REM_INV_REQ_ERR},
    {"atomic of another length", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 16, 0, 0, 0, IBV_WC_LOC_QP_OP_ERR},
};

TEST(Nic, MisuseEndsAsVerbsSay) {
  for (const Misuse& one : kMisuses) {
    NicBox box;
    box.connect();
    if (one.receive_bytes) box.post_receive(1, 5, 0, one.receive_bytes);
    box.post(0, 1, one.opcode, one.offset, one.bytes, one.remote_offset, IBV_SEND_SIGNALED, [&](ibv_send_wr& wr) {
      if (one.wrong_lkey) wr.sg_list[0].lkey += 0x10000;
      if (one.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = box.sides[1].address() + one.remote_offset;
        wr.wr.atomic.rkey = box.sides[1].key;
      }
      if (one.wrong_rkey) wr.wr.rdma.rkey += 1;
    });
    box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 10);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 2u) << one.name << box.state();
    EXPECT_EQ(box.completions(0)[0].status, one.status) << one.name;
    EXPECT_EQ(box.completions(0)[1].status, IBV_WC_WR_FLUSH_ERR) << one.name;
    EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR) << one.name;
  }
}

TEST(Nic, APeerThatIsGoneExhaustsRetries) {
  NicBox box("rate: 100Gbps", "delay: 1us\nmatch: {kind: roce}\nloss: 100%");
  box.connect({.timeout = 8, .retry_cnt = 3});
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 100);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 4u);
  EXPECT_EQ(box.count(0, "tx_roce_packets"), 4u);
}

// Themis, 2.3, and what stands beside it: packet 10 of 40 is lost, or only late.
TEST(Nic, RecoveriesSendAgainWhatTheySay) {
  struct Case {
    const char *recovery, *event;
    std::uint64_t again, naks, timeouts;
  };
  const Case cases[] = {
      {"go_back_n", "drop", 30, 1, 0},  // 10 to 39, of which the last ones were on their way
      {"rnic_sr", "drop", 2, 1, 0},     // the expected one, and the one last sent
      {"selective", "drop", 1, 29, 0},
      {"timeout_only", "drop", 40, 0, 1},      // none was acknowledged
      {"rnic_sr", "delay, by: 2us", 2, 1, 0},  // which was not lost
      {"timeout_only", "delay, by: 2us", 0, 0, 0},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.recovery) + ", " + one.event);
    NicBox box(
        std::string("rate: 100Gbps\nack_every: 64\nrecovery: ") + one.recovery,
        std::string(
            "delay: 5us\njitter: 1ns\njitter_reorders: true\nforward: {events: [{qpn: 0x11, relative_psn: 10, do: ") +
            one.event + "}]}");
    box.connect({.timeout = 8});
    fill(box.sides[0].memory, 3);
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 40 * 1024);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
    expect_equal(box, 0, 0, 40 * 1024);
    EXPECT_EQ(box.count(0, "retransmitted_packets"), one.again);
    // Ethernet, IPv4, UDP, BTH, payload, ICRC; and where receivers place what comes out of order each has its RETH.
    const std::uint64_t packets = 40 + one.again, reths = one.recovery == std::string("go_back_n") ? 1 : packets;
    EXPECT_EQ(box.count(0, "tx_roce_bytes"), packets * (14 + 20 + 8 + 12 + 1024 + 4) + reths * 16);
    EXPECT_EQ(box.count(1, "naks_sent"), one.naks);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), one.timeouts);
  }
}

// The last packet asks for an ACK and comes before two gaps: the first one's end is acknowledged, and so is the
// second's.
TEST(Nic, AnAckAskedForBehindTwoGapsComes) {
  for (const char* recovery : {"rnic_sr", "timeout_only"}) {
    NicBox box(
        std::string("rate: 100Gbps\nack_every: 64\nrecovery: ") + recovery,
        "delay: 5us\njitter: 1ns\njitter_reorders: true\nforward: {events: ["
        "{qpn: 0x11, relative_psn: 10, do: delay, by: 5us}, {qpn: 0x11, relative_psn: 38, do: delay, by: 9us}]}\n"
        "reverse: {loss: 100%, match: {kind: nak}}");
    box.connect({.timeout = 8});
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 40 * 1024);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u) << recovery;
  }
}

// What has come ahead completes in its turn only.
TEST(Nic, CompletionsKeepTheirOrderUnderDirectPlacement) {
  NicBox box("rate: 100Gbps\nrecovery: rnic_sr",
             "delay: 5us\nforward: {events: [{qpn: 0x11, relative_psn: 1, do: drop}]}");
  box.connect();
  for (unsigned i = 0; i < 8; i++) {
    box.post_receive(1, i, 0, 0);
    box.post(0, i, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1024, 0, IBV_SEND_SIGNALED,
             [&](ibv_send_wr& wr) { wr.imm_data = htobe32(i); });
  }
  box.run();
  ASSERT_EQ(box.completions(1).size(), 8u) << box.state();
  for (unsigned i = 0; i < 8; i++) {
    EXPECT_EQ(be32toh(box.completions(1)[i].imm_data), i);
    EXPECT_EQ(box.completions(1)[i].wr_id, i);
  }
}

// An ACK is asked for before the window is full.
TEST(Nic, SmallWindowsDoNotWaitForTimers) {
  for (const char* window : {"1", "2", "3", "4", "17"}) {
    NicBox box(std::string("rate: 100Gbps\nack_every: 64\nwindow: ") + window);
    box.connect();
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 40 * 1024);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u) << window;
  }
}

TEST(Nic, HeadersAloneBehaveAsWholePackets) {
  std::string seen[2];
  for (unsigned alone = 0; alone < 2; alone++) {
    NicBox box(alone ? "rate: 100Gbps\nheader_only: true" : "rate: 100Gbps", "delay: 1us\nloss: 2%");
    box.connect();
    for (unsigned i = 0; i < 50; i++) box.post(0, i, i % 5 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 20000, 0);
    box.run();
    EXPECT_EQ(box.completions(0).size(), 50u);
    seen[alone] = box.state();
  }
  EXPECT_EQ(seen[0], seen[1]);
}

}  // namespace
}  // namespace rocebox::test
