// SPDX-License-Identifier: BSD-3-Clause
// Delivery: packets to the host or into the reordering buffer. delivery_release.cc says what leaves that when.
#include "kernels/lowar/delivery.h"

#include <utility>

#include "kernels/lowar/image.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

Delivery::Delivery(const Config& config, DecodeCounters& count, Streams& streams)
    : config_(config),
      count_(count),
      streams_(streams),
      units_(static_cast<std::uint32_t>(config.units),
             static_cast<std::uint32_t>(sizeof(CodedPrefix)) + config.transport_bytes_max()),
      buffer_(static_cast<std::size_t>(config.reordering)),
      rebuilder_(buffer_, units_, count_),
      timers_(static_cast<std::size_t>(config.streams)) {}

bool Delivery::retire(Stream& stream) {
  if (!stream.order.idle()) return false;
  stream.block.release_units(units_);
  count_.streams_aged.add();
  return true;
}

void Delivery::arrive(Outlet& outlet, Stream& stream, Packet packet, bool usable) {
  const std::uint32_t psn = psn_of(packet);
  if (!may_leave(stream, packet, psn)) return wait(outlet, stream, packet, usable);
  const Nanos now = outlet.context.now();
  stream.order.note_arrival(!roce::opcode_info(packet).has(roce::kStartsMessage), now, config_.hold_max);
  hand_over(now, stream, packet, usable);  // and it passes in place
  if (!stream.order.idle()) release(outlet, stream, psn);
}

// Whether the packet is the next one. What a message that may begin anywhere would overtake is behind a lost packet of
// the message before.
bool Delivery::may_leave(const Stream& stream, Packet packet, std::uint32_t psn) const {
  if (psn == stream.sequence.expected()) return true;
  return !stream.order.has_before(buffer_, psn) && stream.sequence.is_next(packet, psn);
}

// An idle stream other than this one gives its coding units.
void Delivery::retire_for_unit(Nanos now, const Stream& stream) {
  streams_.retire(now, [&](Stream& other) { return &other != &stream && retire(other); });
}

// Behind a lost packet.
void Delivery::wait(Outlet& outlet, Stream& stream, Packet packet, bool usable) {
  const std::uint32_t psn = psn_of(packet);
  const Nanos now = outlet.context.now();
  if (stream.order.replace_rebuilt(buffer_, packet)) {
    stream.recovered.take(packet, now);  // what comes once more passes
    return outlet.batch->drop(outlet.slot, count_.drop_late);
  }
  const bool starts_message = roce::opcode_info(packet).has(roce::kStartsMessage);
  stream.order.note_arrival(!starts_message && stream.order.came_before(buffer_, psn), now, config_.hold_max);
  if (buffer_.full()) [[unlikely]]
    return wait_where_full(outlet, stream, packet, usable);
  hold(stream, outlet.batch->take(outlet.slot), psn, now, {.usable = usable});
  release(outlet, stream, psn);
}

void Delivery::hold(Stream& stream, PacketPtr packet, std::uint32_t psn, Nanos now, ReorderingBuffer::Kind kind) {
  stream.order.hold(buffer_, std::move(packet), psn, now, kind);
  count_.held.add();
  count_.held_max.raise_to(buffer_.used());
}

// What is missing before the packets that wait is given up until there is room, or none waits.
void Delivery::make_room(Outlet& outlet, Stream& stream) {
  const std::uint64_t before = count_.released.read();
  while (buffer_.full() && !stream.order.empty()) give_up_next(outlet, stream);
  count_.released_full.add(count_.released.read() - before);
}

// The packet comes behind all that is let go for it.
void Delivery::wait_where_full(Outlet& outlet, Stream& stream, Packet packet, bool usable) {
  const Nanos now = outlet.context.now();
  const std::uint32_t psn = psn_of(packet);
  PacketPtr taken = outlet.batch->take(outlet.slot);
  make_room(outlet, stream);
  if (buffer_.full()) {  // of other streams' packets
    const std::uint32_t lost = stream.sequence.lost_before(packet, psn);
    give_up(stream, psn, lost);
    count_.released_full.add(lost);
  }
  if (!stream.order.keeps_order())
    follow_uncoded(stream, packet);
  else if (stream.sequence.ahead(psn) < 0)
    count_.old.add();
  else if (may_leave(stream, packet, psn))
    hand_over(now, stream, packet, usable);
  else
    hold(stream, std::move(taken), psn, now, {.usable = usable});
  if (taken) outlet.emit(std::move(taken));
  release(outlet, stream);
}

void Delivery::begin_at(Outlet& outlet, Stream& stream, Packet packet, bool usable) {
  const std::uint32_t psn = psn_of(packet);
  PacketPtr taken = outlet.batch->take(outlet.slot);
  give_up_all(outlet, stream);
  restart(stream, psn, psn);
  hand_over(outlet.context.now(), stream, packet, usable);
  outlet.emit(std::move(taken));
}

void Delivery::duplicate(Outlet& outlet, Stream& stream, bool restart) {
  PacketPtr taken;
  if (!stream.order.empty()) {  // it was sent after those that wait
    taken = outlet.batch->take(outlet.slot);
    if (!buffer_.full()) {
      stream.order.hold_last(buffer_, std::move(taken), outlet.context.now());
      count_.held.add();
      count_.held_max.raise_to(buffer_.used());
    }
  }
  if (restart) give_up_all(outlet, stream);
  if (taken) outlet.emit(std::move(taken));
}

void Delivery::acknowledge(Outlet& outlet, Stream& stream, Packet packet) {
  const std::uint32_t psn = psn_of(packet);
  const Nanos now = outlet.context.now();
  PacketPtr taken = outlet.batch->take(outlet.slot);
  if (!buffer_.full()) return hold(stream, std::move(taken), psn, now, {.unsequenced = true});
  make_room(outlet, stream);
  if (stream.order.empty() || stream.sequence.ahead(psn) < 0)
    outlet.emit(std::move(taken));
  else
    hold(stream, std::move(taken), psn, now, {.unsequenced = true});
  release(outlet, stream);
}

void Delivery::follow_uncoded(Stream& stream, Packet packet) {
  using Duplicate = ReceiveSequence::Duplicate;
  const std::uint32_t psn = psn_of(packet);
  const std::int32_t ahead = stream.sequence.ahead(psn);
  if (ahead < 0 && ahead >= -kWindowPsns) {  // sent again, or overtaken
    const Duplicate duplicate = stream.sequence.note_duplicate(psn, static_cast<std::uint32_t>(config_.reorder));
    if (duplicate == Duplicate::kGivenUp) stream.take_back_lost();
    if (duplicate != Duplicate::kRun) return;
    stream.sequence.follow_run();
  }
  if (ahead > 0 && ahead <= kWindowPsns && !stream.sequence.is_next(packet, psn)) {
    stream.count_lost(stream.sequence.lost_before(packet, psn));
    stream.sequence.note_gap(ahead);
  }
  stream.adaptation.leave_out(ahead);
  stream.adaptation.came();
  if (config_.adapt) stream.adaptation.count_message(packet, psn);
  stream.sequence.jump(psn);
  stream.sequence.advance(packet, psn);
}

void Delivery::restart(Stream& stream, std::uint32_t psn, std::uint32_t began) {
  count_.restarts.add();
  stream.adaptation.restart(psn, stream.sequence.expected());
  if (stream.sequence.ahead(psn) < 0) stream.recovered.await_at_any_psn();
  stream.block.lose_alignment(units_);
  stream.order.interrupt_arrivals();  // what passed before the host went back is no distance within a message
  stream.sequence.restart(psn, began);
}

void Delivery::end_coding(Stream& stream) {
  stream.order.stop();
  stream.recovered.await_at_any_psn();
  stream.block.release_units(units_);
}

}  // namespace rocebox::lowar
