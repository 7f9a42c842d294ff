// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/fabric.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/kernel/delay_way.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {

void Fabric::Inbox::add_more(Port port, std::span<const Packet> more) {
  auto& [packets, runs] = *many;
  has_more = true;
  if (Packet first = std::exchange(one, Packet())) {
    packets.push_back(first);
    runs.push_back({one_port, 1});
  }
  packets.insert(packets.end(), more.begin(), more.end());
  if (runs.empty() || runs.back().port != port)
    runs.push_back({port, packets.size()});
  else
    runs.back().end = packets.size();
}

void Fabric::Inbox::clear() {
  has_more = false;
  many->packets.clear();
  many->runs.clear();
}

void Fabric::leave(Member& from, Port out, std::span<Packet> packets, Nanos now) {
  const Wire& wire = from.wires[out];
  if (!wire.to) return output_({from.device_number, out}, packets, now);
  if (!from.taps.empty() && from.taps[out]) [[unlikely]]
    from.taps[out]({from.device_number, out}, packets, now);
  if (wire.way) return carry(wire, packets, now);
  deliver(*wire.to, wire.port, packets);
}

void Fabric::carry(const Wire& wire, std::span<Packet> packets, Nanos now) {
  DelayWay& way = *wire.delay;
  for (Packet& packet : packets) {
    if (!way.is_open()) {
      no_room_ = true;
      deliver(*wire.to, wire.port, packets.subspan(static_cast<std::size_t>(&packet - packets.data())));
      break;
    }
    if (way.last_comes() > now) [[unlikely]]
      broken("a packet leaves while another one is being sent", wire.to->device->name(), wire.port);
    if (!is_known(packet) || way.is_watched()) [[unlikely]]
      wire.to->line->comes(wire.port, packet, now);
    put(wire, packet, now);
  }
  if (!counts_late_) wire.to->device->settle(now + 1);
}

inline void Fabric::put(const Wire& into, Packet packet, Nanos comes) {
  DelayWay& way = *into.delay;
  const bool first = way.size() == 0;
  const Nanos due = way.put(packet, comes);
  if (!first) return;
  if (into.inner) {
    if (due < into.inner->at()) inner_[into.inner->phase].arm(*into.inner, due);
  } else if (way.gives()) {
    wake_ups_.arm(*into.way, due);
  }
}

bool Fabric::leave_ahead(Member& from, Port out, Packet packet, Nanos now, Nanos at) {
  const Wire& wire = from.wires[out];
  if (!wire.way || (!from.taps.empty() && from.taps[out])) return false;
  const DelayWay& way = *wire.delay;
  if (!way.is_open() || !way.gives() || way.is_watched() || way.last_comes() > now || !is_known(packet)) return false;
  put(wire, packet, at);
  return true;
}

void Fabric::deliver(Member& to, Port in, std::span<const Packet> packets) {
  if (to.line) to.set_waits(true);
  to.inboxes[turn_].add(in, packets);
  rounds_[turn_].add(to.number);
}

void Fabric::wake(unsigned device) {
  Member& woken = member(device);
  if (woken.is_inner || at_work_) return wake_ahead(woken);
  rounds_[turn_].add(woken.number);
}

void Fabric::advance_to(Nanos now) {
  while (next_deadline() < now) run(next_deadline());
}

inline void Fabric::Way::prefetch_first() const {
  way->prefetch();
  if (to) to->prefetch();
}

// Asks for what the next one needs of those that come behind this instant, and for the one after it: memory needs as
// long as some devices, so one is looked at with each part of this instant. What is looked at may be armed anew
// meanwhile; then others are.
inline void Fabric::look_ahead() {
  if (!next_) return;
  const Part& part = static_cast<const Part&>(*next_);
  if (part.is_way)
    static_cast<const Way&>(part).prefetch();
  else
    static_cast<const Member&>(part).device->prefetch();
  next_ = next_->behind();
  if (next_) prefetch_line(next_);
}

void Fabric::run(Nanos now) {
  now_ = now;
  for (Member* woken : woken_) inner_[woken->phase].arm(*woken, now);
  woken_.clear();
  if (next_inner() <= now) run_ahead(now);
  if (alone_) {
    if (next_deadline() <= now) wake(0);
  } else {
    if (rounds_[turn_].empty())
      if (Event* only = wake_ups_.take_only(now)) {
        next_ = wake_ups_.near();
        if (next_ && static_cast<const Part*>(next_)->is_way) static_cast<const Way*>(next_)->prefetch_first();
        look_ahead();
        run_only(static_cast<Part&>(*only), now);
        return run_rounds(now);
      }
    wake_ups_.take_due(now, [this](Event& due) {
      const Part& part = static_cast<const Part&>(due);
      rounds_[turn_].add(part.number);
      if (part.is_way) static_cast<const Way&>(part).prefetch_first();
    });
    wake_ups_.advance(now);
    next_ = wake_ups_.near();
    if (next_) prefetch_line(next_);
  }
  run_rounds(now);
}

// An instant in which one thing is due, as most are: the rounds that it makes without what gathers and orders many.
void Fabric::run_only(Part& part, Nanos now) {
  if (!part.is_way) {
    Member& member = static_cast<Member&>(part);
    return step(member, member.inboxes[turn_ ^ 1], now);
  }
  Way& from = static_cast<Way&>(part);
  DelayWay& way = *from.way;
  if (!way.gives() || way.size() == 0 || way.is_watched() || !from.to || !counts_late_ || way.second_at() <= now)
    return release(from, now);
  const Packet packet = way.take();
  if (way.size()) wake_ups_.arm(from, way.next_at());
  work_++;
  enter(*from.to, from.to_port, packet, now);
}

// A step of a device with one packet.
void Fabric::enter(Member& entered, Port in, Packet packet, Nanos now) {
  work_ += 2;
  if (is_known(packet)) [[likely]]
    return schedule(entered, entered.device->step_one(now, in, packet));
  const Arrivals arrivals{in, {&packet, 1}};
  entered.device->step(now, {&arrivals, 1});
  schedule(entered, entered.device->next_deadline());
}

void Fabric::run(Nanos now, FabricPort to, std::span<Packet> packets) {
  if (!alone_ || !rounds_[turn_].empty()) {
    inject(to, packets);
    return run(now);
  }
  now_ = now;
  work_ += 1 + packets.size();
  const Arrivals arrivals{to.port, packets};
  member(0).device->step(now, {&arrivals, 1});
}

// What a device hands on in a round is the next one's.
void Fabric::run_rounds(Nanos now) {
  for (unsigned rounds = 0; !rounds_[turn_].empty(); rounds++) {
    DeviceSet& round = rounds_[turn_];
    if (rounds == kRoundsPerInstantMax)
      throw std::runtime_error("devices hand packets round without end in one instant: device `" +
                               static_cast<Member&>(*parts_[round.lowest()]).device->name() +
                               "`; give a link between them a delay");
    const unsigned turn = turn_;
    turn_ ^= 1;
    round.take_all([&](unsigned number) {
      Part& part = *parts_[number];
      look_ahead();
      if (part.is_way)
        release(static_cast<Way&>(part), now);
      else
        step(static_cast<Member&>(part), static_cast<Member&>(part).inboxes[turn], now);
    });
  }
}

void Fabric::step(Member& stepped, Inbox& inbox, Nanos now) {
  if (inbox.has_more || alone_) return step_many(stepped, inbox, now);
  if (const Packet packet = std::exchange(inbox.one, Packet())) {
    enter(stepped, inbox.one_port, packet, now);
  } else {
    work_++;
    stepped.device->step(now, {});
    schedule(stepped, stepped.device->next_deadline());
  }
  if (stepped.line) stepped.set_waits(!stepped.inboxes[turn_].empty());
}

void Fabric::step_many(Member& stepped, Inbox& inbox, Nanos now) {
  if (inbox.one) inbox.add_more(inbox.one_port, {});
  work_ += 1 + inbox.many->packets.size();
  step_with(stepped, inbox, now);
  if (stepped.line) stepped.set_waits(!stepped.inboxes[turn_].empty());
  if (!alone_) schedule(stepped, stepped.device->next_deadline());
}

void Fabric::step_with(Member& stepped, Inbox& inbox, Nanos now) {
  if (inbox.many->runs.size() == 1) {
    const Arrivals arrivals{inbox.many->runs[0].port, inbox.many->packets};
    stepped.device->step(now, {&arrivals, 1});
  } else {
    arrivals_.clear();
    std::size_t first = 0;
    for (const Inbox::Run& run : inbox.many->runs) {
      arrivals_.push_back({run.port, {inbox.many->packets.data() + first, run.end - first}});
      first = run.end;
    }
    stepped.device->step(now, arrivals_);
  }
  inbox.clear();
}

// What is due of those on the way. Where the line's timer lets them leave this is a leftover.
void Fabric::release(Way& from, Nanos now) {
  DelayWay& way = *from.way;
  if (!way.gives() || way.next_at() > now) [[unlikely]]
    return;
  work_++;
  do {
    Packet packet = way.take();
    if (way.is_watched()) [[unlikely]]
      from.line->line->goes(packet);
    if (from.to) [[likely]] {
      from.to->device->prefetch_arrival(from.to_port, packet);
      deliver(*from.to, from.to_port, {&packet, 1});
    } else {
      leave(*from.line, from.in ^ 1, {&packet, 1}, now);
    }
  } while (way.next_at() <= now);
  if (way.size()) wake_ups_.arm(from, way.next_at());
  if (!counts_late_) from.line->device->settle(now + 1);
}

void Fabric::schedule(Member& due, Nanos at) {
  if (due.is_inner) [[unlikely]]
    return schedule_inner(due);
  if (at == due.at()) return;
  if (at == kNever)
    wake_ups_.cancel(due);
  else
    wake_ups_.arm(due, at);
}

void Fabric::settle(Nanos before) {
  settled_ = std::max({settled_, before, ran_ahead_to_});
  for (const auto& member : members_) member->device->settle(settled_);
}

std::uint64_t Fabric::held() {
  if (counts_late_) settle(now_ + 1);
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member->device->books().conservation().held();
  return sum;
}

}  // namespace rocebox
