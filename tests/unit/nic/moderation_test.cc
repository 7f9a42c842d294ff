// SPDX-License-Identifier: BSD-3-Clause
// Moderated completion events, credits of ACKs, and peers that nobody knows the way to.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "nic_model/limits.h"
#include "nic_model/transport/credits.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::moderating {
namespace {

// Completions that each event told of, when one signalled WRITE follows the other every 10 us.
std::vector<unsigned> told(std::uint32_t count, std::uint32_t period_us, unsigned writes) {
  NicBox box;
  box.connect();
  box.on(0, [&](nic_model::Host& host) { EXPECT_EQ(0, host.modify_cq(*box.sides[0].cq, count, period_us)); });
  std::vector<unsigned> at;
  Nanos last = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) {
    if (at.empty() || host.now() != last) at.push_back(0);
    last = host.now();
    at.back()++;
  };
  for (unsigned i = 0; i < writes; i++) {
    box.post(0, i, IBV_WR_RDMA_WRITE, 0, 64);
    box.run(10 * kMicrosecond);
  }
  box.run(kMillisecond);
  return at;
}

TEST(CqModeration, EventsComeByCountOrPeriod) {
  EXPECT_EQ(told(0, 0, 6), std::vector<unsigned>(6, 1)) << "each";
  EXPECT_EQ(told(1, 0, 3), std::vector<unsigned>(3, 1));
  EXPECT_EQ(told(4, 0, 8), (std::vector<unsigned>{4, 4}));
  EXPECT_EQ(told(4, 0, 6), std::vector<unsigned>{4}) << "the last two wait for two more, as verbs have it";
  EXPECT_EQ(told(4, 100, 6), (std::vector<unsigned>{4, 2})) << "unless time tells of them";
  EXPECT_EQ(told(0, 25, 6), (std::vector<unsigned>{3, 3}));
}

TEST(CqModeration, ErrorsDoNotWait) {
  NicBox box;
  box.connect();
  box.on(0, [&](nic_model::Host& host) {
    EXPECT_EQ(0, host.modify_cq(*box.sides[0].cq, 100, 0));
    EXPECT_EQ(EINVAL, host.modify_cq(*box.sides[0].cq, 1 << 16, 0));
  });
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED, [](ibv_send_wr& wr) { wr.wr.rdma.rkey ^= 0x100; });
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_REM_ACCESS_ERR);
}

TEST(CqModeration, ALiveQueuePairFailsWhenItsCompletionsFindNoRoom) {
  NicBox box;
  box.connect({.send_wr = 8192});
  box.on(0, [&](nic_model::Host&) { box.hosts[0]->on_wc = {}; });
  // Nobody polls: the program is told once only, when the queue is armed; it has 4096 entries.
  box.sides[0].cq->moderate(0xFFFF, kSecond);
  for (unsigned i = 0; i < 4200; i++) ASSERT_EQ(0, box.post(0, i, IBV_WR_RDMA_WRITE, 0, 1));
  box.run(900 * kMillisecond);
  EXPECT_EQ(box.count(0, "cq_overruns"), 1u);
  EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR);
  EXPECT_EQ(box.hosts[0]->events, (std::vector<ibv_event_type>{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
}

TEST(Credits, CodesAreTheSpecifications) {
  EXPECT_EQ(nic_model::credit_code(0), 0);
  EXPECT_EQ(nic_model::credit_code(4), 4);
  EXPECT_EQ(nic_model::credit_code(5), 4) << "never more than there are";
  EXPECT_EQ(nic_model::credit_code(6), 5);
  EXPECT_EQ(nic_model::credit_code(1000), 19);
  EXPECT_EQ(nic_model::credit_code(32768), 30);
  EXPECT_EQ(nic_model::credit_code(1u << 20), 30);
}

// Twelve SENDs of two packets to eight receive requests, and more of these later.
TEST(Credits, RequestersSendNoMoreThanThereAreReceiveRequests) {
  std::uint64_t sent[2];
  for (const bool credits : {false, true}) {
    SCOPED_TRACE(credits);
    NicBox box(std::string("rate: 100Gbps\ncredits: ") + (credits ? "true" : "false"), "delay: 10us");
    box.connect();
    for (unsigned i = 0; i < 8; i++) box.post_receive(1, i, 2048 * i, 2048);
    for (unsigned i = 0; i < 12; i++) box.post(0, i, IBV_WR_SEND, 2048 * i, 2048);
    box.run(kMillisecond);
    EXPECT_EQ(box.completions(1).size(), 8u);
    EXPECT_GT(box.count(1, "rnr_naks_sent"), 0u) << "one packet goes and asks";
    for (unsigned i = 8; i < 12; i++) box.post_receive(1, i, 2048 * i, 2048);
    box.run();
    EXPECT_EQ(box.completions(0).size(), 12u);
    EXPECT_EQ(box.completions(1).size(), 12u);
    for (const ibv_wc& wc : box.completions(0)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    sent[credits] = box.count(1, "drop_rnr") + box.count(1, "drop_out_of_sequence");
    EXPECT_EQ(box.count(1, "drop_out_of_sequence") == 0, credits) << "behind what found none nothing comes";
  }
  EXPECT_LT(sent[1], sent[0]);
}

TEST(Credits, WritesNeedNone) {
  NicBox box("rate: 100Gbps\ncredits: true");
  box.connect();
  for (unsigned i = 0; i < 4; i++) box.post(0, i, IBV_WR_RDMA_WRITE, 0, 8192);
  box.run();
  EXPECT_EQ(box.completions(0).size(), 4u);
  EXPECT_EQ(box.count(1, "rnr_naks_sent"), 0u);
}

// 7 receive requests; the first ACK says 6, so messages up to the seventh may go. The second one says 5, for which
// there is no code: with the 4 that there is, the seventh would be without, which has begun by then.
TEST(Credits, AreNotTakenBack) {
  NicBox box("rate: 100Gbps\ncredits: true", "delay: 2us");
  box.connect();
  for (unsigned i = 0; i < 7; i++) box.post_receive(1, i, std::size_t{65536} * (1 + i), 65536);
  box.post(0, 0, IBV_WR_SEND, 0, 64);
  box.run(kMillisecond);
  box.post(0, 1, IBV_WR_SEND, 0, 64);
  box.run(3 * kMicrosecond);  // its ACK comes before the last message asks for one
  for (unsigned i = 2; i < 6; i++)
    box.post(0, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_SEND_SIGNALED, [](ibv_send_wr& wr) {
      wr.wr.atomic.rkey = wr.wr.rdma.rkey;
      wr.wr.atomic.compare_add = 1;
    });
  box.post(0, 6, IBV_WR_SEND, 0, 60000);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 7u) << box.state();
  for (const ibv_wc& wc : box.completions(0)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(1).size(), 3u);
}

TEST(Credits, WhoHasNoneAsksWithAPacket) {
  NicBox box("rate: 100Gbps\ncredits: true");
  box.connect();
  for (unsigned i = 0; i < 3; i++) box.post_receive(1, i, std::size_t{65536} * (1 + i), 65536);
  box.post(0, 0, IBV_WR_RDMA_READ, 0, 64);  // its response says 3
  box.run(kMillisecond);
  EXPECT_EQ(box.count(0, "completions"), 1u);
  for (unsigned i = 1; i < 5; i++) box.post(0, i, IBV_WR_SEND, 0, 30000);
  box.run(kMillisecond);
  EXPECT_EQ(box.completions(0).size(), 4u) << box.state();
  EXPECT_GT(box.count(1, "rnr_naks_sent"), 0u) << "the fourth has asked with a packet";
  box.post_receive(1, 3, 4 * 65536, 65536);
  box.run();
  EXPECT_EQ(box.completions(0).size(), 5u) << box.state();
}

// READ responses say them, too: a SEND behind a READ goes whole.
TEST(Credits, ComeWithReadResponses) {
  NicBox box("rate: 100Gbps\ncredits: true", "delay: 10us");
  box.connect();
  box.post_receive(1, 0, 65536, 65536);
  box.post(0, 0, IBV_WR_RDMA_READ, 0, 64);
  box.run(kMillisecond);
  const Nanos begin = box.now;
  Nanos end = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { end = host.now(); };
  box.post(0, 1, IBV_WR_SEND, 0, 60000);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 2u) << box.state();
  EXPECT_LT(end - begin, 30 * kMicrosecond) << "one round trip, none for a packet that asks";
}

// The requester knows the way and the responder is still asking for it.
TEST(Neighbors, ResponsesWaitForTheWayBack) {
  NicBox box("rate: 100Gbps", "delay: 10us", 1, "", "neighbors: [{address: 10.0.0.2, mac: '02:72:0a:00:00:02'}]");
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64);
  box.post(0, 2, IBV_WR_RDMA_READ, 0, 64);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 2u);
  for (const ibv_wc& wc : box.completions(0)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.count(0, "drop_malformed") + box.count(0, "drop_not_for_us") + box.count(0, "drop_no_protocol"), 0u);
  EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
}

TEST(Neighbors, APeerThatNobodyKnowsTheWayToFailsWhatIsPosted) {
  NicBox box("rate: 100Gbps\narp_timeout: 100ms", "loss: 100%");
  box.connect();
  box.run(kSecond);
  EXPECT_EQ(box.count(0, "unresolved_neighbors"), 1u);
  EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_RTS) << "nothing was posted";
  const std::uint64_t asked = box.count(0, "arp_requests_sent");
  box.post(0, 7, IBV_WR_RDMA_WRITE, 0, 64);
  box.post(0, 8, IBV_WR_RDMA_WRITE, 0, 64);
  EXPECT_TRUE(box.completions(0).empty());
  box.run(400 * kMillisecond);
  EXPECT_TRUE(box.completions(0).empty()) << "five tries";
  box.run(200 * kMillisecond);
  EXPECT_EQ(box.count(0, "arp_requests_sent"), asked + 5);
  ASSERT_EQ(box.completions(0).size(), 2u);
  EXPECT_EQ(box.completions(0)[0].wr_id, 7u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(box.completions(0)[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR);
}

// All that side 0 asks and answers is lost at first. It knows side 1 by that one's question; side 1 has to answer its
// WRITE within eight timeouts of 1 ms, and would ask again only after a second. Of what a gateway hands on nothing is
// learnt.
TEST(Neighbors, APeerIsKnownByWhatItSends) {
  for (const bool has_gateway : {false, true}) {
    NicBox box("rate: 100Gbps", "{delay: 1us, forward: {loss: 100%}}", 1,
               has_gateway ? "prefix_bits: 32\ngateway: 10.0.0.9" : "");
    box.connect({.timeout = 8});
    box.run(kMillisecond);
    ASSERT_TRUE(box.sides[0].qp->path_known);
    ASSERT_FALSE(box.sides[1].qp->path_known);
    Kernel& wire = box.devices[2]->kernel(0);
    nic_test_options("link", "{delay: 1us, forward: {loss: 0%}}")->change(wire)->apply(wire, box.now);
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64);
    box.run(100 * kMillisecond);
    EXPECT_EQ(box.sides[1].qp->path_known, !has_gateway);
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.completions(0)[0].status, has_gateway ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), has_gateway ? 8u : 0u);
    EXPECT_EQ(box.count(1, "arp_requests_sent"), 1u);
  }
}

// Whoever waits for the way, as a collective does, must not wait for ever.
TEST(Neighbors, WithoutRoomForOneMoreNoWayIsLookedFor) {
  std::string strangers;
  for (unsigned i = 0; i < nic_model::kNeighborsMax; i++)
    strangers += fmt::format("{{address: 10.1.{}.{}, mac: 02:00:00:00:00:01}},", i / 250, 1 + i % 250);
  NicBox box("rate: 100Gbps\nneighbors: [" + strangers + "]");
  box.connect();
  box.on(0, [&](nic_model::Host& host) { EXPECT_FALSE(host.is_resolving(*box.sides[0].qp)); });
  box.run(kMillisecond);
  NicBox other;
  other.connect();
  bool resolves = false;
  other.on(0, [&](nic_model::Host& host) { resolves = host.is_resolving(*other.sides[0].qp); });
  EXPECT_TRUE(resolves) << "the answer is on its way";
  other.run(kMillisecond);
  other.on(0, [&](nic_model::Host& host) { EXPECT_FALSE(host.is_resolving(*other.sides[0].qp)); });
}

}  // namespace
}  // namespace rocebox::test::moderating
