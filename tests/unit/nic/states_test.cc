// SPDX-License-Identifier: BSD-3-Clause
// The states of a queue pair: how it comes from one to another, and what it does in them (IB specification, volume 1,
// 10.3.1).
#include "tests/unit/nic/lonely_kit.h"

namespace rocebox::test::misuse {
namespace {

TEST(QpStates, PostingInAWrongStateIsEinval) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    Lonely one;
    one.move(state);
    const ibv_send_wr* bad = nullptr;
    EXPECT_EQ(one.send(request_of(IBV_WR_SEND), &bad), EINVAL) << state;
    EXPECT_NE(bad, nullptr) << state;
    EXPECT_EQ(one.receive(), state == IBV_QPS_RESET ? EINVAL : 0) << state;
  }
  // In the error state all is taken, and flushed.
  Lonely one;
  one.move(IBV_QPS_RTS);
  ASSERT_EQ(0, one.modify(Lonely::attributes(IBV_QPS_ERR), IBV_QP_STATE));
  EXPECT_EQ(one.send(request_of(IBV_WR_SEND)), 0);
  EXPECT_EQ(one.receive(), 0);
  one.box.run();
  ASSERT_EQ(one.box.completions(0).size(), 2u);
  for (const ibv_wc& wc : one.box.completions(0)) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

// Of 7 x 7 transitions those that the specification has (figure 124), with all that they need given. SQE, which only an
// unreliable one comes to, is left for RTS.
TEST(QpStates, TransitionsThatThereAreNotAreEinval) {
  constexpr ibv_qp_state kReached[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                       IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
  const auto allowed = [](ibv_qp_state from, ibv_qp_state to) {
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return to == IBV_QPS_RESET || from != IBV_QPS_RESET;
    if (to == IBV_QPS_INIT) return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
    if (to == IBV_QPS_RTR) return from == IBV_QPS_INIT;
    if (to == IBV_QPS_RTS)
      return from == IBV_QPS_RTR || from == IBV_QPS_RTS || from == IBV_QPS_SQD || from == IBV_QPS_SQE;
    return to == IBV_QPS_SQD && (from == IBV_QPS_RTS || from == IBV_QPS_SQD);
  };
  const auto mask = [](ibv_qp_state from, ibv_qp_state to) {
    const int all = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    return from == IBV_QPS_RESET && to == IBV_QPS_INIT ? all
           : to == IBV_QPS_RTR                         ? int{Lonely::kToRtr}
           : from == IBV_QPS_RTR && to == IBV_QPS_RTS  ? int{Lonely::kToRts}
                                                       : int{IBV_QP_STATE};
  };
  for (const ibv_qp_state from : kReached)
    for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
                                  IBV_QPS_ERR, IBV_QPS_UNKNOWN}) {
      Lonely one(from == IBV_QPS_SQE ? IBV_QPT_UC : IBV_QPT_RC);
      one.move(std::min(from, IBV_QPS_RTS));
      if (from == IBV_QPS_SQE) one.err();
      if (from == IBV_QPS_SQD || from == IBV_QPS_ERR) {
        ASSERT_EQ(0, one.modify(Lonely::attributes(from), IBV_QP_STATE));
      }
      ASSERT_EQ(one.qp->attributes.state, from);
      EXPECT_EQ(one.modify(Lonely::attributes(to), mask(from, to)), allowed(from, to) ? 0 : EINVAL)
          << from << " to " << to;
      EXPECT_EQ(one.qp->attributes.state, allowed(from, to) ? to : from) << from << " to " << to;
    }
}

TEST(QpStates, AttributesThatAreMissingTooManyOrOutOfRangeAreEinval) {
  const int bits[] = {IBV_QP_AV,     IBV_QP_PATH_MTU,           IBV_QP_DEST_QPN,
                      IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER};
  for (const int missing : bits) {
    Lonely one;
    one.move(IBV_QPS_INIT);
    EXPECT_EQ(one.modify(Lonely::attributes(IBV_QPS_RTR), Lonely::kToRtr & ~missing), EINVAL) << missing;
  }
  struct Row {
    const char* what;
    int more;
    std::function<void(ibv_qp_attr&)> spoil;
  } const rows[] = {
      {"no MTU", 0, [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); }},
      {"too many READs", 0, [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 129; }},
      {"an RNR timer of more than 5 bits", 0, [](ibv_qp_attr& a) { a.min_rnr_timer = 32; }},
      {"LIDs", 0, [](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }},
      {"another P_Key", IBV_QP_PKEY_INDEX, [](ibv_qp_attr& a) { a.pkey_index = 1; }},
      {"what is of no use yet", IBV_QP_TIMEOUT, [](ibv_qp_attr&) {}},
      {"another state than it is in", IBV_QP_CUR_STATE, [](ibv_qp_attr& a) { a.cur_qp_state = IBV_QPS_RTR; }},
  };
  for (const Row& row : rows) {
    Lonely one;
    one.move(IBV_QPS_INIT);
    ibv_qp_attr a = Lonely::attributes(IBV_QPS_RTR);
    row.spoil(a);
    EXPECT_EQ(one.modify(a, Lonely::kToRtr | row.more), EINVAL) << row.what;
    EXPECT_EQ(one.modify(Lonely::attributes(IBV_QPS_RTR), Lonely::kToRtr), 0) << "nothing of it was taken";
  }
}

// Bit by bit what Linux's table of ib_modify_qp_is_ok() lets each transition have beside what it must have.
TEST(QpStates, EachTransitionTakesTheAttributesThatLinuxHas) {
  constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  constexpr int kBoth = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
                kUd = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  constexpr int kDrained = IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
  constexpr int kDrainedRc = IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kRts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  constexpr int kRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  constexpr int kRtrRc = kRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  struct Row {
    ibv_qp_state from, to;
    int must[3], may[3];  // of RC, UC, UD
  } const rows[] = {
      {IBV_QPS_RESET, IBV_QPS_RESET, {}, {}},
      {IBV_QPS_INIT, IBV_QPS_RESET, {}, {}},
      {IBV_QPS_RTS, IBV_QPS_RESET, {}, {}},
      {IBV_QPS_RTS, IBV_QPS_ERR, {}, {}},
      {IBV_QPS_ERR, IBV_QPS_ERR, {}, {}},
      {IBV_QPS_RESET,
       IBV_QPS_INIT,
       {kInit | IBV_QP_ACCESS_FLAGS, kInit | IBV_QP_ACCESS_FLAGS, kInit | IBV_QP_QKEY},
       {}},
      {IBV_QPS_INIT, IBV_QPS_INIT, {}, {kInit | IBV_QP_ACCESS_FLAGS, kInit | IBV_QP_ACCESS_FLAGS, kInit | IBV_QP_QKEY}},
      {IBV_QPS_INIT,
       IBV_QPS_RTR,
       {kRtrRc, kRtr, 0},
       {IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
        IBV_QP_QKEY | IBV_QP_PKEY_INDEX}},
      {IBV_QPS_RTR, IBV_QPS_RTS, {kRts, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN}, {kBoth | IBV_QP_MIN_RNR_TIMER, kBoth, kUd}},
      {IBV_QPS_RTS,
       IBV_QPS_RTS,
       {},
       {kBoth | IBV_QP_MIN_RNR_TIMER | IBV_QP_RATE_LIMIT, kBoth | IBV_QP_RATE_LIMIT, kUd}},
      {IBV_QPS_RTS,
       IBV_QPS_SQD,
       {},
       {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
      {IBV_QPS_SQD, IBV_QPS_RTS, {}, {kBoth | IBV_QP_MIN_RNR_TIMER, kBoth, kUd}},
      {IBV_QPS_SQE, IBV_QPS_RTS, {}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, kUd}},
      {IBV_QPS_SQD, IBV_QPS_SQD, {}, {kDrained | kDrainedRc, kDrained, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
  };
  constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
  for (unsigned type = 0; type < 3; type++) {
    Lonely one(kTypes[type]);
    for (const Row& row : rows)
      for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
        if (row.must[type] & bit) continue;
        if (row.from == IBV_QPS_SQE && kTypes[type] != IBV_QPT_UC) continue;  // err() leads there by a WRITE
        ASSERT_EQ(0, one.modify(Lonely::attributes(IBV_QPS_RESET), IBV_QP_STATE));
        one.move(std::min(row.from, IBV_QPS_RTS));
        if (row.from == IBV_QPS_SQE) one.err();
        if (row.from == IBV_QPS_SQD || row.from == IBV_QPS_ERR) {
          ASSERT_EQ(0, one.modify(Lonely::attributes(row.from), IBV_QP_STATE));
        }
        ibv_qp_attr a = Lonely::attributes(row.to);
        a.cur_qp_state = row.from;
        EXPECT_EQ(one.modify(a, IBV_QP_STATE | row.must[type] | bit), row.may[type] & bit ? 0 : EINVAL)
            << row.from << " to " << row.to << ", type " << kTypes[type] << ", bit " << bit;
      }
  }
}

// What an unreliable one's send queue does wrong is no matter of its receive queue (10.3.1), and RTS ends it.
TEST(QpStates, UnreliableOnesReceiveOnAfterAnErrorOfTheirSendQueue) {
  using Statuses = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;
  constexpr ibv_wc_status kErrors[] = {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR,
                                       IBV_WC_MW_BIND_ERR};
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD})
    for (const ibv_wc_status error : kErrors) {
      if (type == IBV_QPT_UD && error == IBV_WC_MW_BIND_ERR) continue;  // only connected ones bind windows
      SCOPED_TRACE(testing::Message() << type << ", status " << error);
      NicBox box;
      box.connect({.type = type});
      const auto send = [&](unsigned side, std::uint64_t id, ibv_wc_status wrong = IBV_WC_SUCCESS) {
        box.on(side, [&](Host& host) {
          constexpr std::uint32_t kLong = (1u << 31) - 1;
          const std::uint32_t bytes = wrong != IBV_WC_LOC_LEN_ERR ? 8 : type == IBV_QPT_UC ? kLong : 4097;
          std::array<ibv_sge, 2> sges;
          sges.fill(
              {box.sides[side].address(), bytes, box.sides[side].key ^ (wrong == IBV_WC_LOC_PROT_ERR ? 0x55 : 0)});
          ibv_mw window{};
          ibv_send_wr request = request_of(wrong == IBV_WC_LOC_QP_OP_ERR ? IBV_WR_RDMA_READ : IBV_WR_SEND);
          request.wr_id = id;
          request.sg_list = sges.data();
          request.num_sge = bytes == kLong ? 2 : 1;
          if (wrong == IBV_WC_MW_BIND_ERR) {
            request.opcode = IBV_WR_BIND_MW;
            request.bind_mw.mw = &window;
            request.bind_mw.rkey = 0;
            request.bind_mw.bind_info = {};
          }
          const auto far = static_cast<std::uint8_t>(2 - side);
          const auto to = host.create_ah({2, 0x72, 10, 0, 0, far}, roce::ipv4(10, 0, 0, far),
                                         box.sides[1 - side].qp->number(), 0x1234);
          EXPECT_EQ(0, host.post_send(*box.sides[side].qp, &request, nullptr, type == IBV_QPT_UD ? &to : nullptr));
        });
        box.run(kMillisecond);
      };
      const auto statuses = [&](unsigned side) {
        Statuses all;
        for (const ibv_wc& wc : box.completions(side)) all.emplace_back(wc.wr_id, wc.status);
        box.completions(side).clear();
        return all;
      };
      for (const unsigned side : {0u, 1u})
        for (unsigned i = 0; i < 2; i++) ASSERT_EQ(0, box.post_receive(side, 100 + i, 1000, 64));
      send(0, 1, error);
      EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_SQE);
      send(0, 2);  // flushed
      EXPECT_EQ(statuses(0), (Statuses{{1, error}, {2, IBV_WC_WR_FLUSH_ERR}}));
      send(1, 3);
      EXPECT_EQ(statuses(0), (Statuses{{100, IBV_WC_SUCCESS}}));
      box.on(0, [&](Host& host) {
        EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, Lonely::attributes(IBV_QPS_RTS), IBV_QP_STATE));
      });
      box.completions(1).clear();
      send(0, 4);
      EXPECT_EQ(statuses(0), (Statuses{{4, IBV_WC_SUCCESS}}));
      EXPECT_EQ(statuses(1), (Statuses{{100, IBV_WC_SUCCESS}}));
    }
}

}  // namespace
}  // namespace rocebox::test::misuse
