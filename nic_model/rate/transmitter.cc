// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/transmitter.h"

#include "nic_model/core.h"

namespace rocebox::nic_model {

Transmitter::Transmitter(const NicConfig& config)
    : rate_(config.rate),
      overhead_bytes_(config.overhead),
      timer_(timer_tag(TimerOf::kTransmitter)),
      control_(kControlPacketsMax) {}

void Transmitter::add(Context& context, Qp& qp) {
  if (qp.is_ready) return;
  qp.is_ready = true;
  qp.next_ready = nullptr;
  (last_ ? last_->next_ready : first_) = &qp;
  last_ = &qp;
  arm(context);
}

bool Transmitter::add_control(Context& context, PacketPtr& packet) {
  if (control_end_ - control_first_ >= kControlPacketsMax) return false;
  control_[control_end_++ % kControlPacketsMax] = std::move(packet);
  arm(context);
  return true;
}

void Transmitter::remove(Qp& qp) {
  if (!qp.is_ready) return;
  Qp* before = nullptr;
  for (Qp* at = first_; at != &qp; at = at->next_ready) before = at;
  (before ? before->next_ready : first_) = qp.next_ready;
  if (last_ == &qp) last_ = before;
  qp.is_ready = false;
}

// While a packet leaves, the timer stands for its end.
void Transmitter::arm(Context& context) {
  if (!timer_.armed()) context.arm(timer_, context.now());
}

PacketPtr Transmitter::choose(Context& context) {
  if (control_first_ != control_end_) return std::move(control_[control_first_++ % kControlPacketsMax]);
  while (first_) {
    Qp& qp = *first_;
    first_ = qp.next_ready;
    if (!first_) last_ = nullptr;
    qp.is_ready = false;
    const bool requests = qp.requester.wants_to_send(context.now());
    // A long READ does not keep the queue pair's own requests back, nor they its responses.
    qp.responds = qp.responder.wants_to_send() && !(qp.responds && requests);
    PacketPtr packet = qp.responds ? qp.responder.send(context) : requests ? qp.requester.send(context) : PacketPtr();
    if (qp.responder.wants_to_send() || qp.requester.wants_to_send(context.now())) {
      qp.is_ready = true;
      qp.next_ready = nullptr;
      (last_ ? last_->next_ready : first_) = &qp;
      last_ = &qp;
    }
    if (packet) return packet;
    if (qp.is_ready) return {};  // no buffer: later
  }
  return {};
}

void Transmitter::leave(Context& context, Core& core, PacketPtr packet) {
  if (!core.up) [[unlikely]]
    return context.drop(std::move(packet), core.count.drop_tx_down);
  if (packet->meta().bth_offset) {
    core.count.tx_roce_packets.add();
    core.count.tx_roce_bytes.add(packet->wire_bytes());
  }
  context.emit(std::move(packet), 0);
}

void Transmitter::run(Context& context, Core& core) {
  if (leaving_) leave(context, core, std::move(leaving_));
  for (unsigned i = 0; i < kSendBurst; i++) {
    PacketPtr packet = choose(context);
    if (!packet) {
      // With queue pairs left only a packet buffer is missing, and some time must pass until there is one.
      if (first_) context.arm(timer_, context.now() + kMicrosecond);
      return;
    }
    if (rate_.unlimited()) {
      leave(context, core, std::move(packet));
      continue;
    }
    const RateQueue::Free free = rate_.after(context.now(), packet->wire_bytes() + overhead_bytes_);
    rate_.accept(free);
    leaving_ = std::move(packet);
    context.arm(timer_, free.rounded_up());
    return;
  }
  if (first_ || control_first_ != control_end_) context.arm(timer_, context.now() + 1);
}

}  // namespace rocebox::nic_model
