// SPDX-License-Identifier: BSD-3-Clause
// ibv_modify_qp: the states of a queue pair, and what each transition must and may be given (IB specification, volume
// 1, 10.3.1, 11.2.5.2).
#include <cerrno>

#include "nic_model/host/host.h"

namespace rocebox::nic_model {
namespace {

struct Masks {
  int rc, uc, ud;
  int of(const Qp& qp) const { return qp.is(IBV_QPT_RC) ? rc : qp.is(IBV_QPT_UC) ? uc : ud; }
};
struct Transition {
  ibv_qp_state from, to;
  Masks required, optional;
};

constexpr int kInitConnected = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kInitDatagram = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kRtrUc = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRtrRc = kRtrUc | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsRc = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kOnUc = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int kOnRc = kOnUc | IBV_QP_MIN_RNR_TIMER, kOnUd = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr int kDrainedUc = IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
constexpr int kDrainedRc = kDrainedUc | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kNotify = IBV_QP_EN_SQD_ASYNC_NOTIFY;
// As Linux's ib_modify_qp_is_ok() has them, but for alternate paths, which it refuses for RoCE later, and for rate
// limits, which it has for raw packets alone: here connected ones have them.
constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, {kInitConnected, kInitConnected, kInitDatagram}, {}},
    {IBV_QPS_INIT, IBV_QPS_INIT, {}, {kInitConnected, kInitConnected, kInitDatagram}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {kRtrRc, kRtrUc, 0},
     {IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
      IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    {IBV_QPS_RTR, IBV_QPS_RTS, {kRtsRc, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN}, {kOnRc, kOnUc, kOnUd}},
    {IBV_QPS_RTS, IBV_QPS_RTS, {}, {kOnRc | IBV_QP_RATE_LIMIT, kOnUc | IBV_QP_RATE_LIMIT, kOnUd}},
    {IBV_QPS_RTS, IBV_QPS_SQD, {}, {kNotify, kNotify, kNotify}},
    {IBV_QPS_SQD, IBV_QPS_RTS, {}, {kOnRc, kOnUc, kOnUd}},
    {IBV_QPS_SQD, IBV_QPS_SQD, {}, {kDrainedRc, kDrainedUc, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    {IBV_QPS_SQE, IBV_QPS_RTS, {}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, kOnUd}},
};

bool allowed(const Qp& qp, ibv_qp_state to, int given) {
  const ibv_qp_state from = qp.attributes.state;
  if (to == IBV_QPS_RESET) return given == 0;
  if (to == IBV_QPS_ERR) return given == 0 && from != IBV_QPS_RESET;
  for (const Transition& one : kTransitions) {
    if (one.from != from || one.to != to) continue;
    const int required = one.required.of(qp);
    return (given & required) == required && (given & ~(required | one.optional.of(qp))) == 0;
  }
  return false;
}

roce::IpAddress destination_of(const ibv_qp_attr& a) {
  roce::IpAddress address;
  std::copy_n(a.ah_attr.grh.dgid.raw, address.size(), address.begin());
  return address;
}

bool in_range(const ibv_qp_attr& a, int mask, const NicConfig& config) {
  if ((mask & IBV_QP_PATH_MTU) &&
      (a.path_mtu < IBV_MTU_256 || a.path_mtu > IBV_MTU_4096 || 128u << a.path_mtu > config.path_mtu_max()))
    return false;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a.max_rd_atomic > kRdAtomicMax) return false;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a.max_dest_rd_atomic > kRdAtomicMax) return false;
  if ((mask & IBV_QP_RETRY_CNT) && a.retry_cnt > 7) return false;
  if ((mask & IBV_QP_RNR_RETRY) && a.rnr_retry > 7) return false;
  if ((mask & IBV_QP_TIMEOUT) && a.timeout > 31) return false;
  if ((mask & IBV_QP_MIN_RNR_TIMER) && a.min_rnr_timer > 31) return false;
  // RoCE has no LIDs.
  if ((mask & IBV_QP_AV) && (!a.ah_attr.is_global || !config.has_source_for(destination_of(a)))) return false;
  return !((mask & IBV_QP_PKEY_INDEX) && a.pkey_index != 0);
}

void take(QpAttributes& to, const ibv_qp_attr& a, int mask) {
  if (mask & IBV_QP_ACCESS_FLAGS) to.access = a.qp_access_flags;
  if (mask & IBV_QP_QKEY) to.qkey = a.qkey;
  if (mask & IBV_QP_PATH_MTU) to.path_mtu = 128u << a.path_mtu;
  if (mask & IBV_QP_DEST_QPN) to.destination_qp = a.dest_qp_num & 0xFFFFFF;
  if (mask & IBV_QP_RQ_PSN) to.receive_psn = a.rq_psn & 0xFFFFFF;
  if (mask & IBV_QP_SQ_PSN) to.send_psn = a.sq_psn & 0xFFFFFF;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = a.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = a.min_rnr_timer;
  if (mask & IBV_QP_TIMEOUT) to.timeout = a.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.retry_cnt = a.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = a.rnr_retry;
  if (mask & IBV_QP_RATE_LIMIT) to.rate_limit = 1000.0 * a.rate_limit;
  if (!(mask & IBV_QP_AV)) return;
  to.remote = destination_of(a);
  to.traffic_class = a.ah_attr.grh.traffic_class;
  to.hop_limit = a.ah_attr.grh.hop_limit ? a.ah_attr.grh.hop_limit : 64;
}

}  // namespace

int Host::modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state before = qp.attributes.state;
  const ibv_qp_state to = mask & IBV_QP_STATE ? attributes.qp_state : before;
  const int given = mask & ~IBV_QP_STATE;
  if ((mask & IBV_QP_CUR_STATE) && attributes.cur_qp_state != before) return EINVAL;
  if (!allowed(qp, to, given) || !in_range(attributes, mask, core_.config)) return EINVAL;
  take(qp.attributes, attributes, mask);
  if (mask & IBV_QP_AV) {
    qp.attributes.udp_source_port = core_.udp_source_port(qp.number(), qp.attributes.destination_qp);
    if (before == IBV_QPS_SQD) leave_lists(qp);
    resolve_(*context_, qp);
  }
  if (to == IBV_QPS_ERR) return core_.fail(*context_, qp), 0;
  if (to == IBV_QPS_RESET) return reset(qp), 0;
  qp.attributes.state = to;
  if (to == IBV_QPS_SQD) qp.responder.keep_resources();
  if (to == IBV_QPS_SQD && before == IBV_QPS_RTS)
    qp.requester.drain((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attributes.en_sqd_async_notify);
  if (before == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    if (qp.is(IBV_QPT_UD)) qp.attributes.path_mtu = core_.config.path_mtu_max();
    qp.has_heard = false;
    qp.responder.start();
  }
  if (before == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    qp.requester.start();
    qp.rate = 0;
    if (core_.observer) {
      Controls controls(*context_, core_);
      core_.observer->on_queue_pair(controls, qp.number());
    }
    qp.last_cnp = now() - kSecond;
  }
  if (to == IBV_QPS_RTS) {
    qp.requester.fetch();
    core_.wake(*context_, qp);
  }
  return 0;
}

int Host::modify_qp_in(Context& context, Qp& qp, const ibv_qp_attr& attributes, int mask) {
  Context* const before = std::exchange(context_, &context);
  const int error = modify_qp(qp, attributes, mask);
  context_ = before;
  return error;
}

int Host::modify_udp_source_port(Qp& qp, std::uint16_t port) {
  if (port == 0 || !qp.can_send() || qp.is(IBV_QPT_UD)) return EINVAL;
  qp.attributes.udp_source_port = port;
  return 0;
}

int Host::modify_loss_recovery(Qp& qp, const LossRecovery& recovery) {
  const ibv_qp_state state = qp.attributes.state;
  if (!qp.is(IBV_QPT_RC) || (state != IBV_QPS_RESET && state != IBV_QPS_INIT)) return EINVAL;
  if (!recovery.is_valid() || (recovery.places_directly() && core_.config.credits)) return EINVAL;
  qp.attributes.loss_recovery = recovery;
  return 0;
}

// It waits in one of them at most: in that of the address that it had when it began to wait.
void Host::leave_lists(Qp& qp) {
  core_.loopback.remove(qp);
  core_.transmitter.remove(qp);
}

void Host::reset(Qp& qp) {
  leave_lists(qp);
  core_.forget_overrun(qp);
  if (core_.observer) core_.observer->on_queue_pair_gone(qp.number());
  context_->cancel(qp.retransmit_timer);
  context_->cancel(qp.rnr_timer);
  context_->cancel(qp.pace_timer);
  context_->cancel(qp.response_timer);
  qp.connection = 0;
  qp.attributes = core_.new_attributes();
  for (CompletionQueue* cq : {qp.init.send_cq, qp.init.receive_cq})
    if (!cq->is_devices())
      cq->remove(qp.number(), [&](const CqeWords& words) {
        // What others share has room again.
        if (qp.init.shared_receive_queue && !words.sends()) qp.init.shared_receive_queue->retire(words.wqe_counter);
      });
  core_.memory.unbind_all(qp.accessor());
  qp.send_queue.clear();
  qp.own_receive_queue.clear();
  qp.requester.reset();
  qp.responder.reset();
  qp.path_known = qp.loops_back = false;
  qp.peer_ipv4 = 0;
  qp.rate = 0;
  qp.response_rate = 0;
  qp.rtt_sent.fill(kNever);
  qp.peer_message_seen = 0;
}

}  // namespace rocebox::nic_model
