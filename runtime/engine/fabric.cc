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
  if (more.size() == 1)
    packets.push_back(more[0]);
  else
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
  added.wires.resize(device.ports().size());
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
  member(a.device).wires[a.port] = {&member(b.device), b.port};
  member(b.device).wires[b.port] = {&member(a.device), a.port};
}

void Fabric::tap(FabricPort port, Tap tap) {
  Member& tapped = member(port.device);
  tapped.taps.resize(tapped.wires.size());
  tapped.taps[port.port] = std::move(tap);
}

void Fabric::let_output_share() {
  for (const auto& member : members_)
    for (std::size_t port = 0; port < member->wires.size(); port++)
      if (!member->wires[port].to) member->device->allow_shared(static_cast<Port>(port));
}

void Fabric::leave(Member& from, Port out, std::span<Packet> packets, Nanos now) {
  const Wire wire = from.wires[out];
  if (!wire.to) return output_({from.number, out}, packets, now);
  if (!from.taps.empty() && from.taps[out]) [[unlikely]]
    from.taps[out]({from.number, out}, packets, now);
  if (wire.to->line) return carry(*wire.to, wire.port, packets, now);
  deliver(*wire.to, wire.port, packets);
}

void Fabric::carry(Member& line, Port in, std::span<Packet> packets, Nanos now) {
  // What is still to come to the link itself goes first.
  if (!line.inboxes[0].packets.empty() || !line.inboxes[1].packets.empty()) return deliver(line, in, packets);
  Nanos due = kNever;
  for (Packet& packet : packets) {
    const Nanos at = line.line->carry(in, packet, now);
    if (at == DelayLine::kNotTaken) {
      deliver(line, in, packets.subspan(static_cast<std::size_t>(&packet - packets.data())));
      break;
    }
    due = std::min(due, at);
  }
  if (due < line.at()) wake_ups_.arm(line, due);
}

void Fabric::deliver(Member& to, Port in, std::span<const Packet> packets) {
  to.inboxes[turn_].add(in, packets);
  wake(to.number);
}

void Fabric::wake(unsigned device) { rounds_[turn_].add(device); }

void Fabric::advance_to(Nanos now) {
  while (next_deadline() < now) run(next_deadline());
}

void Fabric::run(Nanos now) {
  if (alone_) {
    if (next_deadline() <= now) wake(0);
  } else {
    wake_ups_.take_due(now, [this](Event& due) { wake(static_cast<Member&>(due).number); });
    wake_ups_.advance(now);
    // Of those that come behind this instant: memory needs as long as some of its devices.
    wake_ups_.look_ahead([](const Event& due) { static_cast<const Member&>(due).device->prefetch(); });
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
    round.take_all([&](unsigned device) { step(member(device), member(device).inboxes[turn], now); });
  }
}

void Fabric::step(Member& stepped, Inbox& inbox, Nanos now) {
  work_ += 1 + inbox.packets.size();
  if (stepped.line) {
    const Nanos next = release(stepped, now);
    if (inbox.packets.empty() && next > now) return schedule(stepped, next);
  }
  if (inbox.runs.size() == 1) {
    const Arrivals arrivals{inbox.runs[0].port, inbox.packets};
    stepped.device->step(now, {&arrivals, 1});
  } else {
    arrivals_.clear();
    std::size_t first = 0;
    for (const Inbox::Run& run : inbox.runs) {
      arrivals_.push_back({run.port, {inbox.packets.data() + first, run.end - first}});
      first = run.end;
    }
    stepped.device->step(now, arrivals_);
  }
  inbox.clear();
  if (!alone_) schedule(stepped, stepped.line ? release(stepped, now) : stepped.device->next_deadline());
}

// What is due of those that the line carries; when it is to be looked at next, whatever for.
Nanos Fabric::release(Member& carrier, Nanos now) {
  for (;;) {
    Nanos next;
    DelayLine::Released due = carrier.line->release(now, next);
    if (due.packet) leave(carrier, due.out, {&due.packet, 1}, now);
    if (!due.packet || next > now) return next;
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
