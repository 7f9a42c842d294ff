// SPDX-License-Identifier: BSD-3-Clause
// A queue pair that can be in any state.
#pragma once
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::misuse {

using nic_model::Host;
using nic_model::QpInit;

// A queue pair of its own, in RESET, beside those that are connected.
struct Lonely {
  explicit Lonely(ibv_qp_type type = IBV_QPT_RC, ibv_qp_cap capacity = {4, 4, 2, 2, 64}) {
    box.connect();
    call([&](Host& host) {
      QpInit init;
      init.type = type;
      init.domain = box.sides[0].pd;
      init.send_cq = init.receive_cq = box.sides[0].cq;
      init.capacity = capacity;
      qp = host.create_qp(init);
    });
  }
  void call(std::function<void(Host&)> what) { box.on(0, std::move(what)); }
  int modify(const ibv_qp_attr& attributes, int mask) {
    int error = -1;
    call([&](Host& host) { error = host.modify_qp(*qp, attributes, mask); });
    return error;
  }
  // Goes as far as `to`: INIT, RTR, RTS.
  void move(ibv_qp_state to) {
    const bool ud = qp->is(IBV_QPT_UD), rc = qp->is(IBV_QPT_RC);
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    const int to_rtr = ud ? int{IBV_QP_STATE} : rc ? kToRtr : kToRtrUc;
    const int to_rts = rc ? kToRts : IBV_QP_STATE | IBV_QP_SQ_PSN;
    const std::pair<ibv_qp_state, int> steps[] = {
        {IBV_QPS_INIT, to_init}, {IBV_QPS_RTR, to_rtr}, {IBV_QPS_RTS, to_rts}};
    for (const auto& [state, mask] : steps)
      if (to >= state) {
        ASSERT_EQ(0, modify(attributes(state), mask)) << state;
      }
  }
  static ibv_qp_attr attributes(ibv_qp_state state) {
    ibv_qp_attr a{};
    a.qp_state = state;
    a.port_num = 1;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = 0x99;
    a.max_dest_rd_atomic = a.max_rd_atomic = 1;
    a.retry_cnt = a.rnr_retry = 7;
    a.timeout = 14;
    a.ah_attr.is_global = 1;
    const roce::IpAddress peer = roce::ipv4(10, 0, 0, 2);
    std::copy(peer.begin(), peer.end(), a.ah_attr.grh.dgid.raw);
    return a;
  }
  int send(ibv_send_wr request, const ibv_send_wr** bad = nullptr) {
    int error = -1;
    call([&](Host& host) { error = host.post_send(*qp, &request, bad); });
    return error;
  }
  // Of an unreliable one's send queue.
  void err() {
    ibv_sge sge{box.sides[0].address(), 8, 0x99};
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &sge;
    request.num_sge = 1;
    EXPECT_EQ(send(request), 0);
    box.run(kMillisecond);
  }
  int receive(int sges = 1) {
    int error = -1;
    std::array<ibv_sge, 8> list{};
    list.fill({box.sides[0].address(), 8, box.sides[0].key});
    ibv_recv_wr request{7, nullptr, list.data(), sges};
    call([&](Host& host) { error = host.post_receive(*qp, &request, nullptr); });
    return error;
  }

  static constexpr int kToRtrUc = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  static constexpr int kToRtr = kToRtrUc | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  static constexpr int kToRts =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  NicBox box;
  nic_model::Qp* qp = nullptr;
};

inline ibv_send_wr request_of(ibv_wr_opcode opcode) {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  return request;
}

}  // namespace rocebox::test::misuse
