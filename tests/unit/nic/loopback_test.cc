// SPDX-License-Identifier: BSD-3-Clause
// A queue pair that is connected to itself: its packets go through the host's memory, not by the wire.
#include <gtest/gtest.h>

#include "nic_model/host/connect.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

class LoopbackBox : public NicBox {
 public:
  explicit LoopbackBox(const std::string& loopback) : NicBox("rate: 100Gbps\nloopback: " + loopback) {
    connect();
    for (std::size_t i = 0; i < sides[0].memory.size(); i++)
      sides[0].memory[i] = static_cast<std::uint8_t>(i * 13 + i / 4096);
    on(0, [&](nic_model::Host& host) {
      nic_model::QpInit init = sides[0].qp->init;
      own = host.create_qp(init);
      nic_model::ConnectOptions with;
      with.psn = 0xFFFFF0;
      EXPECT_EQ(0, nic_model::connect(host, *own, {roce::ipv4(10, 0, 0, 1), own->number(), with.psn}, with));
    });
  }
  void write(std::uint64_t id, std::uint32_t bytes, ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    on(0, [&](nic_model::Host& host) {
      ibv_sge sge{sides[0].address(), bytes, sides[0].key};
      ibv_send_wr request{};
      request.wr_id = id;
      request.opcode = opcode;
      request.sg_list = &sge;
      request.num_sge = 1;
      request.send_flags = IBV_SEND_SIGNALED;
      request.wr.rdma.remote_addr = sides[0].address() + 500000;
      request.wr.rdma.rkey = sides[0].key;
      EXPECT_EQ(0, host.post_send(*own, &request, nullptr));
    });
  }
  nic_model::Qp* own = nullptr;
};

TEST(Loopback, CopiesBytesAndSendsNothing) {
  LoopbackBox box("{latency: 2us}");
  const std::uint64_t before = box.count(0, "tx_roce_packets");
  for (std::uint64_t i = 0; i < 50; i++) box.write(i, 100000);  // 98 packets each: more than the ring has room for
  box.run(50 * kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 50u);
  for (std::uint64_t i = 0; i < 50; i++) {
    EXPECT_EQ(box.completions(0)[i].wr_id, i);
    EXPECT_EQ(box.completions(0)[i].status, IBV_WC_SUCCESS);
  }
  const auto& memory = box.sides[0].memory;
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 100000, memory.begin() + 500000));
  EXPECT_EQ(box.count(0, "tx_roce_packets"), before) << "nothing went by the wire";
}

TEST(Loopback, TakesLatencyAndRate) {
  // There and back 2 us each, and 40 packets of 1024 + 58 bytes (16 more of the first) at 10 Gbit/s.
  LoopbackBox box("{latency: 2us, rate: 10Gbps}");
  Nanos done = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { done = host.now(); };
  box.write(1, 40 * 1024);
  const Nanos begin = box.now;
  box.run(10 * kMillisecond);
  const double sent = (40 * (1024 + 58) + 16) * 0.8;
  EXPECT_GE(static_cast<double>(done - begin), sent + 4000);
  EXPECT_LE(static_cast<double>(done - begin), sent + 4500) << "and an ACK's bytes";
}

TEST(Loopback, ErrorsEndInCompletions) {
  LoopbackBox box("{latency: 0ns}");
  box.on(0, [&](nic_model::Host& host) { EXPECT_TRUE(host.memory().remove(box.sides[0].key)); });
  box.write(1, 64);
  box.run(kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(box.own->attributes.state, IBV_QPS_ERR);
  box.on(0, [&](nic_model::Host& host) { host.destroy_qp(*box.own); });
  box.run(kMillisecond);
}

// One that waits for the port may get its own address as its peer's, and be destroyed, before its turn comes.
TEST(Loopback, WhatWaitsForTheWireMayTurnToItself) {
  NicBox box("rate: 1Mbps");
  box.connect();
  nic_model::Qp* turned = nullptr;
  box.on(0, [&](nic_model::Host& host) { turned = host.create_qp(box.sides[0].qp->init); });
  box.make_ready(0, *turned, box.sides[1].qp->number());
  ASSERT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1000));  // for 8 ms
  box.on(0, [&](nic_model::Host& host) {
    ibv_sge sge{box.sides[0].address(), 64, box.sides[0].key};
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.sg_list = &sge;
    request.num_sge = 1;
    ASSERT_EQ(0, host.post_send(*turned, &request, nullptr));
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_SQD;
    ASSERT_EQ(0, host.modify_qp(*turned, a, IBV_QP_STATE));
    a.ah_attr.is_global = 1;
    const roce::IpAddress own = roce::ipv4(10, 0, 0, 1);
    std::copy(own.begin(), own.end(), a.ah_attr.grh.dgid.raw);
    ASSERT_EQ(0, host.modify_qp(*turned, a, IBV_QP_STATE | IBV_QP_AV));
    EXPECT_TRUE(turned->loops_back);
    host.destroy_qp(*turned);
  });
  box.run(kSecond);
  ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace rocebox::test
