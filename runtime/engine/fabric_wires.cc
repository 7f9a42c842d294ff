// SPDX-License-Identifier: BSD-3-Clause
// What a fabric is made of: devices, wires, taps.
#include <utility>

#include "runtime/engine/fabric.h"
#include "runtime/kernel/delay_way.h"

namespace rocebox {

Fabric::~Fabric() {
  for (const auto& member : members_)
    for (const Inbox& inbox : member->inboxes) {
      if (inbox.one) rte_pktmbuf_free(inbox.one.mbuf());
      for (Packet packet : inbox.many->packets) rte_pktmbuf_free(packet.mbuf());
    }
}

void Fabric::number(Part& part, bool is_way) {
  part.number = static_cast<unsigned>(parts_.size());
  part.is_way = is_way;
  parts_.push_back(&part);
}

unsigned Fabric::add(Device& device) {
  const auto device_number = static_cast<unsigned>(members_.size());
  Member& added = *members_.emplace_back(std::make_unique<Member>());
  added.fabric = this;
  added.device = &device;
  added.hot = device.hot();
  added.device_number = device_number;
  added.wires.resize(device.ports().size());
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
  if (device_number == 0) {
    alone_ = true;  // what comes to it comes anew: it parses and numbers all
  } else {
    end_alone();
    device.set_identities(identities_);
  }
  if (!alone_) schedule(added, device.next_deadline());  // what kernels armed at their start
  return device_number;
}

void Fabric::end_alone() {
  if (!std::exchange(alone_, false)) return;
  member(0).device->set_identities(identities_);
  schedule(member(0), member(0).device->next_deadline());
}

void Fabric::join(FabricPort a, FabricPort b) {
  end_alone();
  set_wire(a, b);
  set_wire(b, a);
}

void Fabric::set_wire(FabricPort from, FabricPort to) {
  Member &left = member(from.device), &entered = member(to.device);
  Way* const way = entered.line ? &entered.ways[to.port] : nullptr;
  left.wires[from.port] = {&entered, way, way ? way->way : nullptr, nullptr, to.port};
  if (left.line) left.ways[from.port ^ 1].wire = left.wires[from.port];
  left.look_for_short_cuts();
}

void Fabric::tap(FabricPort port, Tap tap) {
  Member& tapped = member(port.device);
  tapped.taps.resize(tapped.wires.size());
  tapped.taps[port.port] = std::move(tap);
  tapped.look_for_short_cuts();
}

void Fabric::let_output_share() {
  for (const auto& member : members_)
    for (std::size_t port = 0; port < member->wires.size(); port++)
      if (!member->wires[port].to) member->device->allow_shared(static_cast<Port>(port));
}

void Fabric::let_send_ahead() {
  for (const auto& member : members_)
    member->device->set_ahead_sink({member.get(), [](void* owner, Port out, Packet packet, Nanos now, Nanos at) {
                                      Member& from = *static_cast<Member*>(owner);
                                      return from.fabric->leave_ahead(from, out, packet, now, at);
                                    }});
}

}  // namespace rocebox
