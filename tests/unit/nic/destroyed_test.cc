// SPDX-License-Identifier: BSD-3-Clause
// What a program has destroyed it hears of no more, though events were due when it did; nor does the next object with
// that number.
#include <algorithm>

#include "nic_model/host/connect.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test::destroyed {
namespace {

using Type = ConnectionEventType;

// Hears of asynchronous events, beside the box's own programs.
struct Listening final : nic_model::HostProgram {
  void on_async_event(Host& host, const nic_model::AsyncEvent& event) override {
    heard.push_back(event);
    if (then) std::exchange(then, {})(host);
  }
  std::vector<nic_model::AsyncEvent> heard;
  std::function<void(Host&)> then;
};

// An event of a queue with nothing on its way comes at once.
void drain(Host& host, Qp& qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_SQD;
  a.en_sqd_async_notify = 1;
  ASSERT_EQ(0, host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
}

TEST(Destroyed, AQueuePairsEventsAreToldNoMore) {
  NicBox box;
  box.connect();
  box.on(0, [&](Host& host) {
    drain(host, *box.sides[0].qp);
    const nic_model::QpInit init = box.sides[0].qp->init;
    const std::uint32_t number = box.sides[0].qp->number();
    host.destroy_qp(*box.sides[0].qp);
    box.sides[0].qp = host.create_qp(init);
    EXPECT_EQ(box.sides[0].qp->number(), number);
  });
  EXPECT_TRUE(box.hosts[0]->events.empty());
}

// Two events are due, and the program that hears of the first destroys what the second is about.
TEST(Destroyed, NorThoseThatAreJustBeingTold) {
  Listening program;
  NicBox box;
  box.nics[0]->host().submit(program);
  PairOptions options;
  options.shared_receives = 4;
  box.connect(options);
  Qp* first = nullptr;
  box.on(0, [&](Host& host) { first = host.create_qp(box.sides[0].qp->init); });
  box.make_ready(0, *first, box.sides[1].qp->number(), options);
  box.on(0, [&](Host& host) {
    drain(host, *first);
    drain(host, *box.sides[0].qp);
    program.then = [&](Host& h) { h.destroy_qp(*std::exchange(box.sides[0].qp, nullptr)); };
  });
  ASSERT_EQ(program.heard.size(), 1u);
  EXPECT_EQ(program.heard[0].qpn, first->number());
  EXPECT_EQ(box.hosts[0]->events.size(), 1u) << "no other program hears of it, either";
}

// Its completion finds no room, which is seen when the call's work is done; the next one has its number.
TEST(Destroyed, AnOverrunIsNotTheNextQueuePairs) {
  NicBox box;
  box.connect();
  Side one;
  one.memory.resize(64);
  nic_model::QpInit init;
  const auto post_wrong = [&](Host& host) {
    const auto to = host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), 0x99, 0x1234);
    ASSERT_EQ(0, post_datagram(host, one, to, 64));
  };
  box.on(0, [&](Host& host) {
    init.type = IBV_QPT_UD;
    init.capacity = {4, 4, 1, 1, 0};
    init.send_cq = init.receive_cq = host.create_cq(1, box.hosts[0]->number);
    one.qp = host.create_qp(init);
    ASSERT_EQ(0, nic_model::start_datagrams(host, *one.qp, 0x1234));
    post_wrong(host);  // its memory has no key
  });
  box.run(kMillisecond);
  ASSERT_EQ(one.qp->attributes.state, IBV_QPS_SQE);
  box.on(0, [&](Host& host) {
    post_wrong(host);
    const std::uint32_t number = one.qp->number();
    host.destroy_qp(*one.qp);
    init.send_cq = init.receive_cq = box.sides[0].cq;
    one.qp = host.create_qp(init);
    ASSERT_EQ(one.qp->number(), number);
    ASSERT_EQ(0, nic_model::start_datagrams(host, *one.qp, 0x1234));
  });
  EXPECT_EQ(one.qp->attributes.state, IBV_QPS_RTS);
  EXPECT_EQ(std::ranges::count(box.hosts[0]->events, IBV_EVENT_QP_FATAL), 0);
}

// The other side ends a connection, and what is flushed is told first.
TEST(Destroyed, AConnectionsEventsAreToldNoMore) {
  CmBox box;
  box.establish();
  ASSERT_EQ(box.last(1).type, Type::kEstablished);
  ASSERT_EQ(0, box.post_receive(1, 7, 0, 64));
  box.hosts[1]->on_wc = [&](Host& host, const ibv_wc& wc) {
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(0, host.connections().destroy(box.last(1).id));
  };
  ASSERT_EQ(0, box.disconnect(0));
  box.run(300 * kSecond);
  EXPECT_EQ(box.completions(1).size(), 1u);
  EXPECT_EQ(box.events(1), (Types{Type::kConnectRequest, Type::kEstablished}));
  EXPECT_EQ(box.held(1), 0u) << "it ends all the same";
}

// Two REQs come in one call, so that both are due when the first is told.
class TwoAtOnce : public CmBox {
 public:
  TwoAtOnce() {
    devices[1]->set_batch_max(8);
    run(kMillisecond);
    EXPECT_EQ(0, listen(1));
  }
  void ask_twice() {
    std::vector<Packet> both;
    for (const std::uint32_t id : {0x11u, 0x12u}) {
      roce::CmWholeReq whole{};
      whole.request.local_communication_id = id;
      whole.request.service_id = roce::kIpCmService | roce::kIpCmTcp | kCmPort;
      whole.request.local_qpn = id;
      whole.request.timeout_retries = 10 << 3;
      whole.request.mtu_rdc_rnr = 3 << 4;
      both.push_back(mad_packet(roce::cm_mad(id, whole, std::array<std::uint8_t, 36>{0, 0x40})).release());
    }
    fabric.inject({1, 0}, both);
    fabric.run(now);
  }
};

TEST(Destroyed, RequestsThatWereNotToldEndWithTheirService) {
  TwoAtOnce box;
  box.hosts[1]->on_connection = [&](Host& host, const ConnectionEvent& event) {
    EXPECT_EQ(0, host.connections().close(PortSpace::kTcp, kCmPort));
    EXPECT_EQ(0, host.connections().reject(event.id));
  };
  box.ask_twice();
  EXPECT_EQ(box.events(1), Types{Type::kConnectRequest});
  EXPECT_EQ(box.held(1), 0u);
  EXPECT_EQ(box.count(1, "cm_rejects_sent"), 2u);
}

// Of one instant they are numbered one behind the other.
TEST(Destroyed, NorEventsOfAConnectionThatAreJustBeingTold) {
  TwoAtOnce box;
  box.hosts[1]->on_connection = [&](Host& host, const ConnectionEvent& event) {
    box.hosts[1]->on_connection = {};
    EXPECT_EQ(0, host.connections().destroy(event.id + 1));
  };
  box.ask_twice();
  EXPECT_EQ(box.events(1), Types{Type::kConnectRequest});
}

}  // namespace
}  // namespace rocebox::test::destroyed
