// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/loopback.h"

#include "nic_model/core.h"

namespace rocebox::nic_model {

Loopback::Loopback(const LoopbackConfig& config)
    : latency_(config.latency), rate_(config.rate), timer_(timer_tag(TimerOf::kLoopback)) {}

void Loopback::add(Context& context, Qp& qp) {
  if (qp.is_ready) return;
  qp.is_ready = true;
  ready_.push_back(qp);
  if (ring_.empty()) ring_.resize(kLoopbackPackets);
  // With the ring full the first arrival makes room.
  if (end_ - first_ < kLoopbackPackets) context.arm_by(timer_, context.now());
}

void Loopback::remove(Qp& qp) {
  if (ready_.remove(qp)) qp.is_ready = false;
}

PacketPtr Loopback::choose(Context& context) {
  Qp& qp = ready_.pop();
  qp.is_ready = false;
  const bool requests = qp.requester.wants_to_send(context.now());
  qp.responds = qp.responder.wants_to_send() && !(qp.responds && requests);
  PacketPtr packet = qp.responds ? qp.responder.send(context) : requests ? qp.requester.send(context) : PacketPtr();
  if (!qp.is_ready && (qp.responder.wants_to_send() || qp.requester.wants_to_send(context.now()))) {
    qp.is_ready = true;
    ready_.push_back(qp);
  }
  return packet;
}

void Loopback::send(Context& context) {
  bool dry = false;  // no packet buffer: some time must pass until there is one
  while (!ready_.empty() && end_ - first_ < kLoopbackPackets && !dry) {
    PacketPtr packet = choose(context);
    if (!packet) {
      dry = !ready_.empty();
      continue;
    }
    Nanos sent = context.now();
    if (!rate_.unlimited()) {
      const RateQueue::Free free = rate_.after_the_last(context.now(), packet->wire_bytes());
      rate_.accept(free);
      sent = free.rounded_up();
    }
    ring_[end_++ % ring_.size()] = {std::move(packet), sent + latency_};
  }
  if (first_ != end_)
    context.arm(timer_, std::max(context.now(), ring_[first_ % ring_.size()].due));
  else if (dry)
    context.arm(timer_, context.now() + kMicrosecond);
}

}  // namespace rocebox::nic_model
