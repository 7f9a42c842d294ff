// SPDX-License-Identifier: BSD-3-Clause
// What comes back to a requester, and what does not.
#include <algorithm>

#include "nic_model/core.h"
#include "nic_model/transport/credits.h"
#include "nic_model/transport/requester.h"

namespace rocebox::nic_model {
namespace {

// Whether a response to a READ or atomic, where it has an AETH, says in that what it is.
bool says_ack(Packet packet) {
  const roce::Aeth* const aeth = roce::aeth(packet);
  return !aeth || roce::aeth_kind(aeth->syndrome) == roce::AethKind::kAck;
}

}  // namespace

// Responses come in order. An ACK beyond a READ's or atomic's own response says that this was lost (an implied NAK,
// 9.7.5.2.1): what can be acknowledged ends before it.
std::uint32_t Requester::acknowledge_to(Context& context, std::uint32_t end) {
  if (reads_count_ == 0) return end;
  const std::uint32_t index = reads_[reads_first_];
  const std::uint32_t pending = pending_psn(index);
  if (roce::psn_distance(end, pending) <= 0) return end;
  acknowledged(context, pending);
  // Once for each PSN, as responders say a NAK once: what was sent before this was seen is still on its way.
  if (pending == implied_nak_psn_) return pending;
  implied_nak_psn_ = pending;
  core_.count.implied_nak_seq_err.add();
  if (retry(context)) go_back(context, pending);
  return pending;
}

void Requester::acknowledged(Context& context, std::uint32_t end) {
  if (roce::psn_distance(end, una_) <= 0) return;
  if (resends_) [[unlikely]]
    forget_came(end);
  una_ = end;
  went_back_ = false;
  retries_ = qp_.attributes.retry_cnt;
  rnr_retries_ = qp_.attributes.rnr_retry;
  // What was to be sent again may have arrived meanwhile.
  if (current_ != end_ && roce::psn_distance(una_, next_psn()) > 0) {
    seek(una_);
    ask_anew(una_);
  }
  if (expects_response() && !has_to_resend())
    arm_retransmission(context);
  else
    deadline_ = kNever;
  complete_done(context);
}

// Of recoveries: all before `end` is acknowledged.
void Requester::forget_came(std::uint32_t end) {
  for (std::uint32_t psn = una_; came_.window() && psn != end; psn = roce::psn_add(psn, 1)) came_.remove(psn);
  if (recovers_ && roce::psn_distance(end, recovery_end_) >= 0) recovers_ = false;
}

void Requester::complete_done(Context& context) {
  while (oldest_ != current_) {
    const SendWork& work = at(oldest_);
    if (roce::psn_distance(roce::psn_add(work.first_psn, work.packets), una_) > 0) break;
    if ((work.is_read_or_atomic() || work.is_local()) && !work.done) break;
    core_.complete_send(context, qp_, work, IBV_WC_SUCCESS);
    oldest_++;
  }
  if (qp_.send_queue.has_posted()) fetch();
  if (tells_drained_) [[unlikely]]
    tell_drained();
}

// IB specification, 10.3.1.5: all that was begun is complete. Where each packet is acknowledged before the next one
// leaves nothing is outstanding in the midst of a message.
void Requester::tell_drained() {
  if (!tells_drained_ || qp_.attributes.state != IBV_QPS_SQD || packet_ > 0 || has_outstanding()) return;
  tells_drained_ = false;
  core_.tell({IBV_EVENT_SQ_DRAINED, qp_.number()});
}

// Work requests lie in order of their PSNs.
std::uint32_t Requester::index_of(std::uint32_t psn) const {
  std::uint32_t low = 0, high = end_ - oldest_;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    const SendWork& work = at(oldest_ + middle);
    if (roce::psn_distance(roce::psn_add(work.first_psn, work.packets), psn) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  return oldest_ + low;
}

void Requester::seek(std::uint32_t psn) {
  current_ = index_of(psn);
  // Those without a PSN that still wait behind what was acknowledged have their turn.
  while (current_ != oldest_ && at(current_ - 1).is_local() && !at(current_ - 1).done) current_--;
  packet_ =
      current_ == end_ ? 0 : static_cast<std::uint32_t>(std::max(0, roce::psn_distance(psn, at(current_).first_psn)));
  if (current_ != end_ && at(current_).is_read_or_atomic() && packet_ > 0) packet_ = at(current_).responded;
  // READs and atomics from here on are asked for again.
  reads_sent_ = 0;
  while (reads_sent_ < reads_count_ &&
         static_cast<std::int32_t>(reads_[(reads_first_ + reads_sent_) % kRdAtomicMax] - current_) < 0)
    reads_sent_++;
}

void Requester::go_back(Context& context, std::uint32_t psn) {
  forget_recovery();
  seek(psn);
  ask_anew(psn);
  core_.wake(context, qp_);
}

// What was asked of `psn` and all behind it is asked again when it leaves again, and has until then no deadline.
void Requester::ask_anew(std::uint32_t psn) {
  ack_asked_ = roce::psn_add(psn, -static_cast<std::int64_t>(core_.config.ack_every));
  deadline_ = kNever;
}

// False: the last try was the last one, and the queue pair has failed.
bool Requester::retry(Context& context) {
  if (retries_ == 0) {
    core_.count.retries_exceeded.add();
    fail(context, index_of(una_), IBV_WC_RETRY_EXC_ERR);
    return false;
  }
  retries_--;
  return true;
}

void Requester::give_up(Context& context) {
  if (oldest_ == end_ || !qp_.can_send()) return;
  core_.count.retries_exceeded.add();
  fail(context, oldest_, IBV_WC_RETRY_EXC_ERR);
}

// 9.7.7.2: SENDs and WRITEs with immediate take a receive request each.
bool Requester::is_without_credit(const SendWork& work) const {
  if (!counts_credits_) return false;
  const bool takes_one = work.opcode == MLX5_OPCODE_SEND || work.opcode == MLX5_OPCODE_SEND_IMM ||
                         work.opcode == MLX5_OPCODE_SEND_INVAL || work.opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
  return takes_one && roce::psn_distance(work.message, credit_limit_) > 0;
}

// Of an AETH that acknowledges. A receive request that was there stays: a lower limit than before is of an earlier
// AETH, or of a number without a code.
void Requester::take_credits(const roce::Aeth& aeth) {
  if (!core_.config.credits) return;
  const unsigned code = roce::aeth_value(aeth.syndrome);
  const bool counted = std::exchange(counts_credits_, code != kCreditsUnlimited);
  if (!counts_credits_) return;
  const std::uint32_t limit = roce::psn_add(static_cast<std::uint32_t>(aeth.msn), kCreditsOfCode[code]);
  if (!counted || roce::psn_distance(limit, credit_limit_) > 0) credit_limit_ = limit;
}

Counter& Requester::on_acknowledge(Context& context, Packet packet) {
  const roce::Aeth& aeth = *roce::aeth(packet);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const roce::AethKind kind = roce::aeth_kind(aeth.syndrome);
  const unsigned value = roce::aeth_value(aeth.syndrome);
  if (!qp_.can_send()) return core_.count.drop_qp_state;
  if (roce::psn_distance(psn, una_) < 0 || roce::psn_distance(psn, sent_end_) >= 0) {
    return core_.count.ghost_acks;
  }
  const auto tell = [&](QpEventKind what) {
    if (!core_.is_observed(what)) [[likely]]
      return;
    QpEvent event;
    event.kind = what;
    event.psn = psn;
    event.syndrome = aeth.syndrome;
    event.places_directly = places_directly();
    core_.observe(context, qp_, event);
  };
  if (kind == roce::AethKind::kAck) {
    tell(QpEventKind::kAck);
    take_credits(aeth);
    const std::uint32_t end = acknowledge_to(context, roce::psn_add(psn, 1));
    if (qp_.can_send()) acknowledged(context, end);
    core_.wake(context, qp_);
    return core_.count.delivered;
  }
  count_nak(kind, static_cast<roce::NakCode>(value));
  const std::uint32_t end = acknowledge_to(context, psn);
  if (end != psn || !qp_.can_send()) return core_.count.delivered;
  acknowledged(context, end);
  tell(QpEventKind::kNack);
  if (kind == roce::AethKind::kRnrNak)
    not_ready(context, psn, value);
  else if (kind == roce::AethKind::kNak)
    on_nak(context, psn, static_cast<roce::NakCode>(value), static_cast<std::uint32_t>(aeth.msn));
  else
    fail(context, index_of(psn), IBV_WC_BAD_RESP_ERR);
  return core_.count.delivered;
}

// Each that comes, also where the response to an earlier READ or atomic is missing, which is asked for first.
void Requester::count_nak(roce::AethKind kind, roce::NakCode code) {
  if (kind == roce::AethKind::kRnrNak) return core_.count.rnr_nak_retry_err.add();
  if (kind != roce::AethKind::kNak) return;
  switch (code) {
    case roce::NakCode::kPsnSequenceError:
      return core_.count.packet_seq_err.add();
    case roce::NakCode::kInvalidRequest:
    case roce::NakCode::kInvalidRdRequest:
      return core_.count.req_remote_invalid_request.add();
    case roce::NakCode::kRemoteAccessError:
      return core_.count.req_remote_access_errors.add();
    case roce::NakCode::kRemoteOperationalError:
      return core_.count.req_remote_operation_errors.add();
  }
}

void Requester::on_nak(Context& context, std::uint32_t psn, roce::NakCode code, std::uint32_t msn) {
  switch (code) {
    case roce::NakCode::kPsnSequenceError:
      if (places_directly()) return recover(context, psn, msn);
      if (retry(context)) go_back(context, psn);
      return;
    case roce::NakCode::kInvalidRequest:
    case roce::NakCode::kInvalidRdRequest:
      return fail(context, index_of(psn), IBV_WC_REM_INV_REQ_ERR);
    case roce::NakCode::kRemoteAccessError:
      return fail(context, index_of(psn), IBV_WC_REM_ACCESS_ERR);
    case roce::NakCode::kRemoteOperationalError:
      return fail(context, index_of(psn), IBV_WC_REM_OP_ERR);
  }
  fail(context, index_of(psn), IBV_WC_BAD_RESP_ERR);  // a code that is reserved
}

void Requester::not_ready(Context& context, std::uint32_t psn, unsigned timer_code) {
  if (rnr_retries_ == 0) {
    core_.count.retries_exceeded.add();
    return fail(context, index_of(psn), IBV_WC_RNR_RETRY_EXC_ERR);
  }
  if (rnr_retries_ != 7) rnr_retries_--;  // 7 is for ever
  forget_recovery();
  seek(psn);
  ask_anew(psn);
  rnr_until_ = context.now() + roce::rnr_timer_nanos(timer_code);
  context.arm(qp_.rnr_timer, rnr_until_);
}

void Requester::on_rnr_timer(Context& context) {
  if (qp_.can_send()) core_.wake(context, qp_);
}

void Requester::on_retransmit_timer(Context& context) {
  if (deadline_ == kNever || !qp_.can_send() || !has_outstanding()) return;
  if (context.now() < deadline_) return context.arm(qp_.retransmit_timer, deadline_);
  core_.count.local_ack_timeout_err.add();
  if (retry(context)) go_back(context, una_);
}

// All of the oldest one's response has come.
void Requester::end_read(SendWork& work) {
  work.done = true;
  reads_first_ = (reads_first_ + 1) % kRdAtomicMax;
  reads_count_--;
  if (reads_sent_ > 0) reads_sent_--;
}

Counter& Requester::on_read_response(Context& context, Packet packet) {
  if (reads_count_ == 0 || !qp_.can_send()) return core_.count.drop_unexpected_response;
  const std::uint32_t index = reads_[reads_first_];
  SendWork& work = at(index);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const std::uint32_t expected = pending_psn(index);
  const std::int32_t distance = roce::psn_distance(psn, expected);
  if (distance < 0) return core_.count.drop_duplicate;
  if (distance > 0 || !work.is_read()) {
    if (roce::psn_distance(psn, sent_end_) >= 0) return core_.count.ghost_acks;
    acknowledge_to(context, roce::psn_add(psn, 1));
    return core_.count.delivered;
  }
  const std::uint32_t mtu = qp_.attributes.path_mtu;
  const std::uint64_t offset = std::uint64_t{work.responded} * mtu;
  const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, work.bytes - offset));
  const bool is_last = work.responded + 1 == work.packets;
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  // What is asked for again begins anew, in the midst of it, too.
  const bool begins = work.responded > 0 || info.has(roce::kStartsMessage);
  if (packet.meta().payload_bytes != wanted || info.has(roce::kEndsMessage) != is_last || !begins ||
      !says_ack(packet)) {
    fail(context, index, IBV_WC_BAD_RESP_ERR);
    return core_.count.drop_malformed;
  }
  if (!may_go_on(context, index)) return core_.count.drop_qp_state;
  if (const roce::Aeth* aeth = roce::aeth(packet)) take_credits(*aeth);
  qp_.send_queue.scatter(work, core_.memory, offset, wanted,
                         Core::has_payload(packet) ? Headers::payload(packet) : nullptr);
  work.responded++;
  if (is_last) {
    end_read(work);
  }
  acknowledged(context, roce::psn_add(psn, 1));
  core_.wake(context, qp_);
  return core_.count.delivered;
}

Counter& Requester::on_atomic_response(Context& context, Packet packet) {
  if (reads_count_ == 0 || !qp_.can_send()) return core_.count.drop_unexpected_response;
  const std::uint32_t index = reads_[reads_first_];
  SendWork& work = at(index);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const std::int32_t distance = roce::psn_distance(psn, pending_psn(index));
  if (distance < 0) return core_.count.drop_duplicate;
  if (distance > 0 || !work.is_atomic()) {
    if (roce::psn_distance(psn, sent_end_) < 0) acknowledge_to(context, roce::psn_add(psn, 1));
    return core_.count.delivered;
  }
  if (!says_ack(packet)) {
    fail(context, index, IBV_WC_BAD_RESP_ERR);
    return core_.count.drop_malformed;
  }
  if (!may_go_on(context, index)) return core_.count.drop_qp_state;
  take_credits(*roce::aeth(packet));
  const std::uint64_t original =
      roce::atomic_ack_eth(packet)->original;  // big-endian on the wire, the host's order here
  qp_.send_queue.scatter(work, core_.memory, 0, 8, reinterpret_cast<const std::uint8_t*>(&original));
  work.responded = 1;
  end_read(work);
  acknowledged(context, roce::psn_add(psn, 1));
  core_.wake(context, qp_);
  return core_.count.delivered;
}

// Those before it are complete, or can no longer be known to be; it gets the reason, and all behind it are flushed.
void Requester::fail(Context& context, std::uint32_t index, ibv_wc_status status) {
  while (oldest_ != index && oldest_ != end_) core_.complete_send(context, qp_, at(oldest_++), IBV_WC_WR_FLUSH_ERR);
  if (oldest_ != end_) core_.complete_send(context, qp_, at(oldest_++), status);
  core_.fail_sending(context, qp_);
}

void Requester::flush(Context& context) {
  do {
    una_ = next_psn_;  // nothing is waited for any more
    while (oldest_ != end_) core_.complete_send(context, qp_, at(oldest_++), IBV_WC_WR_FLUSH_ERR);
  } while (fetch());
  current_ = end_;
  packet_ = 0;
  reads_count_ = reads_sent_ = 0;
  deadline_ = kNever;
  una_ = sent_end_ = next_psn_;
}

}  // namespace rocebox::nic_model
