// SPDX-License-Identifier: BSD-3-Clause
// Decoder: what goes out, in order, and when a lost packet is given up.
#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/lowar/decoder.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

// Before a packet that is ahead. One, where the next message may begin anywhere: more may have been lost, but not all
// PSNs between two messages are packets.
std::uint32_t Decoder::lost_before(const Stream& stream, Packet packet, std::uint32_t psn) const {
  if (stream.lenient && (stream.message_ended || roce::opcode_info(packet).has(roce::kStartsMessage))) return 1;
  return static_cast<std::uint32_t>(psn_distance(psn, stream.expected));
}

// What is missing before `psn`, so many packets: the sequence goes on there.
void Decoder::give_up(Stream& stream, std::uint32_t psn, std::uint32_t lost) {
  count_.released.add(lost);
  lose(stream, lost);
  // A message's first packet, and perhaps others: its blocks are known all the same.
  if (stream.message_ended && !stream.lenient) begin_block(stream, stream.expected);
  const std::int32_t gap = psn_distance(psn, stream.expected);
  // What is given up block by block is one gap.
  const bool goes_on = stream.gap_packets && psn_add(stream.gap_psn, stream.gap_packets) == stream.expected &&
                       stream.gap_packets + gap <= kWindowPsns;
  if (!goes_on) stream.gap_psn = stream.expected;
  stream.gap_packets = static_cast<std::uint16_t>(goes_on ? stream.gap_packets + gap : gap);
  leave_message(stream, gap);
  stream.expected = stream.unannounced = psn;
  stream.last_psn = psn_add(psn, -1);
  release_units(stream);
}

// What is missing before a packet that waits. Of the next block, which is perhaps repaired, nothing is given up with
// this.
void Decoder::give_up_before(Stream& stream, Packet packet, std::uint32_t psn) {
  const std::uint32_t lost = lost_before(stream, packet, psn);
  const std::uint32_t end = next_block(stream);
  if (lost == 1 || end == stream.expected || !roce::psn_before(end, psn)) return give_up(stream, psn, lost);
  give_up(stream, end, static_cast<std::uint32_t>(psn_distance(end, stream.expected)));
}

// Where the block of the expected packet ends, as far as one knows.
std::uint32_t Decoder::next_block(const Stream& stream) const {
  const std::int32_t r = stream.next_coding.r;
  const std::int32_t left = stream.has_boundary ? psn_distance(stream.boundary, stream.expected) : 0;
  if (left > 0 && left <= r) return stream.boundary;
  return psn_add(stream.expected, r);
}

// The packet is handed over now: it goes into its unit, and the next one is awaited.
void Decoder::advance(Nanos now, Stream& stream, Packet packet, bool usable, bool rebuilt) {
  rebuilt ? lose(stream, 1) : stream.meter.came();
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const std::uint32_t psn = psn_of(packet);
  enter_block(stream, psn, info.has(roce::kStartsMessage));
  if (stream.whole && usable) {
    std::uint16_t& unit = stream.units[static_cast<unsigned>(psn_distance(psn, stream.base)) % stream.coding.c];
    if (unit == CodingUnits::kNone) unit = units_.bind();
    if (unit == CodingUnits::kNone && streams_.retire(now, release_idle(&stream))) unit = units_.bind();
    if (unit == CodingUnits::kNone)
      usable = false, count_.units_full.add();
    else
      units_.add(unit, packet);
  }
  if (!usable && stream.whole) release_units(stream);
  count_message(stream, packet, psn);
  stream.go_on(packet, psn);
  // The block is complete: nothing of it is lost, whatever its repair packets say.
  if (stream.message_ended || (stream.clocked && psn_distance(psn, stream.base) + 1 >= stream.coding.r))
    release_units(stream);
}

// Blocks begin with a message, where a repair packet said, and after every r packets.
void Decoder::enter_block(Stream& stream, std::uint32_t psn, bool starts_message) {
  if (starts_message || (stream.has_boundary && psn == stream.boundary)) return begin_block(stream, psn);
  if (!stream.clocked) return;
  const std::int32_t behind = psn_distance(psn, stream.base), r = stream.coding.r;
  if (behind < r) return;
  if (behind % r == 0) return begin_block(stream, psn);
  release_units(stream);  // the block's first packets were given up
  stream.base = psn_add(stream.base, behind / r * r);
}

void Decoder::begin_block(Stream& stream, std::uint32_t psn) {
  release_units(stream);
  stream.base = psn;
  stream.coding = stream.next_coding;
  stream.clocked = stream.whole = !stream.coding.off();
  stream.has_boundary = stream.has_boundary && roce::psn_before(psn, stream.boundary);
}

void Decoder::release_units(Stream& stream) {
  for (unsigned isn = 0; isn < stream.coding.c; isn++)
    if (stream.units[isn] != CodingUnits::kNone) units_.release(std::exchange(stream.units[isn], CodingUnits::kNone));
  stream.whole = false;
}

// Nothing is kept back any more, and no unit.
void Decoder::end_coding(Stream& stream) {
  stream.passive = true;
  stream.may_repeat |= stream.unreliable;
  release_units(stream);
}

void Decoder::drain(Exit& exit, Stream& stream) {
  while (!stream.held.empty()) {
    const std::uint16_t mine = stream.held.head;
    const ReorderingBuffer::Slot& slot = buffer_[mine];
    const bool before = roce::psn_before(slot.psn, stream.expected);  // a duplicate, or an ACK whose time has come
    if (slot.answer) {
      if (!before && !stream.message_ended) return;
    } else if (!before) {
      if (!stream.is_next(*slot.packet, slot.psn)) return;
      advance(exit.context.now(), stream, *slot.packet, slot.usable, slot.rebuilt);
    }
    exit.deliver(buffer_.remove(stream.held, mine));
  }
}

// Looks again at the repair packets that wait: at those that cover `news`, the PSN that has just come, or at all.
void Decoder::retry(Exit& exit, Stream& stream, std::uint32_t news) {
  for (std::uint16_t mine = stream.repairs.head; mine != ReorderingBuffer::kNone;) {
    const Packet packet = *buffer_[mine].packet;
    const RepairHeader header = *parse_repair(lowar_bytes(packet));
    const std::uint16_t next = buffer_[mine].next;
    if (news != kNoPsn && !header.covers(news)) {
      mine = next;
      continue;
    }
    const Outcome outcome = try_repair(exit, stream, packet, header);
    if (outcome == Outcome::kWaits) {
      mine = next;
      continue;
    }
    exit.context.drop(buffer_.remove(stream.repairs, mine), reason(outcome));
    stream.repairs_held--;
    mine = next;
    if (outcome != Outcome::kUsed) continue;
    drain(exit, stream);
    news = kNoPsn;
    mine = stream.repairs.head;
  }
}

// Gives up what is missing before the first packet that waits.
void Decoder::skip(Exit& exit, Stream& stream) {
  if (stream.held.empty()) {  // only repair packets told of it: the end of the last block that they cover is next
    std::uint32_t end = stream.expected;
    for (std::uint16_t i = stream.repairs.head; i != ReorderingBuffer::kNone; i = buffer_[i].next) {
      const RepairHeader header = *parse_repair(lowar_bytes(*buffer_[i].packet));
      const std::uint32_t its_end = psn_add(header.block.base_psn, header.block.packets);
      if (!roce::psn_before(end, its_end)) continue;
      end = its_end;
      stream.message_ended = header.block.has_last;
    }
    drop_repairs(exit.context, stream);
    give_up(stream, end, static_cast<std::uint32_t>(psn_distance(end, stream.expected)));
  } else if (buffer_[stream.held.head].answer) {  // it does not say how many were lost before it
    while (!stream.held.empty() && buffer_[stream.held.head].answer)
      exit.deliver(buffer_.remove(stream.held, stream.held.head));
    drain(exit, stream);
  } else {
    const ReorderingBuffer::Slot& first = buffer_[stream.held.head];
    if (roce::psn_after(first.psn, stream.expected))
      give_up_before(stream, *first.packet, first.psn);
    else
      release_units(stream);
    drain(exit, stream);
  }
  if (stream.heard || stream.passive) return;
  end_coding(stream);  // nobody codes at the far end, as far as one can see
  skip_all(exit, stream);
  release_units(stream);
}

// What is missing before `psn` is awaited no more, and was not lost on this link as far as one can know.
void Decoder::skip_to(Exit& exit, Stream& stream, std::uint32_t psn) {
  while (!stream.held.empty() && roce::psn_before(buffer_[stream.held.head].psn, psn)) skip(exit, stream);
  if (!roce::psn_before(stream.expected, psn)) return;
  leave_message(stream, psn_distance(psn, stream.expected));
  stream.expected = psn;
  release_units(stream);
  drain(exit, stream);
}

void Decoder::skip_all(Exit& exit, Stream& stream) {
  while (!stream.held.empty()) skip(exit, stream);
  drop_repairs(exit.context, stream);
}

void Decoder::drop_repairs(Context& context, Stream& stream) {
  while (!stream.repairs.empty())
    context.drop(buffer_.remove(stream.repairs, stream.repairs.head), count_.drop_repair_short);
  stream.repairs_held = 0;
}

// What could still repair has had its time: packets sent well after the block's repair packets have come.
bool Decoder::hopeless(const Stream& stream) const {
  if (stream.held.empty()) return false;
  std::uint16_t last = stream.held.tail;
  while (last != ReorderingBuffer::kNone && buffer_[last].answer) last = buffer_[last].previous;
  if (last == ReorderingBuffer::kNone) return false;
  std::uint32_t end = next_block(stream);
  for (std::uint16_t i = stream.repairs.head; i != ReorderingBuffer::kNone; i = buffer_[i].next) {
    const RepairHeader header = *parse_repair(lowar_bytes(*buffer_[i].packet));
    if (!roce::psn_in_window(stream.expected, header.block.base_psn, header.block.packets)) continue;
    end = psn_add(header.block.base_psn, header.block.packets);
    break;
  }
  return psn_distance(buffer_[last].psn, end) >= static_cast<std::int32_t>(config_.reorder);
}

// Twice the time that a block and what may overtake it take, as this stream's packets came so far, and twice the
// longest stall of late: what is waited for may lie behind the next one.
Nanos Decoder::patience(const Stream& stream) const {
  if (stream.gaps < kGapsMin) return config_.hold_max;
  const Nanos packets = stream.next_coding.r + stream.next_coding.c + config_.reorder;
  return std::clamp(2 * (packets * stream.spacing_16 / 16 + stream.stall), config_.hold_min, config_.hold_max);
}

// What can go goes. `news`: all that has changed is that the packet of this PSN has come.
void Decoder::release_ready(Exit& exit, Stream& stream, std::uint32_t news) {
  drain(exit, stream);
  retry(exit, stream, news);
  while (hopeless(stream)) {
    skip(exit, stream);
    retry(exit, stream);
  }
}

// When the oldest packet that waits has done so for long enough.
Nanos Decoder::patience_ends(const Stream& stream) const {
  Nanos since = std::numeric_limits<Nanos>::max();
  for (const std::uint16_t oldest : {stream.held.oldest, stream.repairs.oldest})
    if (oldest != ReorderingBuffer::kNone) since = std::min(since, buffer_[oldest].at);
  return since + patience(stream);
}

// After every change: what can go and what has waited for long enough goes, and a timer stands for the rest.
void Decoder::settle(Exit& exit, Stream& stream, std::uint32_t news) {
  const Nanos now = exit.context.now();
  release_ready(exit, stream, news);
  for (;;) {
    if (stream.held.empty() && stream.repairs.empty()) return;
    const Nanos due = patience_ends(stream);
    if (due > now) {
      exit.context.arm_by(timers_[streams_.index_of(stream)], due);
      return;
    }
    const std::uint64_t before = count_.released.read();
    skip(exit, stream);
    count_.released_timeout.add(count_.released.read() - before);
    release_ready(exit, stream);
  }
}

void Decoder::start(Context& context) { context.reserve_timers(timers_.size()); }

// Too early, perhaps: what it was for has gone, or the stream with it. Then it is armed anew.
void Decoder::on_timer(Context& context, Timer& timer) {
  Exit exit{context, nullptr, 0, host_};
  settle(exit, streams_[static_cast<std::uint32_t>(&timer - timers_.data())]);
}

// Within a message packets come as fast as they can, but for stalls of the sender; between messages the application may
// wait. `follows`: the packet before it came last.
void Decoder::measure(Stream& stream, Packet packet, Nanos now, bool follows) {
  if (follows && !roce::opcode_info(packet).has(roce::kStartsMessage) && stream.last) {
    const Nanos gap = std::min(now - stream.last, config_.hold_max);
    if (stream.gaps < kGapsMin) stream.gaps++;
    stream.spacing_16 += stream.spacing_16 ? gap - stream.spacing_16 / 16 : gap * 16;
    stream.stall = std::max(static_cast<std::uint32_t>(gap), stream.stall - stream.stall / kStallPackets);
  }
  stream.last = now;
}

}  // namespace rocebox::lowar
