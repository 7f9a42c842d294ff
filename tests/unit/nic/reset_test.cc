// SPDX-License-Identifier: BSD-3-Clause
// What is left of a queue pair that is reset or destroyed: no completion that its host has not seen, and no room taken.
#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

constexpr unsigned kDepth = 8;

// Completions come without an event, so that nobody polls.
PairOptions unseen() {
  PairOptions options;
  options.send_wr = options.receive_wr = kDepth;
  options.solicited_only = true;
  return options;
}

std::vector<std::uint64_t> polled(NicBox& box, unsigned side) {
  std::vector<std::uint64_t> identifiers;
  box.on(side, [&](nic_model::Host& host) {
    ibv_wc wc[2 * kDepth];
    const int count = host.poll(*box.sides[side].cq, wc);
    for (int i = 0; i < count; i++) {
      EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS) << wc[i].wr_id;
      identifiers.push_back(wc[i].wr_id);
    }
  });
  return identifiers;
}

// As many requests as there is room for, and their completions alone.
void expect_full_depth(NicBox& box, std::uint64_t from) {
  std::vector<std::uint64_t> sent, received;
  for (unsigned i = 0; i < kDepth; i++) {
    ASSERT_EQ(box.post_receive(1, from + 100 + i, 4096, 64), 0) << i;
    received.push_back(from + 100 + i);
  }
  for (unsigned i = 0; i < kDepth; i++) {
    ASSERT_EQ(box.post(0, from + i, IBV_WR_SEND, 0, 64), 0) << i;
    sent.push_back(from + i);
  }
  box.run(kMillisecond);
  EXPECT_EQ(polled(box, 0), sent);
  EXPECT_EQ(polled(box, 1), received);
}

void leave_some_unseen(NicBox& box) {
  for (unsigned i = 0; i < 3; i++) box.post_receive(1, i, 4096, 64);
  for (unsigned i = 0; i < 3; i++) box.post(0, i, IBV_WR_SEND, 0, 64);
  box.run(kMillisecond);
  for (const unsigned side : {0u, 1u}) ASSERT_EQ(box.sides[side].cq->unconsumed(), 3u);
}

TEST(Reset, ItsCompletionsAreNoMore) {
  NicBox box;
  box.connect(unseen());
  leave_some_unseen(box);
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  for (const unsigned side : {0u, 1u})
    box.on(side,
           [&](nic_model::Host& host) { ASSERT_EQ(0, host.modify_qp(*box.sides[side].qp, reset, IBV_QP_STATE)); });
  for (const unsigned side : {0u, 1u})
    box.make_ready(side, *box.sides[side].qp, box.sides[1 - side].qp->number(), unseen());
  expect_full_depth(box, 1000);
}

// The next one has its number.
TEST(Reset, ThoseOfADestroyedOneAreNoMore) {
  NicBox box;
  box.connect(unseen());
  const std::uint32_t number = box.sides[0].qp->number();
  leave_some_unseen(box);
  box.disconnect();
  box.connect(unseen());
  ASSERT_EQ(box.sides[0].qp->number(), number);
  expect_full_depth(box, 1000);
}

// Others of the same queue stay, in their order, and a shared receive queue has all of its room again.
TEST(Reset, WhatIsSharedGoesOnForOthers) {
  NicBox box;
  PairOptions options = unseen();
  options.shared_receives = kDepth;
  box.connect(options);
  nic_model::Qp* second[2];
  for (const unsigned side : {0u, 1u})
    box.on(side, [&](nic_model::Host& host) { second[side] = host.create_qp(box.sides[side].qp->init); });
  for (const unsigned side : {0u, 1u}) box.make_ready(side, *second[side], second[1 - side]->number(), options);
  const auto receive = [&](std::uint64_t id) {
    int error = -1;
    box.on(1, [&](nic_model::Host& host) {
      ibv_sge sge{box.sides[1].address(), 64, box.sides[1].key};
      ibv_recv_wr wr{};
      wr.wr_id = id, wr.sg_list = &sge, wr.num_sge = 1;
      const ibv_recv_wr* bad = nullptr;
      error = host.post_receive(*box.sides[1].shared, &wr, &bad);
    });
    return error;
  };
  const auto send = [&](std::uint64_t id, nic_model::Qp& by) {
    nic_model::Qp* const first = std::exchange(box.sides[0].qp, &by);
    EXPECT_EQ(box.post(0, id, IBV_WR_SEND, 0, 64), 0);
    box.sides[0].qp = first;
    box.run(kMillisecond);
  };
  for (unsigned i = 0; i < 6; i++) ASSERT_EQ(receive(200 + i), 0);
  for (unsigned i = 0; i < 6; i++) send(i, i % 2 ? *second[0] : *box.sides[0].qp);
  for (const unsigned side : {0u, 1u})
    box.on(side, [&](nic_model::Host& host) { host.destroy_qp(*std::exchange(box.sides[side].qp, nullptr)); });
  // Those of the second: its own three, and what came for it.
  EXPECT_EQ(polled(box, 0), (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(polled(box, 1), (std::vector<std::uint64_t>{201, 203, 205}));
  for (unsigned i = 0; i < kDepth; i++) ASSERT_EQ(receive(300 + i), 0) << i;
  for (unsigned i = 0; i < kDepth; i++) send(100 + i, *second[0]);
  EXPECT_EQ(polled(box, 1), (std::vector<std::uint64_t>{300, 301, 302, 303, 304, 305, 306, 307}));
}

// Completion queues and shared receive queues go once no queue pair uses them, and their places are used again.
TEST(Reset, QueuesGoBehindTheirQueuePairs) {
  NicBox box;
  PairOptions options;
  options.shared_receives = 8;
  box.connect(options);
  Side& side = box.sides[1];
  const auto on = [&](std::function<void(nic_model::Host&)> what) {
    box.on(1, std::move(what));
    box.run(kMillisecond);
  };
  on([&](nic_model::Host& host) {
    EXPECT_EQ(host.destroy_cq(*side.cq), EBUSY);
    EXPECT_EQ(host.destroy_srq(*side.shared), EBUSY);
    host.destroy_qp(*std::exchange(side.qp, nullptr));
    const std::uint32_t cq = side.cq->number(), srq = side.shared->number();
    EXPECT_EQ(host.destroy_cq(*side.cq), 0);
    EXPECT_EQ(host.destroy_srq(*side.shared), 0);
    side.cq = host.create_cq(16, box.hosts[1]->number);
    ibv_srq_init_attr attributes{};
    attributes.attr = {4, 1, 0};
    side.shared = host.create_srq(attributes);
    EXPECT_EQ(side.cq->number(), cq);
    EXPECT_EQ(side.shared->number(), srq);
  });
}

// A receive request that is flushed at once.
void post_and_flush(nic_model::Host& host, nic_model::Qp& qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(host.modify_qp(qp, attributes, IBV_QP_STATE), 0);
  const ibv_recv_wr request{};
  EXPECT_EQ(host.post_receive(qp, &request, nullptr), 0);
}

// A program that is told of one queue destroys another one that has an event, too: nobody is told of that.
TEST(Reset, ADestroyedCompletionQueueTellsOfNothing) {
  NicBox box;
  box.connect();
  Side& side = box.sides[0];
  nic_model::CompletionQueue* second = nullptr;
  nic_model::Qp* other = nullptr;
  box.on(0, [&](nic_model::Host& host) {
    second = host.create_cq(16, box.hosts[0]->number);
    nic_model::QpInit init;
    init.domain = side.pd;
    init.send_cq = init.receive_cq = second;
    init.capacity = {4, 4, 1, 1, 0};
    other = host.create_qp(init);
    host.arm(*second);
  });
  ASSERT_NE(other, nullptr);
  box.make_ready(0, *other, box.sides[1].qp->number());
  unsigned told = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc& completion) {
    told++;
    EXPECT_EQ(completion.qp_num, side.qp->number());
    if (!second) return;
    host.destroy_qp(*other);
    EXPECT_EQ(host.destroy_cq(*std::exchange(second, nullptr)), 0);
  };
  // Both queues have an event in one call.
  box.on(0, [&](nic_model::Host& host) {
    for (nic_model::Qp* qp : {side.qp, other}) post_and_flush(host, *qp);
  });
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(second, nullptr);
}

// Nor does one whose event waits for more completions, or has not been told of in the call in which it came.
TEST(Reset, ACompletionQueueIsDestroyedWithWhatItWouldHaveTold) {
  for (const bool moderated : {true, false}) {
    NicBox box;
    box.connect();
    Side& side = box.sides[0];
    unsigned told = 0;
    box.hosts[0]->on_wc = [&](nic_model::Host&, const ibv_wc&) { told++; };
    const auto destroy = [&](nic_model::Host& host) {
      host.destroy_qp(*std::exchange(side.qp, nullptr));
      EXPECT_EQ(host.destroy_cq(*std::exchange(side.cq, nullptr)), 0);
    };
    if (moderated) {
      // A message's completion waits for a second one, or a millisecond.
      box.on(0, [&](nic_model::Host& host) { EXPECT_EQ(host.modify_cq(*side.cq, 2, 1000), 0); });
      EXPECT_EQ(box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64), 0);
      box.run(100 * kMicrosecond);
      EXPECT_EQ(side.cq->unconsumed(), 1u);
      box.on(0, destroy);
    } else {
      box.on(0, [&](nic_model::Host& host) {
        post_and_flush(host, *side.qp);
        destroy(host);
      });
    }
    box.run(10 * kMillisecond);
    EXPECT_EQ(told, 0u);
  }
}

// What was in the midst of a SEND had taken a shared receive request, which no completion tells of.
TEST(Reset, ASendInItsMidstKeepsNoRoomOfWhatIsShared) {
  for (const bool destroys : {false, true}) {
    NicBox box("rate: 100Mbps");
    PairOptions options = unseen();
    options.shared_receives = 1;
    box.connect(options);
    const auto receive = [&] {
      int error = -1;
      box.on(1, [&](nic_model::Host& host) {
        ibv_sge sge{box.sides[1].address(), 8192, box.sides[1].key};
        ibv_recv_wr wr{7, nullptr, &sge, 1};
        error = host.post_receive(*box.sides[1].shared, &wr, nullptr);
      });
      return error;
    };
    ASSERT_EQ(receive(), 0);
    EXPECT_EQ(receive(), ENOMEM);
    ASSERT_EQ(box.post(0, 1, IBV_WR_SEND, 0, 8192), 0);
    box.run(300 * kMicrosecond);  // of 8 packets, each 86 us
    EXPECT_EQ(receive(), ENOMEM);
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    box.on(1, [&](nic_model::Host& host) {
      nic_model::Qp& qp = *box.sides[1].qp;
      ASSERT_GT(qp.responder.expected_psn(), options.psn);
      if (destroys)
        host.destroy_qp(qp);
      else
        ASSERT_EQ(0, host.modify_qp(qp, reset, IBV_QP_STATE));
    });
    EXPECT_EQ(receive(), 0);
  }
}

}  // namespace
}  // namespace rocebox::test
