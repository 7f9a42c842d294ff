// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/transmitter.h"

#include <cmath>

#include "nic_model/core.h"

namespace rocebox::nic_model {

void QpList::push_back(Qp& qp) {
  qp.next_ready = nullptr;
  qp.soon_ready = nullptr;
  if (Qp* before = std::exchange(recent[pushed++ % kAhead], &qp)) before->soon_ready = &qp;
  (last ? last->next_ready : first) = &qp;
  last = &qp;
}

void QpList::push_front(Qp& qp) {
  qp.next_ready = first;
  first = &qp;
  if (!last) last = &qp;
}

Qp& QpList::pop() {
  Qp& qp = *first;
  first = qp.next_ready;
  if (!first) last = nullptr;
  return qp;
}

bool QpList::remove(Qp& qp) {
  for (Qp*& one : recent)
    if (one == &qp) one = nullptr;
  Qp* before = nullptr;
  Qp* at = first;
  for (; at && at != &qp; at = at->next_ready) before = at;
  if (!at) return false;
  (before ? before->next_ready : first) = qp.next_ready;
  if (last == &qp) last = before;
  return true;
}

void QpList::append(QpList& other) {
  if (other.empty()) return;
  (last ? last->next_ready : first) = other.first;
  last = other.last;
  other.first = other.last = nullptr;
}

Transmitter::Transmitter(const NicConfig& config)
    : config_(config),
      rate_(config.rate),
      catch_up_(config.rate ? static_cast<Nanos>(static_cast<double>(config.limiter.port_burst) * 8e9 /
                                                 static_cast<double>(config.rate))
                            : 0),
      overhead_bytes_(config.overhead),
      timer_(timer_tag(TimerOf::kTransmitter)),
      reads_timer_(timer_tag(TimerOf::kReads)),
      is_greedy_(config.scheduler.policy == SchedulerPolicy::kGreedy),
      ahead_bytes_(is_greedy_ ? config.scheduler.ahead : kStagedBytes),
      control_(kControlPacketsMax),
      staged_(config.scheduler.policy == SchedulerPolicy::kGreedy || config.pcie.bandwidth ? kStagedPackets : 0) {
  for (int priority = 7; priority >= 0; priority--)
    for (const GroupConfig& one : config.scheduler.groups)
      if (one.strict && one.priority == priority) groups_.push_back({true, 1, 0, {}});
  for (const GroupConfig& one : config.scheduler.groups)
    if (!one.strict) groups_.push_back({false, one.weight, 0, {}});
  groups_.push_back({});  // of all priorities that no row names
  std::fill_n(group_of_, 8, static_cast<std::uint8_t>(groups_.size() - 1));
  std::uint8_t next = 0;
  for (int priority = 7; priority >= 0; priority--)
    for (const GroupConfig& one : config.scheduler.groups)
      if (one.strict && one.priority == priority) group_of_[priority] = next++;
  for (const GroupConfig& one : config.scheduler.groups)
    if (!one.strict) group_of_[one.priority] = next++;
}

void Transmitter::enter(Qp& qp, bool first) {
  qp.is_ready = true;
  QpList& list = groups_[groups_.size() == 1 ? 0 : group_of_[qp.priority()]].ready;
  if (first)
    list.push_front(qp);
  else
    list.push_back(qp);
}

void Transmitter::add(Context& context, Qp& qp) {
  if (qp.is_ready) return;
  enter(qp, false);
  if (is_limited_ && !staged_.empty()) context.arm_by(timer_, context.now());  // its data are asked for at once
  arm(context);
}

bool Transmitter::add_control(Context& context, PacketPtr& packet) {
  if (control_end_ - control_first_ >= kControlPacketsMax) return false;
  control_[control_end_++ % kControlPacketsMax] = std::move(packet);
  if (is_limited_) context.arm_by(timer_, context.now());
  arm(context);
  return true;
}

void Transmitter::remove(Qp& qp) {
  for (Group& group : groups_) group.ready.remove(qp);
  for (QpList& list : parked_) list.remove(qp);
  qp.is_ready = false;
}

void Transmitter::set_paused(Context& context, std::uint8_t priorities) {
  paused_ = priorities;
  for (unsigned priority = 0; priority < 8; priority++) {
    if ((paused_ >> priority & 1) || parked_[priority].empty()) continue;
    groups_[group_of_[priority]].ready.append(parked_[priority]);
    arm(context);
  }
}

// While a packet leaves, the timer stands for its end.
void Transmitter::arm(Context& context) {
  if (!timer_.armed()) context.arm(timer_, context.now());
}

bool Transmitter::any_ready() const {
  for (const Group& group : groups_)
    if (!group.ready.empty()) return true;
  return false;
}

// Strict groups in their order; then weighted ones, each as long as its credit lasts (surplus round robin).
Transmitter::Group* Transmitter::next_group() {
  if (groups_.size() == 1) return groups_[0].ready.empty() ? nullptr : &groups_[0];
  bool any = false;
  for (Group& group : groups_) {
    if (group.ready.empty()) {
      group.credit = std::min<std::int64_t>(group.credit, 0);  // who has nothing to send saves nothing up
      continue;
    }
    if (group.strict) return &group;
    any = true;
  }
  while (any) {
    for (std::size_t i = 0; i < groups_.size(); i++) {
      Group& group = groups_[(turn_ + i) % groups_.size()];
      if (group.strict || group.ready.empty() || group.credit <= 0) continue;
      turn_ = (turn_ + i) % groups_.size();
      return &group;
    }
    turn_ = (turn_ + 1) % groups_.size();
    for (Group& group : groups_)
      if (!group.ready.empty()) group.credit += group.weight * kGroupTurnBytes;
  }
  return nullptr;
}

// Greedy: a message that was begun goes to its end, and others follow it in the same turn while they are short.
bool Transmitter::goes_on(Qp& qp, Packet packet) const {
  qp.turn_bytes += packet.meta().payload_bytes;
  const bool in_message = qp.responds ? qp.responder.in_message() : qp.requester.in_message();
  if (in_message || qp.turn_bytes < config_.scheduler.turn) return true;
  qp.turn_bytes = 0;
  return false;
}

PacketPtr Transmitter::choose(Context& context) {
  while (Group* group = next_group()) {
    Qp& qp = group->ready.pop();
    if (qp.soon_ready && qp.soon_ready != &qp) qp.soon_ready->prefetch_to_send();
    if (const Qp* next = group->ready.first; next && next->next_ready) next->next_ready->prefetch_rings_to_send();
    if (paused_ && paused_ >> qp.priority() & 1) [[unlikely]] {
      parked_[qp.priority()].push_back(qp);
      continue;
    }
    qp.is_ready = false;
    const bool responses = qp.responder.wants_to_send();
    const bool requests = qp.requester.wants_to_send(context.now());
    // A long READ does not keep the queue pair's own requests back, nor they its responses.
    if (qp.turn_bytes == 0 || !(qp.responds ? responses : requests)) {
      qp.responds = responses && !(qp.responds && requests);
      qp.turn_bytes = 0;
    }
    PacketPtr packet = qp.responds ? qp.responder.send(context) : requests ? qp.requester.send(context) : PacketPtr();
    const bool first = packet && is_greedy_ && goes_on(qp, *packet);
    if (packet) group->credit -= static_cast<std::int64_t>(packet->wire_bytes() + overhead_bytes_);
    if (!qp.responder.wants_to_send() && !qp.requester.wants_to_send(context.now()))
      qp.turn_bytes = 0;
    else if (!qp.is_ready)  // one that has failed in its turn has asked for another by itself
      enter(qp, first);
    if (packet) return packet;
    if (qp.is_ready) return {};  // no buffer: later
  }
  return {};
}

// When the packet's data have come: one read behind the other at PCIe's bandwidth, and its latency.
Nanos Transmitter::read(Nanos now, Packet packet) {
  const PcieConfig& pcie = config_.pcie;
  if (pcie.bandwidth == 0 || packet.meta().payload_bytes == 0) return now;
  pcie_free_ = std::max(pcie_free_, static_cast<double>(now)) +
               packet.meta().payload_bytes * 8e9 / static_cast<double>(pcie.bandwidth);
  const Nanos ready = static_cast<Nanos>(pcie_free_) + pcie.read_latency;
  pcie_latency_ = ready - now;
  pcie_bytes_ += packet.meta().payload_bytes;
  return ready;
}

void Transmitter::stage(Context& context) {
  const Nanos now = context.now();
  const std::size_t most = config_.pcie.bandwidth ? static_cast<std::size_t>(config_.pcie.outstanding_reads) : SIZE_MAX;
  std::size_t reads = 0;     // under way: they end in order
  Nanos next_ends = kNever;  // of these
  for (std::size_t i = staged_end_; config_.pcie.bandwidth && i != staged_first_; i--) {
    const Staged& one = staged_[(i - 1) % kStagedPackets];
    if (one.packet->meta().payload_bytes == 0) continue;  // none was read for it
    if (one.ready <= now) break;
    reads++;
    next_ends = one.ready;
  }
  while (staged_bytes_ < ahead_bytes_ && staged_end_ - staged_first_ < kStagedPackets && reads < most) {
    PacketPtr one = choose(context);
    if (!one) break;
    staged_bytes_ += one->wire_bytes();
    const Nanos ready = read(now, *one);
    if (ready > now && reads++ == 0) next_ends = ready;
    staged_[staged_end_++ % kStagedPackets] = {std::move(one), ready};
  }
  if (reads >= most) context.arm(reads_timer_, next_ends);
}

// In the order in which they were chosen. Empty: there is none, or the first one's data have not come.
PacketPtr Transmitter::take_staged(Context& context) {
  stage(context);
  if (staged_first_ == staged_end_) return {};
  Staged& first = staged_[staged_first_ % kStagedPackets];
  if (first.ready > context.now()) {
    is_limited_ = true;
    context.arm(timer_, first.ready);
    return {};
  }
  staged_first_++;
  staged_bytes_ -= first.packet->wire_bytes();
  return std::move(first.packet);
}

// The next packet; empty: there is none, or the port's token bucket is.
PacketPtr Transmitter::take(Context& context) {
  is_limited_ = false;
  if (control_first_ != control_end_) return std::move(control_[control_first_++ % kControlPacketsMax]);
  const LimiterConfig& limit = config_.limiter;
  const auto now = static_cast<double>(context.now());
  if (limit.port_rate && now < port_until_) {
    is_limited_ = true;
    context.arm(timer_, static_cast<Nanos>(std::ceil(port_until_)));
    return {};
  }
  PacketPtr packet = staged_.empty() ? choose(context) : take_staged(context);
  if (packet && limit.port_rate) {
    const double nanos_per_byte = 8e9 / static_cast<double>(limit.port_rate);
    port_until_ = std::max(port_until_, now - static_cast<double>(limit.port_burst) * nanos_per_byte) +
                  static_cast<double>(packet->wire_bytes() + overhead_bytes_) * nanos_per_byte;
  }
  return packet;
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

void Transmitter::prefetch(const Timer& timer) const {
  if (&timer == &timer_) prefetch_first();
}

void Transmitter::prefetch_first() const {
  if (leaving_) leaving_->prefetch();
  if (const Qp* qp = groups_[0].ready.first) qp->prefetch_to_send();
}

void Transmitter::run(Context& context, Core& core) {
  if (leaving_) leave(context, core, std::move(leaving_));
  for (unsigned i = 0; i < kSendBurst; i++) {
    PacketPtr packet = take(context);
    if (!packet) {
      // With queue pairs left only a packet buffer is missing, and some time must pass until there is one.
      if (!is_limited_ && any_ready()) context.arm(timer_, context.now() + kMicrosecond);
      return;
    }
    if (rate_.unlimited()) {
      leave(context, core, std::move(packet));
      continue;
    }
    const RateQueue::Free free =
        rate_.after_the_last(context.now() - catch_up_, packet->wire_bytes() + overhead_bytes_);
    rate_.accept(free);
    // A port that catches up would have sent it before now. A whole bucket of that in one call would starve all else.
    if (free.rounded_up() <= context.now()) {
      leave(context, core, std::move(packet));
      continue;
    }
    leaving_ = std::move(packet);
    context.arm(timer_, free.rounded_up());
    return;
  }
  if (any_ready() || control_first_ != control_end_ || staged_first_ != staged_end_)
    context.arm(timer_, context.now() + 1);
}

}  // namespace rocebox::nic_model
