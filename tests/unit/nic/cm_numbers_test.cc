// SPDX-License-Identifier: BSD-3-Clause
// Whatever numbers the other side of a connection says of itself, its end stops the queue pair that was connected, and
// no other one.
#include "nic_model/host/connect.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test::cm_numbers {
namespace {

using Type = ConnectionEventType;

// What the other side says: of its communication, and of its queue pair.
struct Numbers {
  std::uint32_t id, qpn;
};
constexpr Numbers kAll[] = {{0x1234, 0x99}, {0x1234, 0}, {0, 0x99}, {0, 0}, {0xFFFFFFFF, 0xFFFFFF}};

class Far : public CmBox {
 public:
  explicit Far(const Numbers& said, const std::string& link = "delay: 1us")
      : CmBox(link, "rate: 100Gbps\ncm_response_timeout: 10"), numbers(said) {
    qp = make_qp(1);
  }
  // It asks and is accepted.
  void ask() {
    ASSERT_EQ(0, listen(1));
    spare[1].push_back(qp);
    accept_all(1);
    roce::CmWholeReq whole{};
    whole.request.local_communication_id = numbers.id;
    whole.request.service_id = roce::kIpCmService | roce::kIpCmTcp | kCmPort;
    whole.request.local_qpn = numbers.qpn;
    whole.request.timeout_retries = 10 << 3;
    whole.request.mtu_rdc_rnr = 3 << 4;
    whole.request.retries_srq_type = 2 << 4;
    inject_mad(roce::cm_mad(5, whole, std::array<std::uint8_t, 36>{0, 0x40}));
  }
  // And says that it is ready.
  void be_accepted() {
    ask();
    roce::CmRtu rtu{};
    rtu.local_communication_id = numbers.id;
    rtu.remote_communication_id = last(1).id;
    inject_mad(roce::cm_mad(5, rtu));
  }
  // It is asked, and accepts.
  void accept() {
    const ConnectionId id = connect(1, qp);
    roce::CmRep rep{};
    rep.local_communication_id = numbers.id;
    rep.remote_communication_id = id;
    rep.local_qpn = numbers.qpn;
    inject_mad(roce::cm_mad(5, rep));
  }
  void ask_to_end() {
    roce::CmDreq dreq{};
    dreq.local_communication_id = numbers.id;
    dreq.remote_communication_id = last(1).id;
    dreq.remote_qpn = qp->number();
    inject_mad(roce::cm_mad(5, dreq));
  }
  void reject() {
    roce::CmWholeRej rej{};
    rej.reject.local_communication_id = numbers.id;
    rej.reject.remote_communication_id = last(1).id;
    rej.reject.message = 2 << 6;
    inject_mad(roce::cm_mad(5, rej));
  }
  const Numbers numbers;
  Qp* qp;
};

TEST(CmNumbers, AnEndStopsTheQueuePair) {
  for (const Numbers& said : kAll)
    for (const bool is_active : {false, true})
      for (const bool asks : {false, true}) {
        SCOPED_TRACE(testing::Message() << said.id << " " << said.qpn << (is_active ? " active" : " passive"));
        Far box(said);
        is_active ? box.accept() : box.be_accepted();
        ASSERT_EQ(box.last(1).type, Type::kEstablished);
        ASSERT_EQ(box.qp->attributes.state, IBV_QPS_RTS);
        asks ? box.ask_to_end() : box.reject();
        EXPECT_EQ(box.last(1).type, Type::kDisconnected);
        EXPECT_EQ(box.qp->attributes.state, IBV_QPS_ERR);
      }
}

TEST(CmNumbers, SoDoTheOwnProgramsEndAndSilence) {
  for (const Numbers& said : kAll) {
    SCOPED_TRACE(testing::Message() << said.id << " " << said.qpn);
    Far box(said);
    box.be_accepted();
    ASSERT_EQ(0, box.disconnect(1));
    EXPECT_EQ(box.qp->attributes.state, IBV_QPS_ERR);
    Far silent(said, "delay: 1us\nreverse: {loss: 100%}");  // nobody there rejects what it has not asked for
    silent.ask();
    ASSERT_EQ(silent.qp->attributes.state, IBV_QPS_RTS);
    silent.run(kSecond);
    EXPECT_EQ(silent.last(1).type, Type::kUnreachable);
    EXPECT_EQ(silent.qp->attributes.state, IBV_QPS_ERR);
  }
}

// The program has used the queue pair anew, by hand, for the same peer.
TEST(CmNumbers, WhatIsAnothersNowStays) {
  for (const bool makes_another : {false, true}) {
    Far box(kAll[0]);
    box.be_accepted();
    box.on(1, [&](Host& host) {
      const nic_model::QpInit init = box.qp->init;
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_RESET;
      if (makes_another) {
        const std::uint32_t number = box.qp->number();
        host.destroy_qp(*box.qp);
        box.qp = host.create_qp(init);
        ASSERT_EQ(box.qp->number(), number);
      } else {
        ASSERT_EQ(0, host.modify_qp(*box.qp, a, IBV_QP_STATE));
      }
      ASSERT_EQ(0, nic_model::connect(host, *box.qp, {roce::ipv4(10, 0, 0, 1), box.numbers.qpn, 0}, {}));
    });
    box.ask_to_end();
    EXPECT_EQ(box.last(1).type, Type::kDisconnected);
    EXPECT_EQ(box.qp->attributes.state, IBV_QPS_RTS);
  }
}

// One that has gone before the answer came is not connected, nor the next one with its number, nor one that its program
// has reset, perhaps for another peer.
TEST(CmNumbers, AnAnswerForAQueuePairThatHasGoneIsRefused) {
  for (const bool is_reset : {false, true}) {
    SCOPED_TRACE(is_reset);
    Far box(kAll[0]);
    const std::uint32_t number = box.qp->number();
    const ConnectionId id = box.connect(1, box.qp);
    box.on(1, [&](Host& host) {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_RESET;
      if (is_reset) {
        ASSERT_EQ(0, host.modify_qp(*box.qp, a, IBV_QP_STATE));
        return;
      }
      const nic_model::QpInit init = box.qp->init;
      host.destroy_qp(*box.qp);
      box.qp = host.create_qp(init);
      ASSERT_EQ(box.qp->number(), number);
    });
    roce::CmRep rep{};
    rep.local_communication_id = box.numbers.id;
    rep.remote_communication_id = id;
    rep.local_qpn = box.numbers.qpn;
    box.inject_mad(roce::cm_mad(5, rep));
    EXPECT_EQ(box.last(1).type, Type::kConnectError);
    EXPECT_EQ(box.qp->attributes.state, IBV_QPS_RESET);
  }
}

}  // namespace
}  // namespace rocebox::test::cm_numbers
