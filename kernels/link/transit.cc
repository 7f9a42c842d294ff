// SPDX-License-Identifier: BSD-3-Clause
// From the queue to the far end: rate, marking by occupancy, delay, jitter, order.
#include <algorithm>

#include "kernels/link/direction.h"
#include "kernels/link/edits.h"

namespace rocebox::link {

// Decides first and changes nothing until it is sure that the packet is not dropped.
void Direction::pass(Call& call, Item item, const Impairments& impairments) {
  const Nanos now = call.context.now();
  Plan plan;
  Nanos at = now;
  if (!transmitter_.unlimited()) {
    plan = this->plan(item.packet, now);
    if (!plan.accepted) return drop(call, std::move(item), count_.drop_queue_full);
    at = plan.free.rounded_up();
  }
  at += policy_.config.delay;
  if (policy_.config.jitter)
    at += static_cast<Nanos>(below(draw(kJitter), static_cast<std::uint64_t>(policy_.config.jitter) + 1));
  if (!policy_.config.jitter_reorders) at = std::max(at, way().last());
  const bool holds_back = impairments.reorder_by && !held_back_.full();
  const bool waits = holds_back || at + impairments.delay > now;
  if (waits && held() >= static_cast<std::uint64_t>(policy_.config.packets))
    return drop(call, std::move(item), count_.drop_held_full);
  if (!transmitter_.unlimited()) enqueue(call.context, item.packet, plan);
  if (impairments.reorder_by && !holds_back) count_.reorder_refused.add();
  if (holds_back) return hold_back(call, std::move(item), impairments, at);
  if (impairments.delay == 0) way().set_last(at);
  const std::uint64_t sequence = way().next_sequence();
  at += impairments.delay;
  if (waits) {
    on_their_way_.push({at, sequence}, take(call, std::move(item)), impairments.delay == 0);
  } else if (item.copy) {
    leave(call, std::move(item.copy));
  } else {
    count_.delivered.add();  // and passes in place
  }
  if (held_back_.size()) passed_on(call, sequence, at);
}

// A packet that finds the transmitter idle does not queue, so any size is accepted then.
Direction::Plan Direction::plan(Packet packet, Nanos now) const {
  Plan plan;
  plan.occupancy = transmitter_.occupancy(now);
  plan.bytes = packet.wire_bytes() + policy_.config.overhead;
  if (plan.occupancy && plan.occupancy + plan.bytes > policy_.config.queue) [[unlikely]] {
    const std::uint32_t headers = header_bytes(packet);
    plan.trims = packet.wire_bytes() > headers && packet.meta().payload_bytes > 0;
    if (plan.trims) plan.bytes = headers + policy_.config.overhead;
    plan.accepted = policy_.config.queue_full == QueueFull::kTrim && headers > 0 &&
                    plan.occupancy + plan.bytes <= policy_.config.queue + kTrimReserveBytes;
    if (!plan.accepted) return plan;
  }
  plan.free = transmitter_.after(now, plan.bytes);
  return plan;
}

void Direction::enqueue(Context& context, Packet packet, const Plan& plan) {
  transmitter_.accept(plan.free);
  count_.queue_bytes_max.raise_to(plan.occupancy + plan.bytes);
  if (policy_.config.ecn.max && ecn_wants(plan.occupancy)) (void)mark(context, packet);
  if (plan.trims) (void)cut(context, packet);
}

bool Direction::ecn_wants(std::uint64_t occupancy) const {
  const Ecn& ecn = policy_.config.ecn;
  if (occupancy < ecn.min) return false;
  if (occupancy > ecn.max) return true;
  const double share =
      ecn.max == ecn.min ? 1.0 : static_cast<double>(occupancy - ecn.min) / static_cast<double>(ecn.max - ecn.min);
  return Chance(ecn.probability * share).hits(draw(kEcn));
}

void Direction::hold_back(Call& call, Item item, const Impairments& impairments, Nanos at) {
  count_.reordered.add();
  call.context.note(item.packet, "reorder");
  const Due limit{at + impairments.delay + policy_.config.reorder_timeout, way().next_sequence()};
  held_back_.add({limit, impairments.delay, impairments.reorder_by, take(call, std::move(item))});
}

// Sends on a packet that was held back, never later than its limit.
void Direction::send_on(Call& call, HeldBackPacket held, Nanos at) {
  const Nanos due = std::min(at + held.delay, held.limit.at);
  if (due <= call.context.now())
    leave(call, std::move(held.packet));
  else
    on_their_way_.push({due, way().next_sequence()}, std::move(held.packet), due == at);
}

// The packet with this sequence goes on its way and arrives at `at`: those that waited for it go
// right behind, and they in turn count for packets from before them.
void Direction::passed_on(Call& call, std::uint64_t sequence, Nanos at) {
  held_back_.passed(sequence);
  for (;;) {
    HeldBackPacket held = held_back_.take_ready();
    if (!held.packet) return;
    const std::uint64_t place = held.limit.sequence;
    send_on(call, std::move(held), at);
    held_back_.passed(place);
  }
}

void Direction::on_timer(Context& context) {
  const Nanos now = context.now();
  Call call{context, nullptr, 0};
  for (;;) {
    const Due arriving = on_their_way_.next(), limit = held_back_.next();
    if (std::min(arriving, limit).at > now) break;
    if (arriving < limit) {
      leave(call, on_their_way_.pop());
      continue;
    }
    HeldBackPacket held = held_back_.take_next();
    count_.reorder_timeout.add();
    leave(call, std::move(held.packet));
    passed_on(call, limit.sequence, now);
  }
  arm(context);
}

// A timer that fires too early, since what it was for has gone, asks again.
void Direction::arm(Context& context) {
  context.arm_by(timer_, std::min(on_their_way_.next(), held_back_.next()).at);
  way().set_gives(!timer_.armed());
  open_way();
}

void Direction::leave(Call& call, PacketPtr packet) {
  count_.delivered.add();
  call.context.emit(std::move(packet), out_, call.slot);
}

void Direction::drop(Call& call, Item item, Counter& reason) {
  if (item.copy)
    call.context.drop(std::move(item.copy), reason);
  else
    call.batch->drop(call.slot, reason);
}

PacketPtr Direction::take(Call& call, Item item) {
  return item.copy ? std::move(item.copy) : call.batch->take(call.slot);
}

}  // namespace rocebox::link
