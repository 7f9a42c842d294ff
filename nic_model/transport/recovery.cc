// SPDX-License-Identifier: BSD-3-Clause
// What a requester sends again where receivers place packets as they come.
#include "nic_model/core.h"
#include "nic_model/transport/requester.h"

namespace rocebox::nic_model {

void Requester::forget_recovery() {
  again_.clear();
  if (!came_.empty()) came_.clear();  // bits beyond the end of a recovery would name later PSNs
  recovers_ = resends_ = went_back_ = false;
}

// As go-back-N, once for each PSN that is asked for: what was sent before this was seen is still on its way, and a NAK
// for each of that comes.
void Requester::go_back_once(Context& context, std::uint32_t psn) {
  if (went_back_ || psn == next_psn()) return;
  go_back(context, psn);
  went_back_ = true;
}

// A NAK: all before `psn` has come, and `came`, which only `selective` says and which lies ahead of `psn`.
void Requester::recover(Context& context, std::uint32_t psn, std::uint32_t came) {
  const Recovery how = qp_.attributes.loss_recovery.how;
  if (how == Recovery::kTimeoutOnly) return;
  // Behind what is no WRITE others of its kind were dropped, and the receiver asks for the next one only when something
  // comes behind that. With `came` == `psn` it has dropped a WRITE.
  if (!at(index_of(psn)).is_write() || (how == Recovery::kSelective && came == psn)) return go_back_once(context, psn);
  if (how == Recovery::kRnicSr) {
    // Themis, 2.3: the packet that is expected, and the one that was just sent.
    std::uint32_t last = roce::psn_add(sent_end_, -1);
    const SendWork& newest = at(index_of(last));
    if (newest.is_read()) last = roce::psn_add(newest.first_psn, newest.responded);
    if (again_.size() + 2 <= std::min(2 * qp_.attributes.loss_recovery.window, kResendsMax)) {
      again_.push(psn);
      if (last != psn) again_.push(last);
      resends_ = true;
    }
  } else if (how == Recovery::kSelective && roce::psn_in_window(came, roce::psn_add(psn, 1), came_.window() - 1) &&
             roce::psn_distance(came, sent_end_) < 0) {
    // What is no WRITE was dropped (placement.cc), and is missing as well.
    const bool was_kept = at(index_of(came)).is_write();
    const std::uint32_t missing_end = was_kept ? came : roce::psn_add(came, 1);
    if (was_kept) came_.add(came);
    if (!recovers_) {
      recovers_ = resends_ = true;
      recovery_end_ = sent_end_;
      hole_ = una_;
      missing_end_ = missing_end;
    }
    if (roce::psn_distance(missing_end, missing_end_) > 0) missing_end_ = missing_end;
  }
  if (has_to_resend()) deadline_ = kNever;  // until it leaves
  core_.wake(context, qp_);
}

bool Requester::has_again() const {
  if (!again_.empty()) return true;
  if (!recovers_) return false;
  const std::uint32_t from = roce::psn_distance(hole_, una_) < 0 ? una_ : hole_;
  return roce::psn_distance(from, missing_end_) < 0;
}

// The next PSN that is to be sent again; una_ - 1: there is none.
std::uint32_t Requester::next_hole() {
  while (!again_.empty()) {
    const std::uint32_t psn = again_.pop();
    if (roce::psn_distance(psn, una_) >= 0) return psn;
  }
  if (recovers_ && roce::psn_distance(hole_, una_) < 0) hole_ = una_;
  while (recovers_ && roce::psn_distance(hole_, missing_end_) < 0) {
    const std::uint32_t psn = hole_;
    const SendWork& work = at(index_of(psn));
    // One packet asks for all of a READ.
    hole_ = work.is_read() ? roce::psn_add(work.first_psn, work.packets) : roce::psn_add(psn, 1);
    if (!came_.has(psn)) return psn;
  }
  return roce::psn_add(una_, -1);
}

PacketPtr Requester::resend(Context& context) {
  const std::uint32_t psn = next_hole();
  if (roce::psn_distance(psn, una_) < 0) {
    if (deadline_ == kNever && has_outstanding()) arm_retransmission(context);
    return {};
  }
  const std::uint32_t index = index_of(psn);
  // What go-back-N after a timeout has not sent yet comes in its turn.
  if (index == end_ || roce::psn_distance(psn, next_psn()) >= 0) return {};
  if (roce::psn_distance(psn, ack_asked_) > 0) ack_asked_ = psn;
  arm_retransmission(context);
  if (!may_go_on(context, index)) return {};
  const SendWork& work = at(index);
  PacketPtr packet =
      send_data(context, work, static_cast<std::uint32_t>(roce::psn_distance(psn, work.first_psn)), true);
  if (!packet) return {};
  if (is_paced()) pace(context, *packet);
  if (has_to_resend()) deadline_ = kNever;  // until the next leaves
  core_.count.retransmitted_packets.add();
  if (const Nanos stall = qp_.attributes.loss_recovery.retransmit_stall) {
    rnr_until_ = context.now() + stall;
    context.arm(qp_.rnr_timer, rnr_until_);
  }
  return packet;
}

}  // namespace rocebox::nic_model
