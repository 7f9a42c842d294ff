// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/fabric.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rocebox {

Fabric::~Fabric() {
  for (const auto& member : members_)
    for (Inbox* inbox : {&member->now, &member->next})
      for (Inbox::Run& run : inbox->runs)
        for (Packet packet : run.packets) rte_pktmbuf_free(packet.mbuf());
}

void Fabric::Inbox::add(Port port, std::span<const Packet> packets) {
  if (used == 0 || runs[used - 1].port != port) {
    if (used == runs.size()) runs.emplace_back();
    runs[used++].port = port;
  }
  std::vector<Packet>& last = runs[used - 1].packets;
  last.insert(last.end(), packets.begin(), packets.end());
}

void Fabric::Inbox::clear() {
  for (std::size_t i = 0; i < used; i++) runs[i].packets.clear();
  used = 0;
}

unsigned Fabric::add(Device& device) {
  const auto number = static_cast<unsigned>(members_.size());
  Member& added = *members_.emplace_back(std::make_unique<Member>());
  added.device = &device;
  added.number = number;
  added.peers.assign(device.ports().size(), -1);
  device.set_identities(identities_);
  device.set_sink([this, number](Port out, std::span<Packet> packets, Nanos now) {
    const Member& from = member(number);
    const int peer = from.peers[out];
    if (peer < 0) return output_({number, out}, packets, now);
    if (!from.taps.empty() && from.taps[out]) [[unlikely]]
      from.taps[out]({number, out}, packets, now);
    deliver(far_ends_[static_cast<std::size_t>(peer)], packets);
  });
  if (number == 0)
    alone_ = true;
  else
    end_alone();
  if (!alone_) schedule(number);  // what kernels armed at their start
  return number;
}

void Fabric::end_alone() {
  if (!std::exchange(alone_, false)) return;
  schedule(0);
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

void Fabric::deliver(FabricPort to, std::span<Packet> packets) {
  member(to.device).next.add(to.port, packets);
  wake(to.device);
}

void Fabric::wake(unsigned device) {
  if (std::exchange(member(device).queued, true)) return;
  next_round_.push_back(device);
}

void Fabric::advance_to(Nanos now) {
  while (next_deadline() < now) run(next_deadline());
}

void Fabric::run(Nanos now) {
  if (alone_) {
    if (next_deadline() <= now) wake(0);
  } else {
    while (wake_ups_.next() <= now) wake(static_cast<Member&>(wake_ups_.pop()).number);
  }
  run_rounds(now);
}

void Fabric::run(Nanos now, FabricPort to, std::span<Packet> packets) {
  if (!alone_ || !next_round_.empty()) {
    inject(to, packets);
    return run(now);
  }
  work_ += 1 + packets.size();
  const Arrivals arrivals{to.port, packets};
  member(0).device->step(now, {&arrivals, 1});
}

void Fabric::run_rounds(Nanos now) {
  for (unsigned rounds = 0; !next_round_.empty(); rounds++) {
    if (rounds == kRoundsPerInstantMax)
      throw std::runtime_error("devices hand packets round without end in one instant: device `" +
                               member(next_round_[0]).device->name() + "`; give a link between them a delay");
    round_.swap(next_round_);
    next_round_.clear();
    std::sort(round_.begin(), round_.end());
    for (unsigned device : round_) {
      Member& next = member(device);
      std::swap(next.now, next.next);
      next.queued = false;
    }
    for (unsigned device : round_) step(device, now);
  }
}

void Fabric::step(unsigned device, Nanos now) {
  Member& stepped = member(device);
  arrivals_.clear();
  work_++;
  for (std::size_t i = 0; i < stepped.now.used; i++) {
    arrivals_.push_back({stepped.now.runs[i].port, stepped.now.runs[i].packets});
    work_ += stepped.now.runs[i].packets.size();
  }
  stepped.device->step(now, arrivals_);
  stepped.now.clear();
  if (!alone_) schedule(device);
}

void Fabric::schedule(unsigned device) {
  Member& due = member(device);
  const Nanos deadline = due.device->next_deadline();
  if (deadline == kNever)
    wake_ups_.cancel(due);
  else if (deadline != wake_ups_.at(due))
    wake_ups_.arm(due, deadline, device);
}

std::uint64_t Fabric::held() const {
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member->device->books().conservation().held();
  return sum;
}

}  // namespace rocebox
