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

void expect_equal(const NicBox& box, std::size_t from, std::size_t to, std::size_t bytes) {
  EXPECT_TRUE(std::equal(box.sides[0].memory.begin() + static_cast<std::ptrdiff_t>(from),
                         box.sides[0].memory.begin() + static_cast<std::ptrdiff_t>(from + bytes),
                         box.sides[1].memory.begin() + static_cast<std::ptrdiff_t>(to)));
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
  for (unsigned seed = 0; seed < 20; seed++) {
    NicBox box("rate: 100Gbps", "delay: 1us\nloss: 2%\nreorder: 1%\nduplicate: 1%\ncorrupt: 0.5%");
    box.connect({.retry_cnt = 7});
    fill(box.sides[0].memory, seed);
    fill(box.sides[1].memory, seed + 1000);
    const std::vector<std::uint8_t> remote = box.sides[1].memory;
    for (unsigned i = 0; i < 40; i++) box.post_receive(1, 1000 + i, 600000 + i * 2000, 2000);
    std::mt19937 random(seed);
    unsigned receives = 0;
    for (unsigned i = 0; i < 60; i++) {
      const auto kind = static_cast<unsigned>(random() % 4), bytes = static_cast<unsigned>(random() % 10000);
      if (kind == 0)
        box.post(0, i, IBV_WR_RDMA_WRITE, i * 10000, bytes, i * 10000);
      else if (kind == 1 && receives < 40)
        receives++, box.post(0, i, IBV_WR_SEND_WITH_IMM, i * 10000, bytes % 2000);
      else if (kind == 2)
        box.post(0, i, IBV_WR_RDMA_READ, 700000 + i * 5000, bytes % 5000, 700000 + i * 5000);
      else
        box.post(0, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 1040000 + i * 8, 8, 1048000, IBV_SEND_SIGNALED,
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
    expect_equal(box, be32toh(got[i].imm_data) * std::size_t{5000}, i * 5000, 5000);
  }
}

TEST(Nic, DatagramsBringTheirHeaderAndSource) {
  NicBox box;
  box.connect({.type = IBV_QPT_UD});
  fill(box.sides[0].memory, 6);
  box.post_receive(1, 7, 100, 2040);
  box.on(0, [&](nic_model::Host& host) {
    ibv_sge sge{box.sides[0].address(), 1500, box.sides[0].key};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    const auto address =
        host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x1234);
    EXPECT_EQ(0, host.post_send(*box.sides[0].qp, &wr, nullptr, &address));
    const auto wrong =
        host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x4321);
    EXPECT_EQ(0, host.post_send(*box.sides[0].qp, &wr, nullptr, &wrong));
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
