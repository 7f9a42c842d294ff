// SPDX-License-Identifier: BSD-3-Clause
// What is decided about a packet from its number alone, up to the queue; transit.cc has the rest of
// the way.
#include "kernels/link/direction.h"

#include "kernels/link/edits.h"
#include "runtime/roce/hop_fields.h"

namespace rocebox::link {
namespace {

// Room is taken only where a packet can be made to wait.
std::uint32_t room(const DirectionConfig& config) {
  bool waits = config.rate || config.delay || config.jitter || config.reorder > 0;
  for (const Event& event : config.events)
    waits = waits || event.action == Action::kDelay || event.action == Action::kReorder;
  return waits ? static_cast<std::uint32_t>(config.packets) : 0;
}

// Whether a delay is all that it does. What is compared includes options that are yet to come: one that does nothing by
// itself is named here.
bool only_delays(const DirectionConfig& written) {
  DirectionConfig plain;
  plain.delay = written.delay;
  plain.packets = written.packets;
  plain.match = written.match;
  plain.overhead = written.overhead;
  plain.queue = written.queue;
  plain.queue_full = written.queue_full;
  plain.ecn = written.ecn;
  plain.reorder_by = written.reorder_by;
  plain.reorder_timeout = written.reorder_timeout;
  plain.corrupt_icrc = written.corrupt_icrc;
  plain.trim_dscp = written.trim_dscp;
  return written == plain;
}

}  // namespace

Policy::Policy(const DirectionConfig& written)
    : config(written),
      loss(config.loss),
      corrupt(config.corrupt),
      mark(config.mark),
      trim(config.trim),
      duplicate(config.duplicate),
      reorder(config.reorder),
      match(config.match),
      only_delay(only_delays(config) ? config.delay : 0) {}

Direction::Direction(const DirectionConfig& config, Stats& stats, const std::string& prefix, Port out)
    : on_their_way_(room(config)),
      timer_(out),
      count_(stats, prefix),
      policy_(config),
      out_(out),
      burst_loss_(config.burst_loss),
      transmitter_(config.rate),
      events_(policy_.config.events) {
  open_way();
}

// While some are held back what comes counts for them, and what waits out of order takes room, too.
void Direction::open_way() {
  way().set_delay(held_back_.size() || on_their_way_.has_others() ? 0 : policy_.only_delay);
}

DelayWay::Counted Direction::settle(Nanos before) {
  const DelayWay::Counted since = way().settle(before);
  count_.packets.add(since.put);
  count_.bytes.add(since.put_bytes);
  count_.delivered.add(since.taken);
  return since;
}

std::unique_ptr<Direction::Replacement> Direction::prepare(const DirectionConfig& config, std::string_view name) const {
  const DirectionConfig& now = policy_.config;
  const std::string where = std::string(name) + ": ";
  if (config.events != now.events) throw ConfigError(where + "`events` cannot be changed while the link runs");
  if (config.packets != now.packets) throw ConfigError(where + "`packets` cannot be changed while the link runs");
  const std::uint32_t needed = on_their_way_.capacity() == 0 ? room(config) : 0;
  return std::unique_ptr<Replacement>(new Replacement{Policy(config), HoldQueue(needed)});
}

void Direction::apply(Replacement& replacement, Nanos now) {
  transmitter_.change_rate(now, replacement.policy.config.rate);
  burst_loss_.change(replacement.policy.config.burst_loss);
  std::swap(policy_, replacement.policy);
  open_way();
  if (on_their_way_.capacity() == 0) on_their_way_.swap_empty(replacement.room);
}

void Direction::seed(Context& context) {
  for (Stream& stream : streams_) stream.seed(context.random());
}

void Direction::process(Context& context, Batch& batch) {
  Call call{context, &batch, 0};
  for (; call.slot < batch.size(); call.slot++) one(call);
  arm(context);
}

void Direction::one(Call& call) {
  const Packet packet = (*call.batch)[call.slot];
  index_ = ++stepped_ + way().put_so_far();
  count_.packets.add();
  count_.bytes.add(packet.wire_bytes());
  if (!policy_.config.up) [[unlikely]]
    return call.batch->drop(call.slot, count_.drop_down);
  const bool chosen =
      !policy_.match.on() || policy_.match.matches(facts_of(packet));  // as it came, before events change it
  Impairments impairments;
  if (!events_.empty()) explicit_events(call.context, packet, impairments);
  // The chain moves with every packet, also with one that an event drops.
  const bool burst_lost = burst_loss_.on() && burst_loss_.next(draw(kBurstMove), draw(kBurstLoss));
  if (impairments.dropped) return call.batch->drop(call.slot, count_.drop_event);
  if (burst_lost && chosen) return call.batch->drop(call.slot, count_.drop_burst_loss);
  if (chosen) {
    if (hits(policy_.loss, kLoss)) return call.batch->drop(call.slot, count_.drop_loss);
    impair(call.context, packet, impairments);
  }
  if (impairments.copies) [[unlikely]]
    return duplicate_and_pass(call, packet, impairments);
  pass(call, {packet, {}}, impairments);
}

void Direction::explicit_events(Context& context, Packet packet, Impairments& impairments) {
  events_.match(index_, packet, context.now(), [&](const Event& event, Firing firing) {
    firing.applied = apply(context, event, firing.event, packet, impairments);
    count_.events_fired.add();
    if (!firing.applied) count_.events_not_applied.add();
    events_.record(firing);
    return !impairments.dropped;
  });
}

// Whether the packet allowed it.
bool Direction::apply(Context& context, const Event& event, std::uint32_t number, Packet packet,
                      Impairments& impairments) {
  switch (event.action) {
    case Action::kDrop:
      impairments.dropped = true;
      return true;
    case Action::kDelay:
      impairments.delay += event.by;
      context.note(packet, "delay");
      return true;
    case Action::kDuplicate:
      impairments.copies += static_cast<std::uint32_t>(event.copies);
      return true;
    case Action::kReorder:
      impairments.reorder_by = static_cast<std::uint32_t>(event.packets);
      return true;
    case Action::kTrim:
      return cut(context, packet);
    case Action::kMark:
      return mark(context, packet);
    case Action::kCorrupt:
      return corrupt_by(context, event, number, packet);
    case Action::kNone:
      break;
  }
  return false;
}

bool Direction::corrupt_by(Context& context, const Event& event, std::uint32_t number, Packet packet) {
  // The event's number moves the draw far along the stream: two corruptions of one packet choose apart.
  const std::uint64_t place = streams_[kEventPlace].at(index_ + (std::uint64_t{number} << 48));
  const bool done = event.offset < 0 ? corrupt_bit(packet, place, event.icrc)
                                     : corrupt_byte(packet, static_cast<std::uint32_t>(event.offset),
                                                    static_cast<std::uint8_t>(event.mask), place, event.icrc);
  if (done) corrupted(context, packet, event.icrc);
  return done;
}

void Direction::impair(Context& context, Packet packet, Impairments& impairments) {
  if (hits(policy_.corrupt, kCorrupt) && corrupt_bit(packet, draw(kCorruptPlace), policy_.config.corrupt_icrc))
    corrupted(context, packet, policy_.config.corrupt_icrc);
  if (hits(policy_.mark, kMark)) (void)mark(context, packet);
  if (hits(policy_.trim, kTrim)) (void)cut(context, packet);
  if (hits(policy_.duplicate, kDuplicate)) impairments.copies++;
  if (!impairments.reorder_by && hits(policy_.reorder, kReorder))
    impairments.reorder_by = static_cast<std::uint32_t>(policy_.config.reorder_by);
}

void Direction::corrupted(Context& context, Packet packet, Icrc icrc) {
  count_.corrupted.add();
  if (icrc == Icrc::kRepaired) count_.corrupted_icrc_repaired.add();
  context.note(packet, icrc == Icrc::kRepaired ? "corrupt, ICRC repaired" : "corrupt");
}

bool Direction::cut(Context& context, Packet packet) {
  if (!trim(packet, policy_.config.trim_dscp)) return false;
  count_.trimmed.add();
  context.note(packet, "trim");
  return true;
}

// True when the packet carries CE now.
bool Direction::mark(Context& context, Packet packet) {
  const roce::Marked result = roce::mark_ce(packet);
  if (result == roce::Marked::kMarked) {
    count_.ecn_marked.add();
    context.note(packet, "mark");
  }
  if (result == roce::Marked::kNotEct) count_.ecn_not_ect.add();
  return result != roce::Marked::kNotEct;
}

// Copies are made first, since the queue may still mark or trim the packet; they follow it into the
// queue.
[[gnu::noinline]] void Direction::duplicate_and_pass(Call& call, Packet packet, const Impairments& impairments) {
  std::array<PacketPtr, kCopiesMax> copies;
  for (std::uint32_t i = 0; i < impairments.copies; i++) {
    PacketPtr copy = i < copies.size() ? call.context.copy(packet) : PacketPtr();
    if (copy) {
      count_.duplicated.add();
      call.context.note(*copy, "duplicate");
    } else {
      count_.copy_failed.add();
    }
    if (i < copies.size()) copies[i] = std::move(copy);
  }
  pass(call, {packet, {}}, impairments);
  for (PacketPtr& copy : copies) {
    if (!copy) continue;
    const Packet view = *copy;
    pass(call, {view, std::move(copy)}, impairments);
  }
}

}  // namespace rocebox::link
