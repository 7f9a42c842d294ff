// SPDX-License-Identifier: BSD-3-Clause
// Loss recovery of a queue pair: when it can be chosen, and what cannot be.
#include <cerrno>

#include "tests/unit/nic/lonely_kit.h"

namespace rocebox::test::misuse {
namespace {

using nic_model::LossRecovery;
using nic_model::Recovery;

int set(Lonely& one, const LossRecovery& recovery) {
  int error = -1;
  one.call([&](Host& host) { error = host.modify_loss_recovery(*one.qp, recovery); });
  return error;
}

TEST(QpRecovery, CanBeChosenBeforeRtrAlone) {
  constexpr LossRecovery kOther{Recovery::kSelective, 33, 5, 7};
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    SCOPED_TRACE(state);
    Lonely one;
    one.move(std::min(state, IBV_QPS_RTS));
    if (state > IBV_QPS_RTS) {
      ASSERT_EQ(one.modify(Lonely::attributes(state), IBV_QP_STATE), 0);
    }
    const LossRecovery before = one.qp->attributes.loss_recovery;
    const bool goes = state <= IBV_QPS_INIT;
    EXPECT_EQ(set(one, kOther), goes ? 0 : EINVAL);
    EXPECT_EQ(one.qp->attributes.loss_recovery, goes ? kOther : before);
  }
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    Lonely one(type);
    EXPECT_EQ(set(one, kOther), EINVAL) << type;
  }
}

TEST(QpRecovery, WhatANicCouldNotHaveIsEinval) {
  Lonely one;
  const LossRecovery before = one.qp->attributes.loss_recovery;
  for (const LossRecovery& wrong :
       {LossRecovery{static_cast<Recovery>(4)}, LossRecovery{Recovery::kGoBackN, 0},
        LossRecovery{Recovery::kGoBackN, nic_model::kWindowMax + 1}, LossRecovery{Recovery::kGoBackN, 1, -1},
        LossRecovery{Recovery::kGoBackN, 1, nic_model::kRetransmissionTimeoutMax + 1},
        LossRecovery{Recovery::kRnicSr, 1, 0, -1},
        LossRecovery{Recovery::kRnicSr, 1, 0, nic_model::kRetransmitStallMax + 1}}) {
    EXPECT_EQ(set(one, wrong), EINVAL);
    EXPECT_EQ(one.qp->attributes.loss_recovery, before);
  }
  EXPECT_EQ(set(one, {Recovery::kTimeoutOnly, nic_model::kWindowMax, nic_model::kRetransmissionTimeoutMax,
                      nic_model::kRetransmitStallMax}),
            0);
}

TEST(QpRecovery, CreditsGoWithGoBackNAlone) {
  NicBox box("credits: true");
  box.connect();
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  box.on(0, [&](Host& host) {
    nic_model::Qp& qp = *box.sides[0].qp;
    ASSERT_EQ(host.modify_qp(qp, reset, IBV_QP_STATE), 0);
    for (const Recovery how : {Recovery::kRnicSr, Recovery::kSelective, Recovery::kTimeoutOnly})
      EXPECT_EQ(host.modify_loss_recovery(qp, {how}), EINVAL);
    EXPECT_EQ(host.modify_loss_recovery(qp, {Recovery::kGoBackN, 3, kMillisecond}), 0);
  });
}

}  // namespace
}  // namespace rocebox::test::misuse
