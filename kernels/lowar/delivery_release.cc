// SPDX-License-Identifier: BSD-3-Clause
// Delivery: what leaves the reordering buffer when, and when a lost packet is given up.
#include <algorithm>
#include <utility>

#include "kernels/lowar/delivery.h"
#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

// For as long as a block takes, and what may overtake it.
Nanos Delivery::patience(const Stream& stream) const {
  const Coding coding = stream.block.next_coding();
  return stream.order.patience(coding.r + coding.c + config_.reorder, config_.hold_min, config_.hold_max);
}

// The first packets that wait leave as long as nothing is missing before them.
void Delivery::drain(Outlet& outlet, Stream& stream) {
  while (!stream.order.empty()) {
    const ReorderingBuffer::Slot& slot = stream.order.first(buffer_);
    const bool before = stream.sequence.ahead(slot.psn) < 0;  // a duplicate, or an ACK whose time has come
    if (slot.unsequenced) {
      if (!before && !stream.sequence.message_ended()) return;
    } else if (!before) {
      if (!stream.sequence.is_next(*slot.packet, slot.psn)) return;
      hand_over(outlet.context.now(), stream, *slot.packet, slot.usable, slot.rebuilt);
    }
    outlet.emit(stream.order.take_first(buffer_));
  }
}

// What could still repair has had its time: packets sent well after the block's repair packets have come.
bool Delivery::is_unrepairable(const Stream& stream) const {
  const auto last = stream.order.last_psn(buffer_);
  if (!last) return false;
  const std::uint32_t expected = stream.sequence.expected();
  const auto said = stream.order.end_of_block(buffer_, expected);
  const std::uint32_t end = said ? *said : stream.block.end_of_block(expected);
  return psn_distance(*last, end) >= static_cast<std::int32_t>(config_.reorder);
}

void Delivery::release_ready(Outlet& outlet, Stream& stream, std::uint32_t arrived) {
  drain(outlet, stream);
  retry_repairs(outlet, stream, arrived);
  while (is_unrepairable(stream)) {
    give_up_next(outlet, stream);
    retry_repairs(outlet, stream);
  }
}

void Delivery::release(Outlet& outlet, Stream& stream, std::uint32_t arrived) {
  const Nanos now = outlet.context.now();
  release_ready(outlet, stream, arrived);
  while (!stream.order.idle()) {
    const Nanos due = stream.order.oldest(buffer_) + patience(stream);
    if (due > now) return outlet.context.arm_by(timers_[streams_.index_of(stream)], due);
    const std::uint64_t before = count_.released.read();
    give_up_next(outlet, stream);
    count_.released_timeout.add(count_.released.read() - before);
    release_ready(outlet, stream);
  }
}

void Delivery::release(Outlet& outlet, const Timer& timer) {
  release(outlet, streams_[static_cast<std::uint32_t>(&timer - timers_.data())]);
}

// What is missing before `psn`, so many packets: the sequence goes on there.
void Delivery::give_up(Stream& stream, std::uint32_t psn, std::uint32_t lost) {
  const ReceiveSequence& sequence = stream.sequence;
  count_.released.add(lost);
  stream.count_lost(lost);
  // A message's first packet, and perhaps others: its blocks are known all the same.
  if (sequence.message_ended() && !sequence.may_skip_psns()) stream.block.begin(units_, sequence.expected());
  stream.adaptation.leave_out(sequence.ahead(psn));
  stream.sequence.give_up_to(psn);
  stream.block.release_units(units_);
}

// What is missing before a packet that waits. Of the next block, which is perhaps repaired, nothing is given up with
// this.
void Delivery::give_up_before(Stream& stream, Packet packet, std::uint32_t psn) {
  const std::uint32_t lost = stream.sequence.lost_before(packet, psn), expected = stream.sequence.expected();
  const std::uint32_t end = stream.block.end_of_block(expected);
  if (lost == 1 || end == expected || !roce::psn_before(end, psn)) return give_up(stream, psn, lost);
  give_up(stream, end, static_cast<std::uint32_t>(psn_distance(end, expected)));
}

// Where only repair packets tell of lost packets: the end of the last block that they cover is next.
void Delivery::give_up_block(Outlet& outlet, Stream& stream) {
  const std::uint32_t expected = stream.sequence.expected();
  const auto last = stream.order.last_end(buffer_, expected);
  if (last) stream.sequence.set_message_ended(last->message_ended);
  drop_repairs(outlet.context, stream);
  const std::uint32_t end = last ? last->psn : expected;
  give_up(stream, end, static_cast<std::uint32_t>(psn_distance(end, expected)));
}

// Gives up what is missing before the first packet that waits.
void Delivery::give_up_next(Outlet& outlet, Stream& stream) {
  if (stream.order.empty()) {
    give_up_block(outlet, stream);
  } else if (stream.order.first(buffer_).unsequenced) {  // it does not say how many were lost before it
    while (!stream.order.empty() && stream.order.first(buffer_).unsequenced)
      outlet.emit(stream.order.take_first(buffer_));
    drain(outlet, stream);
  } else {
    const ReorderingBuffer::Slot& first = stream.order.first(buffer_);
    if (stream.sequence.ahead(first.psn) > 0)
      give_up_before(stream, *first.packet, first.psn);
    else
      stream.block.release_units(units_);
    drain(outlet, stream);
  }
  if (!stream.order.waited_in_vain()) return;
  end_coding(stream);
  give_up_all(outlet, stream);
  stream.block.release_units(units_);
}

void Delivery::continue_at(Outlet& outlet, Stream& stream, std::uint32_t psn) {
  while (!stream.order.empty() && roce::psn_before(stream.order.first(buffer_).psn, psn)) give_up_next(outlet, stream);
  const std::int32_t ahead = stream.sequence.ahead(psn);
  if (ahead <= 0) return;
  stream.adaptation.leave_out(ahead);
  stream.sequence.skip_unsent(psn);
  stream.block.release_units(units_);
  drain(outlet, stream);
}

void Delivery::give_up_all(Outlet& outlet, Stream& stream) {
  while (!stream.order.empty()) give_up_next(outlet, stream);
  drop_repairs(outlet.context, stream);
}

void Delivery::drop_repairs(Context& context, Stream& stream) {
  while (stream.order.has_repairs())
    context.drop(stream.order.take_repair(buffer_, stream.order.first_repair()), count_.drop_repair_short);
}

void Delivery::repair(Outlet& outlet, Stream& stream, Packet packet, const RepairHeader& header) {
  const Block& block = header.block;
  const std::int32_t ahead = stream.sequence.ahead(block.base_psn);
  if (block.anew && ahead > 0) continue_at(outlet, stream, block.base_psn);  // what lies before was never coded
  // A block begins where one is expected, also when its first packet comes later than this, or has to be rebuilt.
  if (!stream.block.aligned() && block.base_psn == stream.sequence.expected())
    stream.block.begin(units_, block.base_psn);
  const RepairOutcome outcome = try_repair(outlet, stream, packet, header);
  if (ahead + block.packets >= 0) stream.block.set_boundary(psn_add(block.base_psn, block.packets));
  if (outcome != RepairOutcome::kWaits) {
    outlet.batch->drop(outlet.slot, reason(outcome));
  } else if (buffer_.full() || stream.order.repairs_full()) {
    outlet.batch->drop(outlet.slot, count_.drop_repair_full);
  } else {
    stream.order.hold_repair(buffer_, outlet.batch->take(outlet.slot), block.base_psn, outlet.context.now());
    count_.held_max.raise_to(buffer_.used());
  }
  if (config_.reorder == 0) release_unrepairable(outlet, stream, header);
  release(outlet, stream);
}

// Where nothing overtakes, all that is left of a block has come when its last repair packet has.
void Delivery::release_unrepairable(Outlet& outlet, Stream& stream, const RepairHeader& header) {
  const Block& block = header.block;
  if (header.isn + 1u < std::min<unsigned>(block.coding.c, block.packets)) return;
  const std::uint32_t end = psn_add(block.base_psn, block.packets);
  drain(outlet, stream);
  retry_repairs(outlet, stream);
  while (!stream.order.empty() && stream.sequence.ahead(end) > 0) {
    give_up_next(outlet, stream);
    retry_repairs(outlet, stream);
  }
}

// Looks again at the repair packets that wait: at those that cover the PSN that has just arrived, or at all.
void Delivery::retry_repairs(Outlet& outlet, Stream& stream, std::uint32_t arrived) {
  for (std::uint16_t slot = stream.order.first_repair(); slot != OrderQueue::kNone;) {
    const std::uint16_t tried = slot;
    const Packet packet = *buffer_[tried].packet;
    const RepairHeader header = *parse_repair(lowar_bytes(packet));
    slot = OrderQueue::repair_after(buffer_, tried);
    if (arrived != kNoPsn && !header.covers(arrived)) continue;
    const RepairOutcome outcome = try_repair(outlet, stream, packet, header);
    if (outcome == RepairOutcome::kWaits) continue;
    outlet.context.drop(stream.order.take_repair(buffer_, tried), reason(outcome));
    if (outcome != RepairOutcome::kUsed) continue;
    drain(outlet, stream);
    arrived = kNoPsn;
    slot = stream.order.first_repair();
  }
}

RepairOutcome Delivery::try_repair(Outlet& outlet, Stream& stream, Packet packet, const RepairHeader& header) {
  Rebuilder::Attempt attempt = rebuilder_.attempt(outlet.context, stream, packet, header);
  return attempt.rebuilt ? accept(outlet, stream, std::move(attempt.rebuilt)) : attempt.outcome;
}

// A rebuilt packet goes the way of one that came.
RepairOutcome Delivery::accept(Outlet& outlet, Stream& stream, PacketPtr rebuilt) {
  const Nanos now = outlet.context.now();
  const Packet packet = *rebuilt;
  const std::uint32_t psn = psn_of(packet);
  const bool usable = fits(packet);  // the far end's `roce_mtu` may be larger
  const bool next = psn == stream.sequence.expected();
  if (!next && buffer_.full()) {
    outlet.context.drop(std::move(rebuilt), count_.drop_rebuilt);
    return RepairOutcome::kFull;
  }
  count_.recovered.add();
  outlet.context.note(packet, "recover");
  stream.recovered.add(packet, now, patience(stream));
  if (!next) {
    stream.order.hold(buffer_, std::move(rebuilt), psn, now, {.usable = usable, .rebuilt = true});
    count_.held_max.raise_to(buffer_.used());
    return RepairOutcome::kUsed;
  }
  hand_over(now, stream, packet, usable, true);
  outlet.emit(std::move(rebuilt));
  return RepairOutcome::kUsed;
}

Counter& Delivery::reason(RepairOutcome outcome) {
  switch (outcome) {
    case RepairOutcome::kUsed:
      return count_.drop_repair_used;
    case RepairOutcome::kFailed:
      return count_.drop_repair_failed;
    case RepairOutcome::kFull:
      return count_.drop_repair_full;
    case RepairOutcome::kShort:
    case RepairOutcome::kWaits:
      return count_.drop_repair_short;
    case RepairOutcome::kUnused:
      break;
  }
  return count_.drop_repair_unused;
}

}  // namespace rocebox::lowar
