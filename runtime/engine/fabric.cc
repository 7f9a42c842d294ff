// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/fabric.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rocebox {

Fabric::~Fabric() {
  for (const auto& member : members_)
    for (const Inbox& inbox : member->inboxes)
      for (Packet packet : inbox.packets) rte_pktmbuf_free(packet.mbuf());
}

void Fabric::Inbox::add(Port port, std::span<const Packet> more) {
  packets.insert(packets.end(), more.begin(), more.end());
  if (runs.empty() || runs.back().port != port)
    runs.push_back({port, packets.size()});
  else
    runs.back().end = packets.size();
}

void Fabric::Inbox::clear() {
  packets.clear();
  runs.clear();
}

unsigned Fabric::add(Device& device) {
  const auto number = static_cast<unsigned>(members_.size());
  Member& added = *members_.emplace_back(std::make_unique<Member>());
  added.device = &device;
  added.number = number;
  for (DeviceSet& round : rounds_) round.resize(members_.size());
  added.peers.assign(device.ports().size(), -1);
  device.set_identities(identities_);
  added.line = device.delay_line();
  device.set_sink([this, &added](Port out, std::span<Packet> packets, Nanos now) { leave(added, out, packets, now); });
  if (number == 0)
    alone_ = true;
  else
    end_alone();
  if (!alone_) schedule(added, device.next_deadline());  // what kernels armed at their start
  return number;
}

void Fabric::end_alone() {
  if (!std::exchange(alone_, false)) return;
  schedule(member(0), member(0).device->next_deadline());
}

void Fabric::join(FabricPort a, FabricPort b) {
  end_alone();
  member(a.device).peers[a.port] = static_cast<int>(far_ends_.size());
  far_ends_.push_back(b);
  member(b.device).peers[b.port] = static_cast<int>(far_ends_.size());
  far_ends_.push_back(a);
}

void Fabric::tap(FabricPort port, Tap tap) {
  Member& tapped = member(port.device);
  tapped.taps.resize(tapped.peers.size());
  tapped.taps[port.port] = std::move(tap);
}

void Fabric::let_output_share() {
  for (const auto& member : members_)
    for (std::size_t port = 0; port < member->peers.size(); port++)
      if (member->peers[port] < 0) member->device->allow_shared(static_cast<Port>(port));
}

void Fabric::leave(Member& from, Port out, std::span<Packet> packets, Nanos now) {
  const int peer = from.peers[out];
  if (peer < 0) return output_({from.number, out}, packets, now);
  if (!from.taps.empty() && from.taps[out]) [[unlikely]]
    from.taps[out]({from.number, out}, packets, now);
  hand_on(far_ends_[static_cast<std::size_t>(peer)], packets, now);
}

void Fabric::hand_on(FabricPort end, std::span<Packet> packets, Nanos now) {
  Member& to = member(end.device);
  // What is still to come to the link itself goes first.
  if (!to.line || !to.inboxes[0].packets.empty() || !to.inboxes[1].packets.empty()) return deliver(end, packets);
  Nanos due = kNever;
  for (Packet& packet : packets) {
    const Nanos at = to.line->carry(end.port, packet, now);
    if (at == DelayLine::kNotTaken) {
      deliver(end, packets.subspan(static_cast<std::size_t>(&packet - packets.data())));
      break;
    }
    due = std::min(due, at);
  }
  if (due < to.at()) wake_ups_.arm(to, due);
}

void Fabric::deliver(FabricPort to, std::span<Packet> packets) {
  member(to.device).inboxes[turn_].add(to.port, packets);
  wake(to.device);
}

void Fabric::wake(unsigned device) { rounds_[turn_].add(device); }

void Fabric::advance_to(Nanos now) {
  while (next_deadline() < now) run(next_deadline());
}

void Fabric::run(Nanos now) {
  if (alone_) {
    if (next_deadline() <= now) wake(0);
  } else {
    while (wake_ups_.next() <= now) wake(static_cast<Member&>(wake_ups_.pop()).number);
    wake_ups_.advance(now);
  }
  run_rounds(now);
}

void Fabric::run(Nanos now, FabricPort to, std::span<Packet> packets) {
  if (!alone_ || !rounds_[turn_].empty()) {
    inject(to, packets);
    return run(now);
  }
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
                               member(round.lowest()).device->name() + "`; give a link between them a delay");
    const unsigned turn = turn_;
    turn_ ^= 1;
    while (!round.empty()) {
      const unsigned device = round.lowest();
      round.remove(device);
      step(member(device), member(device).inboxes[turn], now);
    }
  }
}

void Fabric::step(Member& stepped, Inbox& inbox, Nanos now) {
  work_ += 1 + inbox.packets.size();
  if (stepped.line) {
    const Nanos next = release(stepped, now);
    const Nanos deadline = stepped.device->next_deadline();
    if (inbox.packets.empty() && deadline > now) return schedule(stepped, std::min(next, deadline));
  }
  arrivals_.clear();
  std::size_t first = 0;
  for (const Inbox::Run& run : inbox.runs) {
    arrivals_.push_back({run.port, {inbox.packets.data() + first, run.end - first}});
    first = run.end;
  }
  stepped.device->step(now, arrivals_);
  inbox.clear();
  if (alone_) return;
  Nanos next = stepped.device->next_deadline();
  if (stepped.line) next = std::min(next, release(stepped, now));
  schedule(stepped, next);
}

// What is due of those that the line carries; when the next one is.
Nanos Fabric::release(Member& carrier, Nanos now) {
  std::array<DelayLine::Released, 8> due;
  for (;;) {
    Nanos next = kNever;
    const unsigned count = carrier.line->release(now, due, next);
    for (unsigned i = 0; i < count; i++) leave(carrier, due[i].out, {&due[i].packet, 1}, now);
    if (count < due.size()) return next;
  }
}

void Fabric::schedule(Member& due, Nanos at) {
  if (at == due.at()) return;
  if (at == kNever)
    wake_ups_.cancel(due);
  else
    wake_ups_.arm(due, at);
}

std::uint64_t Fabric::held() const {
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member->device->books().conservation().held();
  return sum;
}

}  // namespace rocebox
