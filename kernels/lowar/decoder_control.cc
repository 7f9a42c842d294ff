// SPDX-License-Identifier: BSD-3-Clause
// Decoder: repair and negotiation packets, and what a stream's objects learn from them.
#include <optional>

#include "kernels/lowar/decoder.h"
#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

void Decoder::lowar(Outlet& outlet, Packet packet) {
  Batch& batch = *outlet.batch;
  if (roce::icrc_check(packet) != roce::IcrcStatus::kGood) return batch.drop(outlet.slot, count_.drop_lowar_icrc);
  const std::span<const std::uint8_t> bytes = lowar_bytes(packet);
  if (const auto header = parse_repair(bytes)) return repair(outlet, packet, *header);
  const auto header = parse_negotiation(bytes);
  if (!header) return batch.drop(outlet.slot, count_.drop_lowar_malformed);
  negotiate(outlet, packet, *header);
  batch.drop(outlet.slot, count_.drop_negotiation);
}

std::uint64_t Decoder::lowar_packets() const {
  std::uint64_t sum = 0;
  for (const Counter* counter : {&count_.drop_negotiation, &count_.drop_repair_used, &count_.drop_repair_unused,
                                 &count_.drop_repair_short, &count_.drop_repair_failed, &count_.drop_repair_full,
                                 &count_.drop_repair_unknown, &count_.drop_lowar_icrc, &count_.drop_lowar_malformed})
    sum += counter->read();
  return sum;
}

void Decoder::repair(Outlet& outlet, Packet packet, const RepairHeader& header) {
  const StreamKey key = stream_key(packet, header.qpn, header.block.responses);
  const std::uint64_t hash = streams_.hash(key);
  const std::uint32_t index = streams_.find(key, hash);
  if (index == streams_.kNone || !streams_[index].sequence.begun())
    return outlet.batch->drop(outlet.slot, count_.drop_repair_unknown);
  Stream& stream = streams_[index];
  const std::int32_t ahead = stream.sequence.ahead(header.block.base_psn);
  if (ahead > kWindowPsns || ahead < -kWindowPsns) return outlet.batch->drop(outlet.slot, count_.drop_repair_unknown);
  streams_.use(key, hash, outlet.context.now());
  if (stream.block.follow_coding(header.block)) stream.order.keep_order();
  delivery_.repair(outlet, stream, packet, header);
  reconcile(stream, header);
}

void Decoder::negotiate(Outlet& outlet, Packet packet, const NegotiationHeader& header) {
  const Nanos now = outlet.context.now();
  if (header.kind == NegotiationKind::kRequest)
    return encoder_.requested(stream_key_back(packet, header.qpn, header.responses), header, now);
  const StreamKey key = stream_key(packet, header.qpn, header.responses);
  const std::uint32_t index = use_stream(key, streams_.hash(key), now);
  if (index == streams_.kNone) return count_.streams_full.add();
  Stream& stream = streams_[index];
  if (!stream.sequence.begun()) begin(stream, header.base_psn, header.responses);
  if (header.kind == NegotiationKind::kAnnounce)
    announced(outlet, stream, header);
  else
    status(outlet, stream, header);
}

// Whatever the sender says of its setting.
void Decoder::learn(Stream& stream, const NegotiationHeader& header) {
  stream.order.far_end_heard();
  if (header.sent == 0 || !stream.adaptation.is_sender(header.token)) stream.sequence.forget_sender_count();
  if (!stream.adaptation.learn(header)) return;
  stream.order.keep_order();
  stream.block.set_next_coding(header.coding, header.base_psn);
}

// A sequence begins: a stream, whose first packet may be lost; a retransmission; or what lies before never came to the
// far end.
void Decoder::announced(Outlet& outlet, Stream& stream, const NegotiationHeader& header) {
  ReceiveSequence& sequence = stream.sequence;
  const std::uint32_t psn = header.base_psn;
  count_.announcements.add();
  if (sequence.repeats_announcement(psn, header.sent, stream.adaptation.is_sender(header.token))) return;
  const bool begins_behind = sequence.begins_behind(psn, header.sent);
  sequence.note_announcement(psn, header.sent);
  learn(stream, header);
  const bool overtaken = sequence.has_overtaken(header.sent, reorder_);
  const bool goes_on = overtaken && (begins_behind || sequence.was_taken_up_at(psn, reorder_));
  sequence.set_announced();
  if (goes_on) return;
  const std::int32_t ahead = sequence.ahead(psn);
  const bool onward = ahead >= 0 && ahead <= kWindowPsns;
  if (onward) delivery_.continue_at(outlet, stream, psn);
  // Amid what waits the host goes back, too, unless that has overtaken the announcement.
  const bool amid = !stream.order.empty() || sequence.ahead(psn) < 0;
  std::optional<std::uint32_t> behind_run;
  if (!onward || (amid && !sequence.has_overtaken(header.sent, reorder_))) {
    if (overtaken) behind_run = sequence.behind_run(psn);
    delivery_.give_up_all(outlet, stream);
    delivery_.restart(stream, psn, kNoPsn);
    stream.recovered.sequence_jumps(ahead, reorder_);
  }
  stream.block.set_boundary(psn);
  delivery_.release(outlet, stream);
  if (behind_run)
    sequence.may_resume_at(*behind_run);  // if the next packet is not one before that
  else
    reconcile(stream, header);
}

// The sequence goes on: nothing that is waited for is given up for it.
void Decoder::status(Outlet& outlet, Stream& stream, const NegotiationHeader& header) {
  const bool was_uncoded = !stream.order.keeps_order();
  learn(stream, header);
  const std::int32_t ahead = stream.sequence.ahead(header.base_psn);
  if (was_uncoded && ahead != 0) {  // what is missing was not coded
    if (ahead > 0 && ahead <= kWindowPsns && !stream.sequence.may_skip_psns())
      stream.count_lost(static_cast<std::uint32_t>(ahead));
    if (ahead > 0 || ahead < -static_cast<std::int32_t>(reorder_)) {
      stream.adaptation.leave_out(ahead);
      stream.sequence.jump(header.base_psn);
    }
  }
  if (ahead >= 0 && ahead <= kWindowPsns) {
    stream.block.set_boundary(header.base_psn);
    delivery_.release(outlet, stream);
  }
  reconcile(stream, header);
}

// With nothing waiting, what the sender counts and nobody saw was lost: in a row behind a repair packet's block, else
// nobody knows where.
void Decoder::reconcile(Stream& stream, const RepairHeader& header) {
  if (!stream.order.empty()) return;
  const std::uint32_t lost = stream.sequence.reconcile(header);
  if (lost == 0) return;
  count_.missed.add(lost);
  stream.adaptation.lost(lost);
}

void Decoder::reconcile(Stream& stream, const NegotiationHeader& header) {
  if (!stream.order.empty()) return;
  const std::uint32_t lost = stream.sequence.reconcile(header);
  if (lost == 0) return;
  count_.missed.add(lost);
  stream.adaptation.lost_apart(lost);
}

}  // namespace rocebox::lowar
