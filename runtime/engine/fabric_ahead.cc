// SPDX-License-Identifier: BSD-3-Clause
// Devices inside a network, run through the shortest delay of the lines to them one after the other: simulators of many
// processors call it a conservative window. Here it is for the cache.
#include <algorithm>
#include <utility>

#include "runtime/engine/fabric.h"

namespace rocebox {
namespace {

constexpr std::size_t kComingSoon = 2;  // packets before a packet while which the device fetches what it needs for it

}  // namespace

// What comes to it and what it sends is on lines that only delay.
bool Fabric::may_run_ahead(const Member& one) const {
  const auto carries = [](const Way& way) {
    return way.way->is_open() && way.way->gives() && !way.way->is_watched() && !way.waits &&
           way.way->capacity() >= kAheadRoom;
  };
  if (one.line || one.device->host_side() || !one.taps.empty() || one.wires.empty() || !one.inboxes[turn_].empty())
    return false;
  return std::ranges::all_of(one.wires, [&](const Wire& wire) {
    if (!wire.way || !carries(*wire.way)) return false;
    const Way& back = wire.to->ways[wire.port ^ 1];
    return back.to == &one && carries(back);
  });
}

void Fabric::let_run_ahead() {
  if (alone_ || ahead_) return;
  Nanos shortest = kNever;
  for (const auto& one : members_) {
    if (!may_run_ahead(*one)) continue;
    one->is_inner = true;
    one->ways_here.clear();
    for (const Wire& wire : one->wires) one->ways_here.push_back(&wire.to->ways[wire.port ^ 1]);
    std::ranges::sort(one->ways_here, {}, &Way::number);
    for (Way* way : one->ways_here) {
      way->inner = one.get();
      wake_ups_.cancel(*way);
      shortest = std::min(shortest, way->way->delay());
    }
    wake_ups_.cancel(*one);
    schedule_inner(*one);
  }
  ahead_ = shortest == kNever ? 0 : shortest;
}

void Fabric::run_in_time() {
  if (!std::exchange(ahead_, 0)) return;
  for (const auto& one : members_) {
    if (!std::exchange(one->is_inner, false)) continue;
    inner_.cancel(*one);
    schedule(*one, one->device->next_deadline());
    for (Way* way : one->ways_here) {
      way->inner = nullptr;
      if (way->way->size() && way->way->gives()) wake_ups_.arm(*way, way->way->next_at());
    }
  }
}

void Fabric::run_ahead(Nanos now) {
  const Nanos until = std::max(now + 1, std::min(now + ahead_, ahead_limit_));
  turns_.clear();
  no_room_ = false;
  inner_.take_due(until - 1, [this](Event& due) { turns_.push_back(&static_cast<Member&>(due)); });
  for (std::size_t turn = 0; turn < turns_.size(); turn++) {
    if (turn + 1 < turns_.size()) prefetch_ahead(*turns_[turn + 1]);
    run_ahead(*turns_[turn], until);
  }
  ran_ahead_to_ = until;
  // A line without room decides in the rounds of this instant what becomes of a packet.
  if (no_room_) [[unlikely]]
    run_in_time();
}

// What gathering and stepping need of the device whose turn comes next.
void Fabric::prefetch_ahead(const Member& one) {
  one.prefetch();
  for (const Way* way : one.ways_here) way->way->prefetch_itself();
}

// All that comes to it before `until`, in the order in which it comes.
void Fabric::gather(Member& one, Nanos until) {
  coming_.clear();
  for (const Way* way : one.ways_here) way->way->prefetch_due(until);
  for (const Way* way : one.ways_here)
    while (way->way->next_at() < until) {
      const Nanos at = way->way->next_at();
      coming_.push_back({at, static_cast<unsigned>(coming_.size()), way->to_port, way->way->take()});
    }
  std::ranges::sort(coming_,
                    [](const Coming& a, const Coming& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
}

// As the rounds of each instant would: what is due, and then what comes.
void Fabric::run_ahead(Member& one, Nanos until) {
  gather(one, until);
  std::size_t first = 0;
  while (true) {
    const Nanos timer = one.device->next_deadline(), comes = first < coming_.size() ? coming_[first].at : kNever;
    const Nanos now = std::min(timer, comes);
    if (now >= until) break;
    if (timer <= now) {
      work_++;
      one.device->step(now, {});
    }
    if (comes > now) continue;
    std::size_t end = first + 1;
    while (end < coming_.size() && coming_[end].at == now) end++;
    const std::size_t soon = end + kComingSoon;
    if (soon < coming_.size()) one.device->prefetch_arrival(coming_[soon].in, coming_[soon].packet);
    step_with(one, now, std::span(coming_).subspan(first, end - first));
    first = end;
  }
  schedule_inner(one);
}

void Fabric::schedule_inner(Member& one) {
  Nanos due = one.device->next_deadline();
  for (const Way* way : one.ways_here) due = std::min(due, way->way->next_at());
  due == kNever ? inner_.cancel(one) : inner_.arm(one, due);
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
