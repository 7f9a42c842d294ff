// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/core.h"

#include "runtime/kernel/splitmix64.h"
#include "runtime/roce/icrc.h"

namespace rocebox::nic_model {

Qp::Qp(Core& core, std::uint32_t number, const QpInit& made, const ibv_qp_cap& granted)
    : number_(number),
      retransmit_timer(timer_tag(TimerOf::kRetransmission, number)),
      init(made),
      send_queue(made.device_memory ? SendQueue(number, *made.device_memory, made.type == IBV_QPT_UD)
                                    : SendQueue(number, granted.max_send_wr, granted.max_send_sge,
                                                granted.max_inline_data, made.type == IBV_QPT_UD)),
      requester(core, *this),
      responder(core, *this),
      own_receive_queue(made.device_memory
                            ? ReceiveQueue(*made.device_memory)
                            : ReceiveQueue(ReceiveQueue::Kind::kOwn, 0, granted.max_recv_wr, granted.max_recv_sge)),
      rnr_timer(timer_tag(TimerOf::kRnr, number)),
      pace_timer(timer_tag(TimerOf::kPace, number)),
      response_timer(timer_tag(TimerOf::kResponsePace, number)) {
  attributes = core.new_attributes();
}

QpAttributes Core::new_attributes() const {
  QpAttributes all;
  all.loss_recovery = config.loss_recovery();
  return all;
}

void Core::wake_idle(Context& context, Qp& qp) {
  if (!qp.responder.wants_to_send() && !qp.requester.wants_to_send(context.now())) return;
  if (qp.loops_back) [[unlikely]]
    loopback.add(context, qp);
  else
    transmitter.add(context, qp);
}

mlx5_cqe64* Core::next_cqe(CompletionQueue& cq) {
  if (cq.overrun()) return nullptr;
  mlx5_cqe64* cqe = cq.next();
  if (!cqe) {
    count.cq_overruns.add();
    tell({IBV_EVENT_CQ_ERR, cq.number()});
  }
  return cqe;
}

mlx5_cqe64* Core::next_cqe(CompletionQueue& cq, Qp& qp) {
  mlx5_cqe64* cqe = next_cqe(cq);
  if (!cqe && qp.attributes.state != IBV_QPS_ERR && (overrun_.empty() || overrun_.back() != qp.number()))
    overrun_.push_back(qp.number());
  return cqe;
}

void Core::fail_those(Context& context) {
  for (const std::uint32_t number : std::exchange(overrun_, {})) {
    Qp* qp = find(number);
    if (!qp || qp->attributes.state == IBV_QPS_ERR || qp->attributes.state == IBV_QPS_RESET) continue;
    tell({IBV_EVENT_QP_FATAL, number});
    fail(context, *qp);
  }
}

void Core::publish(Context& context, CompletionQueue& cq, mlx5_cqe64* cqe, std::uint8_t opcode, bool solicited) {
  count.completions.add();
  if (cq.publish(cqe, opcode, solicited)) context.arm(cq.timer, context.now() + cq.period());
  if (completed.empty() || completed.back() != &cq) completed.push_back(&cq);
}

void Core::complete_send(Context& context, Qp& qp, const SendWork& work, ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS && !work.has(MLX5_WQE_CTRL_CQ_UPDATE) && !qp.init.signal_all) return;
  CompletionQueue& cq = *qp.init.send_cq;
  mlx5_cqe64* cqe = next_cqe(cq, qp);
  if (!cqe) return;
  if (status != IBV_WC_SUCCESS) {
    (status == IBV_WC_WR_FLUSH_ERR ? count.req_cqe_flush_error : count.req_cqe_error).add();
    auto* error = reinterpret_cast<ErrorCqe*>(cqe);
    error->syndrome = syndrome_of(status);
    error->opcode_qpn = htobe32(std::uint32_t{work.opcode} << 24 | qp.number());
    error->wqe_counter = htobe16(work.wqe_counter);
    return publish(context, cq, cqe, MLX5_CQE_REQ_ERR, true);
  }
  cqe->sop_drop_qpn = htobe32(std::uint32_t{work.opcode} << 24 | qp.number());
  cqe->wqe_counter = htobe16(work.wqe_counter);
  cqe->byte_cnt = htobe32(work.bytes);
  cqe->timestamp = htobe64(static_cast<std::uint64_t>(context.now()));
  publish(context, cq, cqe, MLX5_CQE_REQ, false);
}

void Core::complete_receive(Context& context, Qp& qp, ReceiveWork& work, const Received& what, ibv_wc_status status) {
  work.taken = false;
  CompletionQueue& cq = *qp.init.receive_cq;
  mlx5_cqe64* cqe = next_cqe(cq, qp);
  if (!cqe) return;
  const bool is_shared = qp.receive_queue().kind() == ReceiveQueue::Kind::kShared;
  const __be32 srqn = htobe32(is_shared ? qp.receive_queue().number() : 0);
  if (status != IBV_WC_SUCCESS) {
    (status == IBV_WC_WR_FLUSH_ERR ? count.resp_cqe_flush_error : count.resp_cqe_error).add();
    auto* error = reinterpret_cast<ErrorCqe*>(cqe);
    error->srqn = srqn;
    error->syndrome = syndrome_of(status);
    error->opcode_qpn = htobe32(qp.number());
    error->wqe_counter = htobe16(work.wqe_counter);
    return publish(context, cq, cqe, MLX5_CQE_RESP_ERR, true);
  }
  cqe->srqn_uidx = srqn;
  cqe->imm_inval_pkey = what.immediate;
  cqe->byte_cnt = htobe32(what.bytes);
  cqe->flags_rqpn = htobe32((what.has_grh ? 1u << 28 : 0) | what.source_qp);
  cqe->sop_drop_qpn = htobe32(qp.number());
  cqe->wqe_counter = htobe16(work.wqe_counter);
  cqe->timestamp = htobe64(static_cast<std::uint64_t>(context.now()));
  publish(context, cq, cqe, what.cqe_opcode, what.solicited);
}

void Core::complete_nothing(Context& context, CompletionQueue& cq) {
  if (mlx5_cqe64* cqe = next_cqe(cq)) publish(context, cq, cqe, MLX5_CQE_REQ, false);
}

void Core::fail(Context& context, Qp& qp) {
  if (qp.attributes.state == IBV_QPS_ERR) return;
  qp.attributes.state = IBV_QPS_ERR;
  context.cancel(qp.retransmit_timer);
  context.cancel(qp.rnr_timer);
  context.cancel(qp.pace_timer);
  context.cancel(qp.response_timer);
  qp.requester.flush(context);
  qp.responder.flush(context);
  if (qp.init.shared_receive_queue) tell({IBV_EVENT_QP_LAST_WQE_REACHED, qp.number()});
  wake(context, qp);
}

void Core::fail_sending(Context& context, Qp& qp) {
  if (qp.is(IBV_QPT_RC)) return fail(context, qp);
  qp.attributes.state = IBV_QPS_SQE;
  context.cancel(qp.pace_timer);
  qp.requester.flush(context);
  wake(context, qp);
}

std::uint16_t Core::udp_source_port(std::uint32_t qpn, std::uint32_t destination_qp) const {
  std::uint64_t value = 0;
  if (config.entropy == Entropy::kDrawn) {
    value = splitmix64::of(entropy_seed ^ (std::uint64_t{qpn} << 32 | destination_qp));
  } else {  // a flow label of 20 bits, folded
    value = std::uint64_t{qpn} * destination_qp;
    value ^= value >> 20;
    value ^= value >> 40;
    value ^= (value & 0xFC000) >> 14;
  }
  return static_cast<std::uint16_t>(0xC000 | (value & 0x3FFF));
}

PacketPtr Core::make(Context& context, const Headers& headers, const PacketFields& fields) {
  const Headers::Length length = headers.length(fields.opcode, fields.payload_bytes);
  const bool headers_alone = config.header_only && fields.payload_bytes > Headers::kDigestBytes;
  PacketPtr packet = context.allocate(headers_alone ? length.head + Headers::kDigestBytes : length.frame);
  if (packet) [[likely]]
    headers.write(*packet, fields, length);
  else
    count.tx_no_packet.add();
  return packet;
}

void Core::tell_observer(Context& context, const Qp& qp, QpEvent& event) {
  event.qpn = qp.number();
  Controls controls(context, *this);
  observer->on_event(controls, event);
}

void Core::finish(Packet packet) {
  if (!config.icrc) return;
  if (roce::icrc_held(packet))
    roce::icrc_store(packet);
  else
    Headers::store_digest(packet);
}

}  // namespace rocebox::nic_model
