// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/fabric.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/kernel/delay_way.h"

namespace rocebox {
namespace {

// RoCEv2 that has been parsed and has its identity.
bool is_known(Packet packet) {
  const PacketMeta& meta = packet.meta();
  return meta.status == ParseStatus::kRoce && meta.identity != 0;
}

}  // namespace

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

void Fabric::number(Part& part, bool is_way) {
  part.number = static_cast<unsigned>(parts_.size());
  part.is_way = is_way;
  parts_.push_back(&part);
}

unsigned Fabric::add(Device& device) {
  const auto device_number = static_cast<unsigned>(members_.size());
  Member& added = *members_.emplace_back(std::make_unique<Member>());
  added.device = &device;
  added.device_number = device_number;
  added.wires.resize(device.ports().size());
  device.set_identities(identities_);
  added.line = device.line_path();
  for (Port in = 0; added.line && in < 2; in++) {
    Way& way = added.ways[in];
    way.way = &added.line->way(in);
    way.line = &added;
    way.in = in;
    number(way, true);
  }
  number(added, false);
  for (DeviceSet& round : rounds_) round.resize(parts_.size());
  device.set_sink([this, &added](Port out, std::span<Packet> packets, Nanos now) { leave(added, out, packets, now); });
  if (device_number == 0)
    alone_ = true;
  else
    end_alone();
  if (!alone_) schedule(added, device.next_deadline());  // what kernels armed at their start
  return device_number;
}

void Fabric::end_alone() {
  if (!std::exchange(alone_, false)) return;
  schedule(member(0), member(0).device->next_deadline());
}

void Fabric::join(FabricPort a, FabricPort b) {
  end_alone();
  set_wire(a, b);
  set_wire(b, a);
}

void Fabric::set_wire(FabricPort from, FabricPort to) {
  Member &left = member(from.device), &entered = member(to.device);
  left.wires[from.port] = {&entered, entered.line ? &entered.ways[to.port] : nullptr, to.port};
  if (left.line) left.ways[from.port ^ 1].wire = left.wires[from.port];
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
  const Wire& wire = from.wires[out];
  if (!wire.to) return output_({from.device_number, out}, packets, now);
  if (!from.taps.empty() && from.taps[out]) [[unlikely]]
    from.taps[out]({from.device_number, out}, packets, now);
  if (wire.way) return carry(*wire.way, packets, now);
  deliver(*wire.to, wire.port, packets);
}

void Fabric::carry(Way& into, std::span<Packet> packets, Nanos now) {
  DelayWay& way = *into.way;
  for (Packet& packet : packets) {
    if (!way.is_open() || into.line->waits) {
      deliver(*into.line, into.in, packets.subspan(static_cast<std::size_t>(&packet - packets.data())));
      break;
    }
    if (way.last_comes() > now) [[unlikely]]
      broken("a packet leaves while another one is being sent", into.line->device->name(), into.in);
    if (!is_known(packet) || way.is_watched()) [[unlikely]]
      into.line->line->comes(into.in, packet, now);
    put(into, packet, now);
  }
  if (!counts_late_) into.line->device->settle(now + 1);
}

inline void Fabric::put(Way& into, Packet packet, Nanos comes) {
  DelayWay& way = *into.way;
  const bool first = way.size() == 0;
  const Nanos due = way.put(packet, comes);
  if (first && way.gives()) wake_ups_.arm(into, due);
}

bool Fabric::leave_ahead(Member& from, Port out, Packet packet, Nanos now, Nanos at) {
  const Wire& wire = from.wires[out];
  if (!wire.way || (!from.taps.empty() && from.taps[out])) return false;
  Way& into = *wire.way;
  const DelayWay& way = *into.way;
  if (!way.is_open() || !way.gives() || way.is_watched() || way.last_comes() > now || into.line->waits ||
      !is_known(packet))
    return false;
  put(into, packet, at);
  return true;
}

void Fabric::let_send_ahead() {
  for (const auto& member : members_)
    member->device->set_ahead_sink([this, from = member.get()](Port out, Packet packet, Nanos now, Nanos at) {
      return leave_ahead(*from, out, packet, now, at);
    });
}

void Fabric::deliver(Member& to, Port in, std::span<const Packet> packets) {
  to.waits = true;
  to.inboxes[turn_].add(in, packets);
  rounds_[turn_].add(to.number);
}

void Fabric::wake(unsigned device) { rounds_[turn_].add(member(device).number); }

void Fabric::advance_to(Nanos now) {
  while (next_deadline() < now) run(next_deadline());
}

void Fabric::run(Nanos now) {
  now_ = now;
  if (alone_) {
    if (next_deadline() <= now) wake(0);
  } else {
    wake_ups_.take_due(now, [this](Event& due) { rounds_[turn_].add(static_cast<Part&>(due).number); });
    wake_ups_.advance(now);
    // Of those that come behind this instant: memory needs as long as some of its devices.
    wake_ups_.look_ahead([](const Event& due) {
      const Part& part = static_cast<const Part&>(due);
      if (part.is_way)
        __builtin_prefetch(static_cast<const Way&>(part).way, 1);
      else
        static_cast<const Member&>(part).device->prefetch();
    });
  }
  run_rounds(now);
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
      if (part.is_way)
        release(static_cast<Way&>(part), now);
      else
        step(static_cast<Member&>(part), static_cast<Member&>(part).inboxes[turn], now);
    });
  }
}

void Fabric::step(Member& stepped, Inbox& inbox, Nanos now) {
  work_ += 1 + inbox.packets.size();
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
  stepped.waits = !stepped.inboxes[turn_].packets.empty();
  if (!alone_) schedule(stepped, stepped.device->next_deadline());
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
    if (from.wire.to && !from.wire.way && from.line->taps.empty()) [[likely]]
      deliver(*from.wire.to, from.wire.port, {&packet, 1});
    else
      leave(*from.line, from.in ^ 1, {&packet, 1}, now);
  } while (way.next_at() <= now);
  if (way.size()) wake_ups_.arm(from, way.next_at());
  if (!counts_late_) from.line->device->settle(now + 1);
}

void Fabric::schedule(Member& due, Nanos at) {
  if (at == due.at()) return;
  if (at == kNever)
    wake_ups_.cancel(due);
  else
    wake_ups_.arm(due, at);
}

void Fabric::settle(Nanos before) {
  settled_ = std::max(settled_, before);
  for (const auto& member : members_) member->device->settle(settled_);
}

std::uint64_t Fabric::held() {
  if (counts_late_) settle(now_ + 1);
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member->device->books().conservation().held();
  return sum;
}

}  // namespace rocebox
