// SPDX-License-Identifier: BSD-3-Clause
// RDMA CM between two NICs: what programs see, under every loss.
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test {
namespace {

using Type = ConnectionEventType;

// What was written by RDMA arrives, so that both sides' PSNs and queue pair numbers fit.
void expect_carries(CmBox& box) {
  for (unsigned side = 0; side < 2; side++) {
    for (unsigned i = 0; i < 5000; i++) box.sides[side].memory[i] = static_cast<std::uint8_t>(i * 7 + side);
    const std::size_t before = box.completions(side).size();
    ASSERT_EQ(0, box.post(side, 77, IBV_WR_RDMA_WRITE, 0, 5000, 20000));
    box.run(100 * kSecond);
    ASSERT_EQ(box.completions(side).size(), before + 1) << box.state();
    EXPECT_EQ(box.completions(side).back().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(box.sides[side].memory.begin(), box.sides[side].memory.begin() + 5000,
                           box.sides[1 - side].memory.begin() + 20000));
  }
}

TEST(Cm, MovesBothQueuePairsToRtsWithWhatBothSaid) {
  CmBox box;
  ConnectionOptions active, passive;
  active.responder_resources = 3, active.initiator_depth = 9;
  active.retry_count = 5, active.rnr_retry_count = 2, active.min_rnr_timer = 11;
  active.path_mtu = 4096, active.traffic_class = 0x68;
  passive.responder_resources = 4, passive.initiator_depth = 16;
  passive.rnr_retry_count = 6, passive.ack_timeout = 9;
  box.establish(active, passive);
  ASSERT_EQ(box.events(0), Types{Type::kEstablished});
  ASSERT_EQ(box.events(1), (Types{Type::kConnectRequest, Type::kEstablished}));
  const ConnectionEvent& request = box.hosts[1]->connection_events[0];
  EXPECT_EQ(request.responder_resources, 9) << "what the other side's initiator may have under way";
  EXPECT_EQ(request.initiator_depth, 3);
  EXPECT_EQ(request.port, kCmPort);
  EXPECT_EQ(request.remote, roce::ipv4(10, 0, 0, 1));
  EXPECT_EQ(request.remote_port, 0xC000);
  const nic_model::QpAttributes& a = box.sides[0].qp->attributes;
  const nic_model::QpAttributes& b = box.sides[1].qp->attributes;
  EXPECT_EQ(a.state, IBV_QPS_RTS);
  EXPECT_EQ(b.state, IBV_QPS_RTS);
  EXPECT_EQ(a.path_mtu, 4096u);
  EXPECT_EQ(b.path_mtu, 4096u);
  EXPECT_EQ(a.send_psn, b.receive_psn);
  EXPECT_EQ(b.send_psn, a.receive_psn);
  EXPECT_NE(a.send_psn, a.receive_psn);
  EXPECT_EQ(a.max_rd_atomic, 4);
  EXPECT_EQ(b.max_dest_rd_atomic, 4);
  EXPECT_EQ(a.max_dest_rd_atomic, 3);
  EXPECT_EQ(b.max_rd_atomic, 3);
  EXPECT_EQ(a.retry_cnt, 5);
  EXPECT_EQ(b.retry_cnt, 5);
  EXPECT_EQ(a.rnr_retry, 6) << "as the other side says of itself";
  EXPECT_EQ(b.rnr_retry, 2);
  EXPECT_EQ(a.min_rnr_timer, 11);
  EXPECT_EQ(a.timeout, 17) << "the path's, which is longer than the other side's delay";
  EXPECT_EQ(b.timeout, 9);
  EXPECT_EQ(a.traffic_class, 0x68);
  EXPECT_EQ(b.traffic_class, 0x68);
  EXPECT_EQ(a.access, std::uint32_t{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
  expect_carries(box);
  EXPECT_EQ(box.count(0, "cm_connections") + box.count(1, "cm_connections"), 2u);
  EXPECT_EQ(box.count(0, "tx_mads"), 2u);
  EXPECT_EQ(box.count(1, "tx_mads"), 1u);
}

TEST(Cm, AQueuePairThatHasNoPeerYetLooksForNone) {
  CmBox box;
  ASSERT_EQ(0, box.listen(1));
  Qp* const qp = box.make_qp(0);
  box.on(0, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;  // as rdma_create_qp leaves it
    EXPECT_EQ(0, host.modify_qp(*qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  });
  box.connect(0, qp);
  box.run(kMillisecond);
  EXPECT_EQ(box.count(0, "arp_requests_sent"), 1u);
  EXPECT_EQ(box.count(0, "nd_solicitations_sent"), 0u);
}

TEST(Cm, PrivateDataGoBothWaysWhole) {
  CmBox box;
  ASSERT_EQ(0, box.listen(1));
  const std::string hello(56, 'a'), welcome(196, 'b');
  box.make_qp(0);
  box.spare[1].push_back(box.make_qp(1));
  box.accept_all(1, {.private_data = bytes_of(welcome)});
  box.connect(0, box.sides[0].qp, {.private_data = bytes_of(hello)});
  box.run();
  EXPECT_EQ(text_of(box.hosts[1]->connection_events[0], 56), hello);
  EXPECT_EQ(box.hosts[1]->connection_events[0].private_data_bytes, 56);
  EXPECT_EQ(text_of(box.last(0), 196), welcome);
  const std::string much(57, 'c');
  box.connect(0, box.make_qp(0), {.private_data = bytes_of(much)}, PortSpace::kTcp, EINVAL);
}

// The lost message's direction and PSN; who sends again.
struct Lost {
  const char* name;
  const char* direction;
  unsigned psn;
  unsigned retries[2], duplicates[2];
};
constexpr Lost kLost[] = {
    {"REQ", "forward", 0, {1, 0}, {0, 0}},  {"REP", "reverse", 0, {0, 1}, {0, 1}},
    {"RTU", "forward", 1, {0, 1}, {1, 0}},  {"DREQ", "forward", 2, {1, 0}, {0, 0}},
    {"DREP", "reverse", 1, {1, 0}, {0, 1}},
};

TEST(Cm, EveryLostMessageIsMadeUpFor) {
  for (const Lost& one : kLost) {
    SCOPED_TRACE(one.name);
    // Side 1 waits as long as side 0's REQ says; either may be the first whose patience ends.
    CmBox box(at_mad(one.direction, one.psn));
    box.establish();
    ASSERT_EQ(box.events(0), Types{Type::kEstablished});
    ASSERT_EQ(box.events(1), (Types{Type::kConnectRequest, Type::kEstablished}));
    expect_carries(box);
    ASSERT_EQ(0, box.disconnect(0));
    EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR);
    box.run(100 * kSecond);
    EXPECT_EQ(box.events(0), (Types{Type::kEstablished, Type::kDisconnected, Type::kTimewaitExit}));
    EXPECT_EQ(box.events(1),
              (Types{Type::kConnectRequest, Type::kEstablished, Type::kDisconnected, Type::kTimewaitExit}));
    EXPECT_EQ(box.sides[1].qp->attributes.state, IBV_QPS_ERR);
    for (unsigned side = 0; side < 2; side++) {
      EXPECT_EQ(box.held(side), 0u);
      EXPECT_GE(box.count(side, "cm_retries") + box.count(1 - side, "cm_retries"), 1u);
    }
  }
}

TEST(Cm, TwiceDeliveredMessagesChangeNothing) {
  CmBox box("delay: 1us\nduplicate: 100%");
  box.establish();
  ASSERT_EQ(box.events(0), Types{Type::kEstablished});
  ASSERT_EQ(box.events(1), (Types{Type::kConnectRequest, Type::kEstablished}));
  expect_carries(box);
  ASSERT_EQ(0, box.disconnect(1));
  box.run(100 * kSecond);
  EXPECT_EQ(box.last(0).type, Type::kTimewaitExit);
  EXPECT_EQ(box.last(1).type, Type::kTimewaitExit);
  EXPECT_EQ(box.held(0) + box.held(1), 0u);
  EXPECT_EQ(box.count(0, "cm_retries") + box.count(1, "cm_retries"), 0u);
}

TEST(Cm, ConnectsThroughAnyLossAndLeavesNothing) {
  for (unsigned seed = 0; seed < 60; seed++) {
    CmBox box(
        "delay: 1us\njitter: 20us\njitter_reorders: true\nmatch: {kind: roce}\nloss: 30%\nduplicate: 20%\ncorrupt: 5%",
        "rate: 100Gbps", seed);
    box.establish();
    box.run(200 * kSecond);
    ASSERT_EQ(box.events(0).size(), 1u) << seed;
    ASSERT_EQ(box.last(0).type, Type::kEstablished) << seed << ": 16 tries at a third of loss";
    ASSERT_EQ(box.last(1).type, Type::kEstablished) << seed;
    box.disconnect(seed % 2);
    if (seed % 3 == 0) box.disconnect(1 - seed % 2);  // both at once
    box.run(1000 * kSecond);
    for (unsigned side = 0; side < 2; side++) {
      EXPECT_EQ(box.held(side), 0u) << seed;
      EXPECT_EQ(box.last(side).type, Type::kTimewaitExit) << seed;
      EXPECT_EQ(box.sides[side].qp->attributes.state, IBV_QPS_ERR) << seed;
    }
  }
}

TEST(Cm, RejectsSayWhy) {
  CmBox box;
  Qp* qp = box.make_qp(0);
  box.connect(0, qp);
  box.run();
  ASSERT_EQ(box.events(0), Types{Type::kRejected}) << "nobody listens";
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmReject::kInvalidServiceId));
  EXPECT_EQ(box.count(1, "cm_rejects_sent"), 1u);
  EXPECT_EQ(box.count(1, "drop_cm_refused"), 1u);

  ASSERT_EQ(0, box.listen(1));
  EXPECT_EQ(EADDRINUSE, box.listen(1));
  box.hosts[1]->on_connection = [](Host& host, const ConnectionEvent& event) {
    EXPECT_EQ(0, host.connections().reject(event.id, bytes_of("not today")));
    EXPECT_EQ(ENOENT, host.connections().reject(event.id));
  };
  box.connect(0, qp);
  box.run();
  EXPECT_EQ(box.last(0).type, Type::kRejected);
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmReject::kConsumer));
  EXPECT_EQ(text_of(box.last(0), 9), "not today");
  EXPECT_EQ(qp->attributes.state, IBV_QPS_RESET) << "it was never moved";
  EXPECT_EQ(box.held(0) + box.held(1), 0u);
}

TEST(Cm, ABacklogIsAllThatAServiceKeeps) {
  CmBox box;
  ASSERT_EQ(0, box.listen(1, PortSpace::kTcp, 2));
  for (unsigned i = 0; i < 3; i++) box.connect(0, box.make_qp(0));
  box.run(kMillisecond);
  EXPECT_EQ(box.events(1), (Types{Type::kConnectRequest, Type::kConnectRequest}));
  ASSERT_EQ(box.events(0), Types{Type::kRejected});
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmReject::kNoResources));
  EXPECT_EQ(0, box.destroy(1, box.last(1).id));
  box.run(kMillisecond);
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmReject::kConsumer));
  box.connect(0, box.make_qp(0));
  box.run(kMillisecond);
  EXPECT_EQ(box.events(1).size(), 3u) << "there is room for one again";
}

TEST(Cm, WhoDoesNotRespondIsUnreachable) {
  CmBox box("delay: 1us\nmatch: {kind: roce}\nloss: 100%", "rate: 100Gbps\ncm_response_timeout: 18\ncm_retries: 3");
  Qp* qp = box.make_qp(0);
  box.connect(0, qp);
  box.run(4 * (Nanos{4096} << 18) - kMicrosecond);
  EXPECT_TRUE(box.events(0).empty());
  box.run(2 * kMicrosecond);
  ASSERT_EQ(box.events(0), Types{Type::kUnreachable});
  EXPECT_EQ(box.last(0).status, ETIMEDOUT);
  EXPECT_EQ(box.count(0, "tx_mads"), 4u);
  EXPECT_EQ(box.count(0, "cm_retries"), 3u);
  EXPECT_EQ(box.held(0), 0u);
  EXPECT_EQ(qp->attributes.state, IBV_QPS_RESET);
}

TEST(Cm, WhoHasNoMacAddressIsUnreachable) {
  CmBox box("delay: 1us\nloss: 100%", "rate: 100Gbps\ncm_response_timeout: 18\ncm_retries: 3");
  box.connect(0, box.make_qp(0));
  box.run(100 * kSecond);
  ASSERT_EQ(box.events(0), Types{Type::kUnreachable});
  EXPECT_EQ(box.last(0).status, EHOSTUNREACH);
  EXPECT_EQ(box.count(0, "tx_mads"), 0u);
}

TEST(Cm, ALateDecisionIsAnnouncedByAnMra) {
  CmBox box("delay: 1us", "rate: 100Gbps\ncm_response_timeout: 14\ncm_retries: 2");
  ASSERT_EQ(0, box.listen(1));
  box.make_qp(0);
  box.connect(0, box.sides[0].qp);
  box.run(30 * kSecond);  // 3 tries are over after 0.2 s
  ASSERT_EQ(box.events(1), Types{Type::kConnectRequest});
  EXPECT_TRUE(box.events(0).empty());
  EXPECT_EQ(box.count(1, "tx_mads"), 1u) << "the MRA";
  box.on(1, [&](Host& host) { EXPECT_EQ(0, host.connections().accept(box.last(1).id, *box.make_qp(1))); });
  box.run(kSecond);
  EXPECT_EQ(box.events(0), Types{Type::kEstablished});
  EXPECT_EQ(box.last(1).type, Type::kEstablished);
}

TEST(Cm, BothMayAskAtOnce) {
  CmBox box;
  for (unsigned side = 0; side < 2; side++) {
    ASSERT_EQ(0, box.listen(side));
    box.make_qp(side);
    box.spare[side].push_back(box.make_qp(side));
    box.accept_all(side);
  }
  for (unsigned side = 0; side < 2; side++) box.connect(side, box.sides[side].qp);
  box.run();
  for (unsigned side = 0; side < 2; side++) {
    EXPECT_EQ(box.count(side, "cm_connections"), 2u);
    EXPECT_EQ(box.sides[side].qp->attributes.state, IBV_QPS_RTS);
    EXPECT_EQ(box.held(side), 2u);
  }
}

TEST(Cm, BothMayDisconnectAtOnce) {
  CmBox box;
  box.establish();
  for (unsigned side = 0; side < 2; side++) ASSERT_EQ(0, box.disconnect(side));
  for (unsigned side = 0; side < 2; side++) EXPECT_EQ(EINVAL, box.disconnect(side)) << "it is on its way";
  box.run();
  for (unsigned side = 0; side < 2; side++) {
    EXPECT_EQ(box.last(side).type, Type::kTimewaitExit);
    EXPECT_EQ(box.held(side), 0u);
    EXPECT_EQ(box.count(side, "cm_retries"), 0u);
  }
}

}  // namespace
}  // namespace rocebox::test
