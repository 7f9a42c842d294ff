// SPDX-License-Identifier: BSD-3-Clause
// Between ingress and egress when there are rates or pauses. The egress control runs as a packet's transmission begins;
// the packet leaves when it ends. A packet that egress drops has used its time on the port, as on hardware.
#include <algorithm>
#include <cstring>

#include "runtime/packet/prefetch.h"
#include "runtime/roce/headers.h"
#include "switch_model/datapath.h"

namespace rocebox::switch_model {
namespace {

// 802.1Qbb, 36.1: to a reserved address, opcode 0x0101, classes, times; padded to the least frame without FCS.
constexpr std::uint32_t kPauseFrameBytes = 60;
constexpr std::uint8_t kPauseHead[] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01, 0x02, 0x00,
                                       0x00, 0x00, 0x00, 0x00, 0x88, 0x08, 0x01, 0x01};

}  // namespace

// Classes of what came in; pause frames end here.
void Datapath::classify(Context& context, Port in, std::span<PacketState> packets) {
  for (PacketState& p : packets) {
    p.traffic_class = traffic_.class_of(p.packet);
    if (p.packet.meta().status != ParseStatus::kNotIp || !traffic_.pause(in, p.packet, context.now())) continue;
    p.drop_reason = &traffic_.rx_pause_frames();
    if (std::find(due_ports_.begin(), due_ports_.end(), in) == due_ports_.end()) due_ports_.push_back(in);
  }
}

// True when the packet's egress begins now; else it waits, or was dropped.
bool Datapath::admit(Leaving& leaving, PacketState& p, Cause cause) {
  const Nanos now = leaving.context.now();
  Counter* reason = nullptr;
  const TrafficManager::Admission admission = traffic_.admit(p, leaving.context, marks_, reason);
  if (admission == TrafficManager::Admission::kDropped) {
    end(leaving, p, cause, *reason);
    return false;
  }
  const bool begins = admission == TrafficManager::Admission::kSendNow;
  if (!begins) {
    if (!cause.owned) leaving.batch->take(cause.after).release();
    arm_port(leaving.context, p.egress_port, traffic_.wake_at(p.egress_port, now));
  }
  if (!traffic_.pauses().empty()) collect_pauses(leaving.context, cause.after);
  return begins;
}

// A packet whose transmission takes time is kept until it ends, unless who gets it takes it now. False: it leaves now.
bool Datapath::hold(Leaving& leaving, PacketState& p, Cause cause) {
  const Nanos now = leaving.context.now(), ends = traffic_.ends_at(p.egress_port, now);
  if (ends <= now) return false;
  Transmission& transmission = transmissions_[p.egress_port];
  if (!transmission.packet && !traffic_.sends_pauses() && leaving.context.emit_at(p.packet, p.egress_port, ends)) {
    if (!cause.owned) leaving.batch->take(cause.after).release();
    return true;
  }
  // A timer of the same instant came before the one that ends the last transmission.
  if (transmission.packet) leaving.context.emit(std::move(transmission.packet), p.egress_port, cause.after);
  transmission.packet = cause.owned ? PacketPtr(p.packet) : leaving.batch->take(cause.after);
  arm_port(leaving.context, p.egress_port, ends);
  return true;
}

// A transmission has ended, a pause too, or a frame has ended it.
void Datapath::serve(Context& context, Port port) {
  Transmission& transmission = transmissions_[port];
  const Nanos now = context.now();
  if (transmission.packet && traffic_.ends_at(port, now) <= now) context.emit(std::move(transmission.packet), port);
  Leaving leaving{context, nullptr};
  while (traffic_.next(port, now, egress_[leaving.size], queueing_[leaving.size])) {
    if (!traffic_.pauses().empty()) collect_pauses(context, 0);
    egress_[leaving.size].pipe = pipe_of_[port];
    causes_[leaving.size] = {0, true};
    if (++leaving.size == kBatchMax) egress(leaving);
  }
  finish(leaving);
  const Nanos wake = traffic_.wake_at(port, now);
  arm_port(context, port, transmission.packet ? traffic_.ends_at(port, now) : wake);
}

// The port of a timer by its place: reading it would wait for it.
void Datapath::prefetch(const Timer& timer) const {
  const auto bytes = reinterpret_cast<std::uintptr_t>(&timer) - reinterpret_cast<std::uintptr_t>(transmissions_.data());
  const std::size_t port = bytes / sizeof(Transmission);
  if (port >= transmissions_.size()) return;
  traffic_.prefetch(static_cast<Port>(port));
  if (const PacketPtr& packet = transmissions_[port].packet) packet->prefetch();
}

void Datapath::prefetch_arrival(Port /*in*/, Packet packet) const {
  for (const unsigned i : controls_[static_cast<std::size_t>(Gress::kIngress)]) programs_[i]->prefetch(packet);
}

void Datapath::prefetch_turn(bool is_near) const {
  traffic_.prefetch_turn(is_near);
  for (const Transmission& transmission : transmissions_)
    if (!is_near)
      prefetch_far_line(&transmission);
    else if (transmission.packet)
      transmission.packet->prefetch_far();
}

void Datapath::arm_port(Context& context, Port port, Nanos at) { context.arm_by(transmissions_[port].timer, at); }

void Datapath::collect_pauses(Context& context, unsigned after) {
  for (const PauseRequest& request : traffic_.pauses()) {
    pauses_.push_back({after, request});
    // All are repeated with the one that has to be soonest: a fast port's, whose quanta are short.
    if (request.quanta) context.arm_by(pause_timer_, context.now() + request.repeat_in);
  }
  traffic_.clear_pauses();
}

void Datapath::repeat_pauses(Context& context) {
  traffic_.refresh();
  Leaving leaving{context, nullptr};
  collect_pauses(context, 0);
  finish(leaving);
}

// Those that packets before `before` have led to.
void Datapath::send_pauses(Leaving& leaving, unsigned before) {
  std::size_t sent = 0;
  for (; sent < pauses_.size() && pauses_[sent].after < before; sent++) {
    const PauseRequest& request = pauses_[sent].request;
    PacketPtr frame = leaving.context.allocate(kPauseFrameBytes);
    if (!frame) {
      count_.copy_failed.add();
      continue;
    }
    std::uint8_t* data = frame->data();
    std::memset(data, 0, kPauseFrameBytes);
    std::memcpy(data, kPauseHead, sizeof kPauseHead);
    data[11] = request.port;
    data[17] = static_cast<std::uint8_t>(1u << request.traffic_class);
    reinterpret_cast<roce::Be16*>(data + 18)[request.traffic_class] = request.quanta;
    leaving.context.emit(std::move(frame), request.port, pauses_[sent].after);
  }
  pauses_.erase(pauses_.begin(), pauses_.begin() + static_cast<std::ptrdiff_t>(sent));
}

}  // namespace rocebox::switch_model
