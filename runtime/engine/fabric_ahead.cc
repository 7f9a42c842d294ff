// SPDX-License-Identifier: BSD-3-Clause
// Devices inside a network, run one after the other as far as the delays of the lines to them let each: simulators of
// many processors call it a conservative window. Here it is for the cache.
#include <algorithm>
#include <utility>

#include "runtime/engine/fabric.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {
namespace {

// A key for sorting: when something comes, and its place among all that comes in a turn.
constexpr unsigned kOrderBits = 32;
constexpr unsigned kTurnsAhead = 3;  // a turn ends so many delays beyond an instant at most
constexpr Nanos kAheadMax = UINT32_MAX / kTurnsAhead;
constexpr std::size_t kComingSoon = 2;  // packets before a packet while which the device fetches what it needs for it

}  // namespace

// What comes to it and what it sends is on lines that only delay.
bool Fabric::may_run_ahead(const Member& one, bool hosts) const {
  const auto carries = [](const Way& way) {
    return way.way->is_open() && way.way->gives() && !way.way->is_watched() && way.way->capacity() >= kAheadRoom;
  };
  const bool is_host = one.device->host_side();
  if (one.line || (is_host && !hosts) || !one.taps.empty() || one.wires.empty() || rounds_[turn_].contains(one.number))
    return false;
  return std::ranges::all_of(one.wires, [&](const Wire& wire) {
    if (!wire.way || !carries(*wire.way)) return false;
    const Way& back = wire.to->ways[wire.port ^ 1];
    if (back.to != &one || !carries(back)) return false;
    // Between two hosts a line would have to hold what both do in a turn, beside what is on its way.
    return !is_host || !wire.way->to || !wire.way->to->device->host_side();
  });
}

void Fabric::let_run_ahead(bool hosts) {
  if (alone_ || ahead_) return;
  Nanos shortest = kNever;
  for (const auto& one : members_) {
    if (!may_run_ahead(*one, hosts)) continue;
    one->is_inner = true;
    one->ways_here.clear();
    for (const Wire& wire : one->wires) {
      Way& way = wire.to->ways[wire.port ^ 1];
      set_inner(way, one.get());
      wake_ups_.cancel(way);
      shortest = std::min(shortest, way.way->delay());
      one->ways_here.push_back({way.way, way.to_port, &way});
    }
    std::ranges::sort(one->ways_here, {}, [](const WayHere& here) { return here.way->number; });
    wake_ups_.cancel(*one);
  }
  ahead_ = shortest == kNever ? 0 : std::min(shortest, kAheadMax);
  ran_to_ = {};
  has_phases_ = give_phases();
  for (const auto& one : members_) {
    if (!one->is_inner) continue;
    if (!has_phases_) one->phase = 0;
    schedule_inner(*one);
  }
  give_turns();
}

// A switch with hosts.
bool Fabric::is_edge(const Member& one) {
  return !one.is_leaf() && std::ranges::any_of(one.wires, [](const Wire& wire) {
    const Member* const other = inner_neighbour(wire);
    return other && other->is_leaf();
  });
}

// Who leads there knows it, too.
void Fabric::set_inner(Way& way, Member* inner) {
  Member* const before = way.line->wires[way.in].to;
  if (!before) return;
  for (Wire& wire : before->wires)
    if (wire.way == &way) wire.inner = inner;
}

// False: one of them has a neighbour that does not run ahead, or one of its own phase, as in a ring of three, or a line
// has too little room. Switches that have hosts come first.
bool Fabric::give_phases() {
  const auto is_roomy = [](const WayHere& here) { return here.delay->capacity() >= kTurnsAhead * kAheadRoom; };
  for (const auto& one : members_) {
    one->phase = one->is_inner ? kNoPhase : 0;
    if (one->is_inner && !std::ranges::all_of(one->ways_here, is_roomy)) return false;
  }
  for (const bool any : {false, true})
    for (const auto& one : members_)
      if (one->phase == kNoPhase && (any || is_edge(*one)) && !give_phases_from(*one)) return false;
  return true;
}

bool Fabric::give_phases_from(Member& start) {
  std::vector<Member*> reached = {&start};
  start.phase = 0;
  for (std::size_t i = 0; i < reached.size(); i++)
    for (const Wire& wire : reached[i]->wires) {
      Member* const other = inner_neighbour(wire);
      if (!other || other->phase == reached[i]->phase) return false;
      if (other->phase == kNoPhase) {
        other->phase = reached[i]->phase ^ 1;
        reached.push_back(other);
      }
    }
  return true;
}

// Behind each device those with one line, which leads to it: what it has put on that is in the cache yet.
void Fabric::give_turns() {
  turns_.clear();
  const auto give = [this](Member& one, bool follows) {
    one.turn = static_cast<unsigned>(turns_.size());
    one.follows = follows && one.phase == 1;
    turns_.push_back(&one);
  };
  for (const auto& one : members_) {
    if (!one->is_inner || one->is_leaf()) continue;
    give(*one, false);
    for (const Wire& wire : one->wires)
      if (Member* other = inner_neighbour(wire); other && other->is_leaf()) give(*other, true);
  }
  for (const auto& one : members_)
    if (one->is_inner && one->is_leaf() && (one->turn >= turns_.size() || turns_[one->turn] != one.get()))
      give(*one, false);
  due_turns_.resize(turns_.size());
}

void Fabric::run_in_time() {
  if (!std::exchange(ahead_, 0)) return;
  woken_.clear();
  for (const auto& one : members_) {
    if (!std::exchange(one->is_inner, false)) continue;
    if (std::exchange(one->has_posted, false)) rounds_[turn_].add(one->number);
    inner_[one->phase].cancel(*one);
    schedule(*one, one->device->next_deadline());
    for (const auto& [delay, to_port, way] : one->ways_here) {
      set_inner(*way, nullptr);
      if (delay->size() && delay->gives()) wake_ups_.arm(*way, delay->next_at());
    }
  }
  // Hosts that run ahead next may have something due before the last that others have done.
  for (EventQueue& inner : inner_) inner.go_back(now_);
}

// What a host posts outside of its device's calls is seen in the next instant, and what it posts in one of them by
// another call in the same.
void Fabric::wake_ahead(Member& woken) {
  if (at_work_ && at_work_ != &woken) [[unlikely]]
    broken("a host acts on another one while hosts run ahead", woken.device->name(), woken.device_number);
  woken.has_posted = true;
  if (!at_work_) woken_.push_back(&woken);
}

// A phase may run to one delay beyond where the other one has: what that sends later is under way for as long. What
// devices in time send is, too, and they are where time is.
void Fabric::run_ahead(Nanos now) {
  const auto at_most = [&](Nanos until) {
    return std::max(now + 1, std::min({until, has_phases_ ? kNever : now + ahead_, ahead_limit_}));
  };
  std::array<Nanos, 2> until;
  until[0] = at_most(std::max(now, ran_to_[1]) + ahead_);
  until[1] = at_most(until[0] + ahead_);
  no_room_ = false;
  run_phase(0, until);
  if (has_phases_ && !no_room_) run_phase(1, until);
  ran_to_ = until;
  ran_ahead_to_ = std::max({ran_ahead_to_, until[0], until[1]});
  // A line without room decides in the rounds of this instant what becomes of a packet.
  if (no_room_) [[unlikely]]
    run_in_time();
}

// Behind a device those that follow it: by what it sends they may come to be due. None of them, nor of the second
// phase, once a line had no room for a packet of the first: that may come to them in their past.
void Fabric::run_phase(unsigned phase, const std::array<Nanos, 2>& until) {
  due_.clear();
  inner_[phase].take_due(until[phase] - 1, [this](Event& due) { due_turns_.add(static_cast<Member&>(due).turn); });
  inner_[phase].advance(now_);
  due_turns_.take_all([this, phase](unsigned turn) {
    due_.push_back(turns_[turn]);
    while (phase == 0 && ++turn < turns_.size() && turns_[turn]->follows) due_.push_back(turns_[turn]);
  });
  for (std::size_t i = 0; i < due_.size(); i++) {
    prefetch_turns(std::span(due_).subspan(i), until);
    Member& one = *due_[i];
    if (one.phase == phase || (one.at() < until[1] && !no_room_)) run_ahead(one, until[one.phase]);
  }
}

// What the next turns need. Where it lies is said by what a turn before has asked for.
void Fabric::prefetch_turns(std::span<Member* const> due, const std::array<Nanos, 2>& until) {
  if (due.size() > 4) prefetch_far_lines(due[4], due[4] + 1);
  if (due.size() > 3) {
    const Member& one = *due[3];
    one.prefetch();
    prefetch_far_lines(one.ways_here.data(), one.ways_here.data() + one.ways_here.size());
    prefetch_far_lines(one.wires.data(), one.wires.data() + one.wires.size());
  }
  if (due.size() > 2) {
    const Member& one = *due[2];
    for (const WayHere& here : one.ways_here) here.delay->prefetch_itself();
    for (const Wire& wire : one.wires) wire.delay->prefetch_itself();
    one.device->prefetch_turn(false);
  }
  if (due.size() > 1) {
    const Member& one = *due[1];
    for (const WayHere& here : one.ways_here) here.delay->prefetch_due(until[one.phase]);
    one.device->prefetch_turn(true);
  }
}

// All that comes to it before `until`, in the order in which it comes.
void Fabric::gather(Member& one, Nanos until) {
  gathered_.clear();
  by_time_.clear();
  for (const auto& [delay, to_port, way] : one.ways_here)
    for (Nanos at; (at = delay->next_at()) < until;) {
      by_time_.push_back(static_cast<std::uint64_t>(at - now_) << kOrderBits | gathered_.size());
      gathered_.push_back({at, to_port, delay->take()});
    }
  std::ranges::sort(by_time_);
  coming_.clear();
  for (const std::uint64_t time : by_time_) coming_.push_back(gathered_[time & ((std::uint64_t{1} << kOrderBits) - 1)]);
}

// As the rounds of each instant would: what is due, and then what comes.
void Fabric::run_ahead(Member& one, Nanos until) {
  gather(one, until);
  at_work_ = &one;
  for (const Coming& each : std::span(coming_).first(std::min(kComingSoon, coming_.size())))
    one.device->prefetch_arrival(each.in, each.packet);
  std::size_t first = 0;
  Nanos posted = std::exchange(one.has_posted, false) ? now_ : kNever;
  while (true) {
    const Nanos due = std::min(one.device->next_deadline(), posted);
    const Nanos comes = first < coming_.size() ? coming_[first].at : kNever;
    const Nanos now = std::min(due, comes);
    if (now >= until) break;
    if (due <= now) {
      work_++;
      one.device->step(now, {});
    }
    posted = std::exchange(one.has_posted, false) ? now : kNever;
    if (comes > now) continue;
    std::size_t end = first + 1;
    while (end < coming_.size() && coming_[end].at == now) end++;
    const std::size_t soon = end + kComingSoon;
    if (soon < coming_.size()) one.device->prefetch_arrival(coming_[soon].in, coming_[soon].packet);
    step_with(one, now, std::span(coming_).subspan(first, end - first));
    posted = std::exchange(one.has_posted, false) ? now : kNever;
    first = end;
  }
  at_work_ = nullptr;
  schedule_inner(one);
}

void Fabric::schedule_inner(Member& one) {
  Nanos due = one.device->next_deadline();
  for (const WayHere& here : one.ways_here) due = std::min(due, here.delay->next_at());
  EventQueue& inner = inner_[one.phase];
  due == kNever ? inner.cancel(one) : inner.arm(one, due);
}

void Fabric::step_with(Member& one, Nanos now, std::span<const Coming> coming) {
  work_ += 1 + coming.size();
  if (coming.size() == 1 && is_known(coming[0].packet)) {
    one.device->step_one(now, coming[0].in, coming[0].packet);
    return;
  }
  Inbox& inbox = one.inboxes[turn_];
  for (const Coming& each : coming) inbox.add_more(each.in, {&each.packet, 1});
  step_with(one, inbox, now);
}

}  // namespace rocebox
