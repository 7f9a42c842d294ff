// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/receive_sequence.h"

#include <algorithm>
#include <utility>

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

void ReceiveSequence::begin(std::uint32_t psn, bool responses) {
  begun_ = true;
  place_.expected = unannounced_psn_ = psn;
  place_.may_skip_psns = responses;
}

std::uint32_t ReceiveSequence::lost_before(Packet packet, std::uint32_t psn) const {
  const bool message_between = message_ended() || roce::opcode_info(packet).has(roce::kStartsMessage);
  return may_skip_psns() && message_between ? 1 : static_cast<std::uint32_t>(ahead(psn));
}

void ReceiveSequence::give_up_to(std::uint32_t psn) {
  const std::int32_t psns = ahead(psn);
  const bool goes_on = gap_psns_ && psn_add(gap_psn_, gap_psns_) == expected() && gap_psns_ + psns <= kWindowPsns;
  if (!goes_on) gap_psn_ = expected();
  gap_psns_ = static_cast<std::uint16_t>(goes_on ? gap_psns_ + psns : psns);
  place_.expected = unannounced_psn_ = psn;
  place_.last_psn = psn_add(psn, -1);
}

void ReceiveSequence::restart(std::uint32_t psn, std::uint32_t began) {
  place_.jump(psn);
  unannounced_psn_ = began;
  gap_psns_ = 0;
  run_ = 0;
}

void ReceiveSequence::note_gap(std::int32_t psns) {
  gap_psn_ = expected();
  gap_psns_ = static_cast<std::uint16_t>(psns);
}

ReceiveSequence::Duplicate ReceiveSequence::note_duplicate(std::uint32_t psn, std::uint32_t reorder) {
  const auto since = static_cast<std::uint16_t>(accounted_ - duplicate_accounted_);
  const bool goes_on = run_ && psn == psn_add(duplicate_psn_, 1) && since <= reorder + 1;
  run_ = static_cast<std::uint8_t>(goes_on ? std::min(run_ + 1, 0xFF) : 1);
  duplicate_psn_ = psn;
  duplicate_accounted_ = accounted_;
  // What was given up may only have been late, however much of it there is.
  if (gap_psns_ && roce::psn_in_window(psn, gap_psn_, gap_psns_)) return Duplicate::kGivenUp;
  return run_ >= kRetransmissionRun ? Duplicate::kRun : Duplicate::kSingle;
}

std::optional<std::uint32_t> ReceiveSequence::behind_run(std::uint32_t psn) const {
  if (!run_ || roce::psn_before(duplicate_psn_, psn)) return {};
  return psn_add(duplicate_psn_, 1);
}

void ReceiveSequence::follow_run() {
  unannounced_psn_ = run_began();
  gap_psns_ = 0;
  resume_psn_ = expected();
}

void ReceiveSequence::resolve(std::uint32_t psn, std::uint32_t reorder) {
  const bool was_none = roce::psn_in_window(psn, resume_psn_, reorder + 1);
  if (was_none && roce::psn_after(resume_psn_, expected())) place_.jump(resume_psn_);
  resume_psn_ = kNoPsn;
}

bool ReceiveSequence::repeats_announcement(std::uint32_t psn, std::uint16_t sent, bool same_sender) const {
  if (announced_psn_ == kNoPsn || !same_sender) return false;
  const bool same = announced_psn_ == psn && announced_sent_ == sent;
  const bool older = sent && is_newer(announced_sent_, sent);
  return same || older;
}

void ReceiveSequence::note_announcement(std::uint32_t psn, std::uint16_t sent) {
  announced_psn_ = psn;
  announced_sent_ = sent;
}

bool ReceiveSequence::has_overtaken(std::uint16_t sent, std::uint32_t reorder) const {
  const auto by = static_cast<std::uint16_t>(accounted_ - sent);
  return by > 0 && by <= reorder + kRetransmissionRun;
}

bool ReceiveSequence::was_taken_up_at(std::uint32_t psn, std::uint32_t reorder) const {
  if (psn != unannounced_psn_) return false;
  const std::int32_t late = psn_distance(expected(), psn);
  return late > 0 && late <= static_cast<std::int32_t>(reorder + kRetransmissionRun);
}

std::uint32_t ReceiveSequence::reconcile(const RepairHeader& header) {
  const Block& block = header.block;
  if (last_psn() != psn_add(block.base_psn, block.packets - 1)) return 0;
  return reconcile(std::int32_t{static_cast<std::int8_t>(header.sent + block.packets - accounted_)});
}

std::uint32_t ReceiveSequence::reconcile(const NegotiationHeader& header) {
  if (roce::psn_before(header.base_psn, expected())) return 0;
  return reconcile(std::int32_t{static_cast<std::int16_t>(header.sent - accounted_)});
}

std::uint32_t ReceiveSequence::reconcile(std::int32_t more) {
  accounted_ = static_cast<std::uint16_t>(accounted_ + more);
  if (!std::exchange(sender_counted_, true) || more <= 0 || more > kWindowPsns) return 0;
  return static_cast<std::uint32_t>(more);
}

}  // namespace rocebox::lowar
