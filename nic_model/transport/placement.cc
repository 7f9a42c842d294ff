// SPDX-License-Identifier: BSD-3-Clause
// Direct data placement: a WRITE's packets are placed as they come; what completes a message waits for its turn.
#include "nic_model/core.h"
#include "nic_model/transport/responder.h"

namespace rocebox::nic_model {

// A gap. A NAK of `selective` names what showed it, `came`: a WRITE that is named was kept, of one that was not the NAK
// names the ePSN, and what is no WRITE never is, as its sender knows.
void Responder::nak_gap(Context& context, std::uint32_t came) {
  const Recovery how = qp_.attributes.loss_recovery.how;
  if (how == Recovery::kTimeoutOnly || (nak_sent_ && how != Recovery::kSelective)) return;
  const std::uint32_t msn = std::exchange(msn_, how == Recovery::kSelective ? came : msn_);
  nak_sent_ |= acknowledge(context, epsn_, 0x60 | static_cast<std::uint8_t>(roce::NakCode::kPsnSequenceError));
  msn_ = msn;
}

Counter& Responder::place_ahead(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const roce::Bth& bth = roce::bth(packet);
  const auto psn = static_cast<std::uint32_t>(bth.psn);
  const bool writes = info.has(roce::kIsWrite), is_whole = info.has(roce::kHasReth) && info.has(roce::kEndsMessage);
  const bool has_room = roce::psn_in_window(psn, epsn_, ahead_.window()), was_kept = has_room && ahead_.has(psn);
  if (!writes || !is_whole || !has_room) {
    nak_gap(context, writes && !was_kept ? epsn_ : psn);
    return core_.count.drop_out_of_sequence;
  }
  if (was_kept) {
    // Themis says a NACK for what is beyond the ePSN, IRN one for each packet out of order.
    if (qp_.attributes.loss_recovery.how == Recovery::kSelective || core_.config.nak_copies) nak_gap(context, psn);
    core_.count.duplicate_request.add();
    return core_.count.drop_duplicate;
  }
  const roce::Reth& reth = *roce::reth(packet);
  const std::uint32_t bytes = packet.meta().payload_bytes;
  const auto rkey = static_cast<std::uint32_t>(reth.rkey);
  const bool has_immediate = info.has(roce::kHasImmDt);
  // What is wrong with it is said when it is expected: it comes again.
  if (reth.dma_length > kMessageBytesMax || (has_immediate ? reth.dma_length < bytes : reth.dma_length != bytes) ||
      !(qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) ||
      (bytes && core_.memory.check(rkey, qp_.accessor(), reth.virtual_address, bytes, IBV_ACCESS_REMOTE_WRITE) !=
                    MemoryError::kNone)) {
    nak_gap(context, epsn_);
    return core_.count.drop_out_of_sequence;
  }
  if (bytes)
    core_.memory.write(rkey, reth.virtual_address, bytes,
                       Core::has_payload(packet) ? Headers::payload(packet) : nullptr);
  ahead_.add(psn);
  if (bth.ack_req() && (!ack_wanted_ || roce::psn_distance(psn, *ack_wanted_) > 0)) ack_wanted_ = psn;
  if (has_immediate) {
    Ahead one{psn,
              rkey,
              reth.virtual_address,
              {MLX5_CQE_RESP_WR_IMM, static_cast<std::uint32_t>(reth.dma_length), 0, bth.solicited_event()}};
    std::memcpy(&one.what.immediate, roce::immdt(packet), 4);
    const auto at = std::find_if(completions_ahead_.begin(), completions_ahead_.end(),
                                 [&](const Ahead& other) { return roce::psn_distance(other.psn, psn) > 0; });
    completions_ahead_.insert(at, one);
  }
  nak_gap(context, psn);
  return core_.count.delivered;
}

// The gap is closed, at least its first part: what has come ahead is executed now, in order.
void Responder::catch_up(Context& context) {
  // What came ahead is a message of its own: in the midst of another one it is out of order (9.7.4.1.2), and must not
  // take that one's receive request.
  if (message_ != Message::kNone) {
    refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  while (ahead_.has(epsn_) && qp_.can_receive()) {
    if (!completions_ahead_.empty() && completions_ahead_.front().psn == epsn_) {
      if (!take_receive(context)) {
        // It is asked for again, but its bytes are where they belong.
        is_placed_ = true;
        placed_ = completions_ahead_.front();
        ahead_.remove(epsn_);
        completions_ahead_.erase(completions_ahead_.begin());
        not_ready(context);
        return;
      }
      core_.complete_receive(context, qp_, work_, completions_ahead_.front().what, IBV_WC_SUCCESS);
      completions_ahead_.erase(completions_ahead_.begin());
    }
    core_.count.rx_write_requests.add();
    msn_ = (msn_ + 1) & roce::kPsnMask;
    ahead_.remove(epsn_);
    epsn_ = roce::psn_add(epsn_, 1);
  }
  if (!ack_wanted_ || !qp_.can_receive()) return;
  acknowledge(context, roce::psn_add(epsn_, -1), 0x1F);
  if (roce::psn_distance(*ack_wanted_, epsn_) < 0) ack_wanted_.reset();  // else another gap is before it
}

// Whether this is what has been placed already: only its receive request was missing.
bool Responder::was_placed(Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  return std::exchange(is_placed_, false) && info.has(roce::kIsWrite) && info.has(roce::kStartsMessage) &&
         info.has(roce::kEndsMessage) && info.has(roce::kHasImmDt) && rkey_ == placed_.rkey &&
         address_ == placed_.address && message_bytes_ == placed_.what.bytes;
}

// Whether any of the next PSNs has come ahead.
bool Responder::has_ahead(std::uint32_t psns) const {
  if (ahead_.empty()) return false;
  for (std::uint32_t i = 0; i < std::min(psns, ahead_.window()); i++)
    if (ahead_.has(roce::psn_add(epsn_, i))) return true;
  return false;
}

}  // namespace rocebox::nic_model
