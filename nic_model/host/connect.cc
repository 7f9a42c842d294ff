// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/connect.h"

#include <bit>

namespace rocebox::nic_model {

int connect(Host& host, Qp& qp, const Peer& peer, const ConnectOptions& options) {
  const bool reliable = qp.is(IBV_QPT_RC);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = options.access;
  if (const int error = host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    return error;
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = static_cast<ibv_mtu>(std::countr_zero(options.mtu) - 7);
  a.dest_qp_num = peer.qpn;
  a.rq_psn = peer.psn;
  a.max_dest_rd_atomic = options.rd_atomic;
  a.min_rnr_timer = options.min_rnr_timer;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.traffic_class = options.traffic_class;
  std::copy(peer.address.begin(), peer.address.end(), a.ah_attr.grh.dgid.raw);
  const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (const int error =
          host.modify_qp(qp, a, to_rtr | (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
    return error;
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = options.psn;
  a.timeout = options.timeout;
  a.retry_cnt = options.retry_cnt;
  a.rnr_retry = options.rnr_retry;
  a.max_rd_atomic = options.rd_atomic;
  const int to_rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? to_rts : 0));
}

int start_datagrams(Host& host, Qp& qp, std::uint32_t qkey, std::uint32_t psn) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qkey = qkey;
  if (const int error = host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
    return error;
  a.qp_state = IBV_QPS_RTR;
  if (const int error = host.modify_qp(qp, a, IBV_QP_STATE)) return error;
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = psn;
  return host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

}  // namespace rocebox::nic_model
