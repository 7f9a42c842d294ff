// SPDX-License-Identifier: BSD-3-Clause
// What verbs promise beside completions: draining of a send queue, asynchronous events, fences, inline data, solicited
// events.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

using nic_model::Host;

void move_to(NicBox& box, ibv_qp_state state, int more = 0) {
  box.on(0, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = state;
    a.en_sqd_async_notify = more != 0;
    EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE | more));
  });
}

std::size_t drained(const NicBox& box) {
  return static_cast<std::size_t>(std::ranges::count(box.hosts[0]->events, IBV_EVENT_SQ_DRAINED));
}

// IB specification, 10.3.1.5: what has begun is sent and completed to its end, what is posted behind it waits. The rate
// leaves time for each packet to be acknowledged before the next one leaves.
TEST(Draining, EndsTheMessageThatHasBegunAndKeepsTheOthers) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    SCOPED_TRACE(type);
    NicBox box("rate: 100Gbps\nack_every: 1\nlimiter: {qp_rate: 1Gbps}");
    box.connect({.type = type});
    for (std::uint64_t i = 0; i < 3; i++) EXPECT_EQ(0, box.post(0, i, IBV_WR_RDMA_WRITE, 0, 8192));
    box.run(30 * kMicrosecond);
    EXPECT_EQ(box.completions(0).size(), 0u) << "it has begun";
    move_to(box, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
    EXPECT_EQ(drained(box), 0u);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.completions(0)[0].wr_id, 0u);
    EXPECT_EQ(drained(box), 1u);
    EXPECT_EQ(0, box.post(0, 3, IBV_WR_RDMA_WRITE, 0, 8192)) << "posting is allowed";
    box.run();
    EXPECT_EQ(box.completions(0).size(), 1u);
    // What is kept waits for its program, whose timer therefore counts.
    Timer later;
    const Nanos at = box.now + kSecond;
    box.on(0, [&](Host& host) { host.arm_timer(box.hosts[0]->number, later, at); });
    box.on(0, [&](Host& host) { EXPECT_GE(host.progress(box.hosts[0]->number).waits_until, at); });
    box.on(0, [&](Host& host) { host.cancel_timer(later); });
    move_to(box, IBV_QPS_RTS);
    box.run();
    EXPECT_EQ(box.completions(0).size(), 4u);
    EXPECT_EQ(drained(box), 1u);
  }
}

TEST(Draining, DatagramsWaitToo) {
  NicBox box;
  box.connect({.type = IBV_QPT_UD});
  move_to(box, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
  EXPECT_EQ(drained(box), 1u);
  box.on(0, [&](Host& host) {
    const nic_model::AddressHandle to =
        host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x1234);
    EXPECT_EQ(0, post_datagram(host, box.sides[0], to, 64));
  });
  box.run();
  EXPECT_EQ(box.completions(0).size(), 0u);
  move_to(box, IBV_QPS_RTS);
  box.run();
  EXPECT_EQ(box.completions(0).size(), 1u);
}

// A queue with nothing on its way is drained at once, each time; who does not ask is not told.
TEST(Draining, AnIdleQueueIsDrainedAtOnce) {
  NicBox box;
  box.connect();
  for (std::size_t times = 1; times <= 3; times++) {
    move_to(box, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
    EXPECT_EQ(drained(box), times);
    move_to(box, IBV_QPS_RTS);
    EXPECT_EQ(0, box.post(0, times, IBV_WR_RDMA_WRITE, 0, 64));
    box.run();
    EXPECT_EQ(box.completions(0).size(), times);
    move_to(box, IBV_QPS_SQD);
    move_to(box, IBV_QPS_RTS);
    EXPECT_EQ(drained(box), times);
  }
}

TEST(AsyncEvents, TellTheResponderWhatItRefused) {
  for (const bool bad_key : {true, false}) {
    NicBox box;
    PairOptions options;
    options.access = IBV_ACCESS_LOCAL_WRITE;
    if (bad_key) options.access |= IBV_ACCESS_REMOTE_WRITE;
    box.connect(options);
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED,
             [&](ibv_send_wr& wr) { wr.wr.rdma.rkey += bad_key; });
    box.run();
    EXPECT_EQ(box.hosts[1]->events,
              std::vector<ibv_event_type>{bad_key ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR});
    EXPECT_TRUE(box.hosts[0]->events.empty()) << "its completion tells the requester";
  }
}

// The first packet in RTR, once, of each connection; none in RTS.
TEST(AsyncEvents, TellThatThePeerSends) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC})
    for (const bool in_rtr : {true, false}) {
      SCOPED_TRACE(type);
      NicBox box;
      const PairOptions options{.type = type, .far_stays_in_rtr = in_rtr};
      box.connect(options);
      for (unsigned times = 1; times <= 2; times++) {
        box.completions(0).clear();
        for (std::uint64_t i = 0; i < 3; i++) EXPECT_EQ(0, box.post(0, i, IBV_WR_RDMA_WRITE, 0, 4096));
        box.run();
        EXPECT_EQ(box.completions(0).size(), 3u) << "it answers in RTR";
        EXPECT_EQ(box.hosts[1]->events, std::vector<ibv_event_type>(in_rtr ? times : 0, IBV_EVENT_COMM_EST));
        for (unsigned side = 0; side < 2; side++)
          box.on(side, [&](Host& host) {
            ibv_qp_attr a{};
            EXPECT_EQ(0, host.modify_qp(*box.sides[side].qp, a, IBV_QP_STATE)) << "to RESET";
          });
        for (unsigned side = 0; side < 2; side++)
          box.make_ready(side, *box.sides[side].qp, box.sides[1 - side].qp->number(), options);
      }
      EXPECT_TRUE(box.hosts[0]->events.empty());
    }
}

// In the instant in which it changes, where nothing else happens, each change in its order.
TEST(AsyncEvents, TellOfThePort) {
  NicBox box;
  box.connect();
  box.run();
  ASSERT_EQ(box.fabric.next_deadline(), kNever);
  const auto set = [&box](bool up) {
    const auto options = nic_test_options("nic", fmt::format("{{address: 10.0.0.1, rate: 100Gbps, up: {}}}", up));
    options->change(*box.nics[0])->apply(*box.nics[0], box.now);
  };
  set(true);
  box.fabric.run(box.now);
  EXPECT_TRUE(box.hosts[0]->events.empty()) << "nothing has changed";
  set(false);
  box.fabric.run(box.now);
  EXPECT_EQ(box.hosts[0]->events, std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR});
  box.hosts[0]->events.clear();
  set(true);
  set(false);
  box.fabric.run(box.now);
  EXPECT_EQ(box.hosts[0]->events, (std::vector<ibv_event_type>{IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR}));
}

// A shared receive queue below its limit says so once; a queue pair of it that fails will take no more of it.
TEST(AsyncEvents, TellOfSharedReceiveQueues) {
  NicBox box;
  box.connect({.shared_receives = 8});
  box.on(1, [&](Host& host) {
    nic_model::ReceiveQueue& shared = *box.sides[1].shared;
    shared.set_limit(2);
    for (std::uint64_t i = 0; i < 4; i++) {
      ibv_sge sge{box.sides[1].address() + 64 * i, 64, box.sides[1].key};
      ibv_recv_wr wr{i, nullptr, &sge, 1};
      EXPECT_EQ(0, host.post_receive(shared, &wr, nullptr));
    }
  });
  for (std::uint64_t i = 0; i < 2; i++) box.post(0, i, IBV_WR_SEND, 0, 64);
  box.run();
  EXPECT_TRUE(box.hosts[1]->events.empty());
  box.post(0, 2, IBV_WR_SEND, 0, 64);
  box.post(0, 3, IBV_WR_SEND, 0, 64);
  box.run();
  EXPECT_EQ(box.hosts[1]->events, std::vector<ibv_event_type>{IBV_EVENT_SRQ_LIMIT_REACHED});
  box.hosts[1]->events.clear();
  box.on(1, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(0, host.modify_qp(*box.sides[1].qp, a, IBV_QP_STATE));
  });
  EXPECT_EQ(box.hosts[1]->events, std::vector<ibv_event_type>{IBV_EVENT_QP_LAST_WQE_REACHED});
}

// A fenced request leaves when the READs before it have come.
TEST(SendFlags, AFenceWaitsForReads) {
  for (const bool fenced : {false, true}) {
    NicBox box("rate: 100Gbps", "delay: 100us");
    box.connect({.timeout = 14});
    std::vector<Nanos> done;
    box.hosts[0]->on_wc = [&](Host& host, const ibv_wc&) { done.push_back(host.now()); };
    box.post(0, 1, IBV_WR_RDMA_READ, 0, 64);
    box.post(0, 2, IBV_WR_RDMA_WRITE, 64, 64, 64, IBV_SEND_SIGNALED | (fenced ? IBV_SEND_FENCE : 0));
    box.run();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[1] - done[0] >= 200 * kMicrosecond, fenced);
  }
}

// Inline data are taken when they are posted; others when they are sent.
TEST(SendFlags, InlineDataAreTakenAtOnce) {
  NicBox box("rate: 100Gbps\nlimiter: {qp_rate: 1Gbps}");
  box.connect();
  box.sides[0].memory[0] = box.sides[0].memory[8192] = 1;
  box.post(0, 1, IBV_WR_RDMA_WRITE, 16384, 8192, 16384);  // the others wait behind it
  box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 8, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  box.post(0, 3, IBV_WR_RDMA_WRITE, 8192, 8, 8192);
  box.sides[0].memory[0] = box.sides[0].memory[8192] = 2;
  box.run();
  EXPECT_EQ(box.completions(0).size(), 3u);
  EXPECT_EQ(box.sides[1].memory[0], 1);
  EXPECT_EQ(box.sides[1].memory[8192], 2);
}

TEST(SendFlags, SolicitedEventsAreForWhoAsksForThem) {
  NicBox box;
  box.connect({.solicited_only = true});
  for (std::uint64_t i = 0; i < 3; i++) box.post_receive(1, i, 64 * i, 64);
  box.post(0, 1, IBV_WR_SEND, 0, 64);
  box.run();
  EXPECT_EQ(box.completions(1).size(), 0u) << "it is there, and nobody is told";
  box.post(0, 2, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  box.run();
  EXPECT_EQ(box.completions(1).size(), 2u);
}

}  // namespace
}  // namespace rocebox::test
