// SPDX-License-Identifier: BSD-3-Clause
// Programs that give up, forget, or ask for what there is not.
#include <set>

#include "nic_model/host/connect.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test {
namespace {

using Type = ConnectionEventType;

TEST(Cm, DestroyingEndsWhateverThereIs) {
  {
    CmBox box;  // a request that nobody has decided on
    ASSERT_EQ(0, box.listen(1));
    const ConnectionId id = box.connect(0, box.make_qp(0));
    box.run(kMillisecond);
    EXPECT_EQ(0, box.destroy(0, id));
    EXPECT_EQ(ENOENT, box.destroy(0, id));
    box.run(kMillisecond);
    EXPECT_TRUE(box.events(0).empty());
    EXPECT_EQ(box.last(1).type, Type::kRejected);
    EXPECT_EQ(box.last(1).status, static_cast<int>(roce::CmReject::kTimeout));
    EXPECT_EQ(box.held(0) + box.held(1), 0u);
  }
  {
    CmBox box;  // an established connection
    box.establish();
    EXPECT_EQ(0, box.destroy(0, box.last(0).id));
    box.run();
    EXPECT_EQ(box.events(0), Types{Type::kEstablished}) << "no event any more";
    EXPECT_EQ(box.last(1).type, Type::kTimewaitExit);
    EXPECT_EQ(box.held(0) + box.held(1), 0u);
  }
  {
    CmBox box(at_mad("reverse", 0));  // an accepted one whose REP is lost
    ASSERT_EQ(0, box.listen(1));
    box.spare[1].push_back(box.make_qp(1));
    box.accept_all(1);
    box.connect(0, box.make_qp(0));
    box.run(kMillisecond);
    EXPECT_EQ(0, box.destroy(1, box.last(1).id));
    box.run(kMillisecond);
    EXPECT_EQ(box.last(0).type, Type::kRejected);
    EXPECT_EQ(box.sides[1].qp->attributes.state, IBV_QPS_ERR);
    EXPECT_EQ(box.held(0), 0u);
    EXPECT_EQ(box.held(1), 1u) << "who has received the REP may have sent";
    box.run();
    EXPECT_EQ(box.events(1), Types{Type::kConnectRequest});
    EXPECT_EQ(box.held(1), 0u);
  }
}

// Side 0 has forgotten a connection, as after a restart, and uses the queue pair again.
TEST(Cm, AQueuePairThatIsStillConnectedIsStale) {
  CmBox box;
  box.establish();
  box.on(0, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
  });
  box.spare[1].push_back(box.make_qp(1));
  box.connect(0, box.sides[0].qp);
  box.run(kMillisecond);
  const auto& events = box.hosts[0]->connection_events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].type, Type::kDisconnected) << "this NIC, at least, knew the old one, too";
  EXPECT_EQ(events[2].type, Type::kRejected);
  EXPECT_EQ(events[2].status, static_cast<int>(roce::CmReject::kStaleConnection));
  EXPECT_EQ(box.last(1).type, Type::kDisconnected) << "the other side ends the old one";
  box.run();
  box.connect(0, box.sides[0].qp);
  box.run();
  EXPECT_EQ(box.last(0).type, Type::kEstablished) << "and then it goes";
}

// The same of a side that accepts: its REP says what is stale, and the connection that was so is ended, too.
TEST(Cm, AnAcceptedQueuePairThatIsStillConnectedIsStale) {
  CmBox box;
  box.establish();
  const ConnectionId first = box.last(0).id;
  box.on(1, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(0, host.modify_qp(*box.sides[1].qp, a, IBV_QP_STATE));
  });
  box.spare[1].push_back(box.sides[1].qp);
  Qp* const other = box.make_qp(0);
  const ConnectionId second = box.connect(0, other);
  box.run(kMillisecond);
  EXPECT_EQ(box.last(0).type, Type::kDisconnected);
  EXPECT_EQ(box.last(0).id, first);
  EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR);
  EXPECT_EQ(box.count(0, "cm_rejects_sent"), 1u);
  EXPECT_EQ(other->attributes.state, IBV_QPS_RESET);
  EXPECT_EQ(0, box.destroy(0, second));
}

// A queue pair that a program has connected otherwise since is not the connection's to stop, be its peer's number the
// same.
TEST(Cm, AQueuePairThatIsAnothersNowIsNotStopped) {
  for (const bool is_same_peer : {false, true}) {
    SCOPED_TRACE(is_same_peer);
    CmBox box;
    box.establish();
    Qp& qp = *box.sides[0].qp;
    // With another address, or after it was stopped once.
    if (is_same_peer) {
      EXPECT_EQ(0, box.disconnect(0));
    }
    box.on(0, [&](Host& host) {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(0, host.modify_qp(qp, a, IBV_QP_STATE));
      nic_model::connect(host, qp, {roce::ipv4(10, 0, 0, is_same_peer ? 2 : 9), box.sides[1].qp->number(), 0}, {});
    });
    ASSERT_EQ(qp.attributes.state, IBV_QPS_RTS);
    EXPECT_EQ(0, box.disconnect(1));
    box.run(kMillisecond);
    EXPECT_EQ(box.last(0).type, Type::kDisconnected);
    EXPECT_EQ(qp.attributes.state, IBV_QPS_RTS);
  }
}

// Side 0 has ended its connection, and was started anew at once; side 1 is still in TIMEWAIT.
TEST(Cm, AQueuePairWhoseConnectionWasEndedIsNotStale) {
  CmBox box;
  box.establish();
  const ConnectionId first = box.last(0).id;
  EXPECT_EQ(0, box.disconnect(0));
  box.run(kMillisecond);
  ASSERT_EQ(box.last(1).type, Type::kDisconnected);
  box.on(0, [&](Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
  });
  box.spare[1].push_back(box.make_qp(1));
  const ConnectionId second = box.connect(0, box.sides[0].qp);
  EXPECT_NE(first, second);
  box.run(kMillisecond);
  EXPECT_EQ(box.last(0).type, Type::kEstablished);
  EXPECT_EQ(box.last(0).id, second);
  EXPECT_EQ(box.last(1).type, Type::kEstablished);
  box.run();
  EXPECT_EQ(box.last(1).type, Type::kTimewaitExit) << "of the first";
  EXPECT_EQ(box.held(0), 1u);
}

// A NIC that is started anew begins with the numbers of its queue pairs again, but not with those of its connections.
TEST(Cm, NumbersOfConnectionsBeginElsewhereAtAnotherTime) {
  std::set<ConnectionId> ids;
  for (unsigned i = 0; i < 100; i++) {
    CmBox box;
    box.run(i * kMicrosecond);
    ids.insert(box.connect(0, box.make_qp(0)));
  }
  EXPECT_GE(ids.size(), 98u);
}

TEST(Cm, MisuseIsAnErrno) {
  CmBox box;
  Qp* const qp = box.make_qp(0);
  ConnectionOptions wrong;
  wrong.path_mtu = 1500;
  box.connect(0, qp, wrong, PortSpace::kTcp, EINVAL);
  wrong = {};
  wrong.retry_count = 8;
  box.connect(0, qp, wrong, PortSpace::kTcp, EINVAL);
  box.connect(0, nullptr, {}, PortSpace::kTcp, EINVAL);
  box.connect(0, box.make_qp(0, IBV_QPT_UD), {}, PortSpace::kTcp, EINVAL);
  EXPECT_EQ(ENOENT, box.destroy(0, 12345));
  EXPECT_EQ(EINVAL, box.listen(1, PortSpace::kTcp, nic_model::kBacklogMax + 1));
  EXPECT_EQ(box.held(0), 0u);
  box.establish();
  box.connect(0, box.sides[0].qp, {}, PortSpace::kTcp, EINVAL);
}

}  // namespace
}  // namespace rocebox::test
