// SPDX-License-Identifier: BSD-3-Clause
// Misuse of queue pairs: what calls return, and how work requests end, case by case as verbs and the IB specification
// (volume 1, 10.3.1, 11.6) have it. nic_model/README.md has the table; tests/conformance what packets do.
#include "tests/unit/nic/lonely_kit.h"

namespace rocebox::test::misuse {
namespace {

TEST(Misuse, RequestsThatDoNotFitAreRefusedAndTheOthersGo) {
  Lonely one;
  one.move(IBV_QPS_RTS);
  std::array<ibv_sge, 3> sges;
  sges.fill({one.box.sides[0].address(), 30, one.box.sides[0].key});
  ibv_send_wr request = request_of(IBV_WR_SEND);
  request.sg_list = sges.data();
  request.num_sge = 3;
  EXPECT_EQ(one.send(request), EINVAL) << "of 2 pieces";
  request.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(one.send(request), EINVAL) << "90 bytes of 64";
  request.num_sge = -1;
  EXPECT_EQ(one.send(request), EINVAL) << "a negative number of pieces";
  request.send_flags = 0;
  EXPECT_EQ(one.send(request), EINVAL) << "a negative number of pieces";
  request.num_sge = 1;
  sges[0].length = 1u << 31;
  EXPECT_EQ(one.send(request), EINVAL) << "a piece as long as mlx5's segments cannot say";
  EXPECT_EQ(one.send(request_of(IBV_WR_DRIVER1)), EINVAL);
  EXPECT_EQ(one.receive(3), EINVAL);
  EXPECT_EQ(one.receive(-1), EINVAL);
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(one.send(request_of(IBV_WR_SEND)), 0) << i;
    EXPECT_EQ(one.receive(), 0) << i;
  }
  EXPECT_EQ(one.send(request_of(IBV_WR_SEND)), ENOMEM);
  EXPECT_EQ(one.receive(), ENOMEM);
}

// Of a list all before the bad one are posted.
TEST(Misuse, AListEndsAtItsFirstBadRequest) {
  NicBox box;
  box.connect();
  ibv_sge sge{box.sides[0].address(), 8, box.sides[0].key};
  std::array<ibv_send_wr, 3> list{};
  for (std::size_t i = 0; i < 3; i++) {
    list[i] = request_of(i == 1 ? IBV_WR_DRIVER1 : IBV_WR_RDMA_WRITE);
    list[i].wr_id = i;
    list[i].next = i < 2 ? &list[i + 1] : nullptr;
    list[i].sg_list = &sge;
    list[i].num_sge = 1;
    list[i].wr.rdma = {box.sides[1].address(), box.sides[1].key};
  }
  const ibv_send_wr* bad = nullptr;
  box.on(0, [&](Host& host) { EXPECT_EQ(host.post_send(*box.sides[0].qp, list.data(), &bad), EINVAL); });
  EXPECT_EQ(bad, &list[1]);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].wr_id, 0u);
}

// What is found when the NIC reads the request: the first completion says what, the second one is flushed.
TEST(Misuse, RequestsThatTheServiceHasNotEndTheQueuePair) {
  constexpr std::uint32_t kLong = (1u << 31) - 1;
  struct Row {
    ibv_qp_type type;
    ibv_wr_opcode opcode;
    std::uint32_t bytes;
    unsigned flags;
    ibv_wc_status status;
    ibv_mtu mtu = IBV_MTU_1024;
  } const rows[] = {
      {IBV_QPT_UC, IBV_WR_RDMA_READ, 8, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_UC, IBV_WR_SEND_WITH_INV, 8, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_UD, IBV_WR_RDMA_WRITE, 8, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_UD, IBV_WR_RDMA_READ, 8, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_UD, IBV_WR_SEND, 4097, 0, IBV_WC_LOC_LEN_ERR},
      {IBV_QPT_RC, IBV_WR_RDMA_READ, 8, IBV_SEND_INLINE, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP, 16, 0, IBV_WC_LOC_QP_OP_ERR},
      {IBV_QPT_RC, IBV_WR_RDMA_WRITE, kLong, 0, IBV_WC_LOC_LEN_ERR},  // two pieces of these
      {IBV_QPT_RC, IBV_WR_RDMA_READ, kLong, 0, IBV_WC_LOC_LEN_ERR},
      {IBV_QPT_RC, IBV_WR_RDMA_WRITE, kLong, 0, IBV_WC_LOC_LEN_ERR, IBV_MTU_256},  // as many packets as PSNs
      {IBV_QPT_UC, IBV_WR_SEND, kLong, 0, IBV_WC_LOC_LEN_ERR, IBV_MTU_256},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::to_string(row.type) + ", opcode " + std::to_string(row.opcode));
    NicBox box;
    box.connect({.type = row.type, .mtu = row.mtu});
    for (unsigned i = 0; i < 2; i++)
      box.on(0, [&](Host& host) {
        std::array<ibv_sge, 2> sges;
        sges.fill({box.sides[0].address(), row.bytes, box.sides[0].key});
        ibv_send_wr request = request_of(row.opcode);
        request.wr_id = i;
        request.sg_list = sges.data();
        request.num_sge = row.bytes == kLong ? 2 : 1;
        request.send_flags |= row.flags;
        const auto to = host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), 0x11, 0x1234);
        EXPECT_EQ(0, host.post_send(*box.sides[0].qp, &request, nullptr, row.type == IBV_QPT_UD ? &to : nullptr));
      });
    box.run();
    ASSERT_EQ(box.completions(0).size(), 2u) << box.state();
    EXPECT_EQ(box.completions(0)[0].status, row.status);
    EXPECT_EQ(box.completions(0)[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(box.count(0, "tx_roce_packets"), 0u);
  }
}

// A request of more than half of the PSNs: what is sent again before it must still be found.
TEST(Misuse, ATooLongRequestWaitsForItsTurn) {
  NicBox box("rate: 100Gbps", "delay: 1us\nevents: [{qpn: 17, psn: 300, source: 10.0.0.1, do: drop}]");
  box.connect({.mtu = IBV_MTU_256, .psn = 300});
  ASSERT_EQ(0, box.post(0, 1, IBV_WR_RDMA_READ, 0, 8));
  box.on(0, [&](Host& host) {
    std::array<ibv_sge, 2> sges;
    sges.fill({box.sides[0].address(), (1u << 30) + (1u << 29), box.sides[0].key});
    ibv_send_wr request = request_of(IBV_WR_RDMA_WRITE);
    request.wr_id = 2;
    request.sg_list = sges.data();
    request.num_sge = 2;
    request.send_flags |= IBV_SEND_FENCE;
    EXPECT_EQ(0, host.post_send(*box.sides[0].qp, &request, nullptr));
  });
  box.run();
  ASSERT_EQ(box.completions(0).size(), 2u) << box.state();
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(0)[1].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 1u) << "the READ was lost once";
}

TEST(Misuse, DatagramsNeedAnAddressAndOthersNone) {
  Lonely ud(IBV_QPT_UD);
  ud.move(IBV_QPS_RTS);
  EXPECT_EQ(ud.send(request_of(IBV_WR_SEND)), EINVAL);
  Lonely rc;
  rc.move(IBV_QPS_RTS);
  rc.call([&](Host& host) {
    const auto to = host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), 0x11, 0x1234);
    const ibv_send_wr request = request_of(IBV_WR_SEND);
    EXPECT_EQ(EINVAL, host.post_send(*rc.qp, &request, nullptr, &to));
  });
}

TEST(Misuse, WhatCannotBeMadeIsAnErrno) {
  NicBox box("queue_pairs: 2");
  box.connect();
  box.on(0, [&](Host& host) {
    const auto make = [&](const std::function<void(QpInit&)>& change) {
      QpInit init;
      init.domain = box.sides[0].pd;
      init.send_cq = init.receive_cq = box.sides[0].cq;
      init.capacity = {4, 4, 1, 1, 0};
      change(init);
      errno = 0;
      return host.create_qp(init) ? 0 : errno;
    };
    EXPECT_EQ(make([](QpInit& i) { i.send_cq = nullptr; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.receive_cq = nullptr; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_send_wr = nic_model::kWorkRequestsMax + 1; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_recv_wr = nic_model::kWorkRequestsMax + 1; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_send_sge = nic_model::kSgesMax + 1; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_recv_sge = nic_model::kSgesMax + 1; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_inline_data = nic_model::kInlineBytesMax + 1; }), EINVAL);
    // No bound alone: their product is what a ring's counters cannot tell apart.
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_send_wr = nic_model::kWorkRequestsMax; }), EINVAL)
        << "two blocks each";
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_send_wr = 16384, i.capacity.max_inline_data = 512; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.capacity.max_send_wr = 8192, i.capacity.max_send_sge = 30; }), EINVAL);
    EXPECT_EQ(make([](QpInit& i) { i.type = IBV_QPT_RAW_PACKET; }), EOPNOTSUPP);
    EXPECT_EQ(make([](QpInit&) {}), 0);
    EXPECT_EQ(make([](QpInit&) {}), ENOMEM) << "two there may be";
    EXPECT_EQ(host.create_cq(0, 0), nullptr);
    EXPECT_EQ(host.create_cq(nic_model::kCqEntriesMax + 1, 0), nullptr);
    EXPECT_EQ(host.modify_cq(*box.sides[0].cq, 1 << 16, 0), EINVAL);
    ibv_srq_init_attr shared{};
    EXPECT_EQ(host.create_srq(shared), nullptr) << "of no requests";
    shared.attr = {1, nic_model::kSgesMax + 1, 0};
    EXPECT_EQ(host.create_srq(shared), nullptr);
  });
}

// A completion queue that nobody empties: its host is told, and the queue pairs that needed it fail; others go on.
TEST(Misuse, AnOverrunOfACompletionQueueIsToldAndEndsItsQueuePairs) {
  NicBox box;
  box.connect();
  nic_model::CompletionQueue* small = nullptr;
  nic_model::Qp* qp = nullptr;
  box.on(0, [&](Host& host) {
    small = host.create_cq(4, box.hosts[0]->number);  // never polled
    QpInit init;
    init.domain = box.sides[0].pd;
    init.send_cq = init.receive_cq = small;
    init.capacity = {16, 16, 1, 1, 0};
    qp = host.create_qp(init);
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      const int mask = state == IBV_QPS_INIT  ? IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
                       : state == IBV_QPS_RTR ? int{Lonely::kToRtr}
                                              : int{Lonely::kToRts};
      ASSERT_EQ(0, host.modify_qp(*qp, Lonely::attributes(state), mask));
    }
    ASSERT_EQ(0, host.modify_qp(*qp, Lonely::attributes(IBV_QPS_ERR), IBV_QP_STATE));
  });
  EXPECT_TRUE(box.hosts[0]->events.empty());
  box.on(0, [&](Host& host) {
    // Flushed at once: each takes a CQE.
    for (int i = 0; i < 5; i++) {
      const ibv_send_wr request = request_of(IBV_WR_SEND);
      EXPECT_EQ(0, host.post_send(*qp, &request, nullptr));
    }
  });
  EXPECT_EQ(box.count(0, "cq_overruns"), 1u);
  EXPECT_EQ(box.hosts[0]->events, std::vector<ibv_event_type>{IBV_EVENT_CQ_ERR});
  EXPECT_TRUE(small->overrun());
  // The connected one beside it has another queue.
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 100);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace rocebox::test::misuse
