// SPDX-License-Identifier: BSD-3-Clause
// Decoder: repair and negotiation packets. Nothing that they say is believed before a rebuilt packet proves right.
#include <algorithm>
#include <cstring>

#include "kernels/lowar/decoder.h"
#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

void Decoder::lowar(Exit& exit, Packet packet) {
  Batch& batch = *exit.batch;
  if (roce::icrc_check(packet) != roce::IcrcStatus::kGood) return batch.drop(exit.slot, count_.drop_lowar_icrc);
  const std::span<const std::uint8_t> bytes = lowar_bytes(packet);
  if (const auto header = parse_repair(bytes)) return repair(exit, packet, *header);
  const auto header = parse_negotiation(bytes);
  if (!header) return batch.drop(exit.slot, count_.drop_lowar_malformed);
  negotiate(exit, *header, packet);
  batch.drop(exit.slot, count_.drop_negotiation);
}

// Whether some packets that were sent after the announcement have come before it, by the far end's count: not more of
// them than may overtake one, or the two counts do not agree yet.
bool Decoder::is_overtaken(const Stream& stream, const NegotiationHeader& header) const {
  const auto by = static_cast<std::uint16_t>(stream.accounted - header.sent);
  return by > 0 && by <= config_.reorder + kRetransmissionRun;
}

// Whether a sequence that begins at `psn` goes on already, its announcement having been overtaken by a few packets.
bool Decoder::was_taken_up(const Stream& stream, std::uint32_t psn) const {
  if (psn != stream.unannounced) return false;
  const auto late = psn_distance(stream.expected, psn);
  return late > 0 && late <= static_cast<std::int32_t>(config_.reorder + kRetransmissionRun);
}

// Whether an announcement is a copy of the last one, or older: each has more packets before it. Not older is the first
// of an encoder that was restarted.
bool Decoder::comes_again(Stream& stream, const NegotiationHeader& header) {
  const bool same_sender = stream.announced_psn != kNoPsn && stream.token == header.token;
  const bool same = stream.announced_psn == header.base_psn && stream.announced_sent == header.sent;
  const bool older = header.sent && is_newer(stream.announced_sent, header.sent);
  if (same_sender && (same || older)) return true;
  stream.announced_psn = header.base_psn;
  stream.announced_sent = header.sent;
  return false;
}

// Whether what comes now, where the host has gone on so far ahead or back, is sent again and no late original. UC sends
// nothing again: a little way back are packets that overtook each other before the near gateway; farther, the
// connection has begun anew, perhaps with the same packets.
bool Decoder::sends_again(const Stream& stream, std::int32_t ahead) const {
  return !stream.unreliable || ahead > kWindowPsns || ahead < -static_cast<std::int32_t>(config_.reorder);
}

// A sequence begins: a stream, whose first packet may be lost; a retransmission; or what lies before never came to the
// far end.
void Decoder::announced(Exit& exit, Stream& stream, const NegotiationHeader& header) {
  const std::uint32_t psn = header.base_psn;
  count_.announcements.add();
  if (comes_again(stream, header)) return;
  learn(stream, header);
  const bool overtaken = is_overtaken(stream, header), late = overtaken && was_taken_up(stream, psn);
  stream.unannounced = kNoPsn;
  if (late) return;
  const std::int32_t ahead = psn_distance(psn, stream.expected);
  const bool onward = ahead >= 0 && ahead <= kWindowPsns;
  if (onward) skip_to(exit, stream, psn);
  // Amid what waits the host goes back, too, unless that has overtaken the announcement.
  const bool amid = !stream.held.empty() || roce::psn_before(psn, stream.expected);
  bool begun = false;
  if (!onward || (amid && !is_overtaken(stream, header))) {
    begun = overtaken && stream.old_run && !roce::psn_before(stream.old_psn, psn);
    skip_all(exit, stream);
    restart(stream, psn, kNoPsn);
    if (sends_again(stream, ahead)) stream.recovered = {};
  }
  stream.boundary = psn;
  stream.has_boundary = true;
  settle(exit, stream);
  if (!begun) return was_sent(stream, header);
  stream.resume = psn_add(stream.old_psn, 1);  // if the next packet is not one before that
}

void Decoder::repair(Exit& exit, Packet packet, const RepairHeader& header) {
  Batch& batch = *exit.batch;
  const Block& block = header.block;
  const StreamKey key = stream_key(packet, header.qpn, block.responses);
  const std::uint64_t hash = streams_.hash(key);
  const std::uint32_t index = streams_.find(key, hash);
  if (index == streams_.kNone || !streams_[index].begun) return batch.drop(exit.slot, count_.drop_repair_unknown);
  Stream& stream = streams_[index];
  const std::int32_t ahead = psn_distance(block.base_psn, stream.expected);
  if (ahead > kWindowPsns || ahead < -kWindowPsns) return batch.drop(exit.slot, count_.drop_repair_unknown);
  streams_.use(key, hash, exit.context.now());
  // Where coding has been switched off since, a late one does not switch it on again.
  if (!stream.next_coding.off() || !roce::psn_before(block.base_psn, stream.said_psn)) {
    stream.heard = true;
    stream.passive = false;
    stream.next_coding = block.coding;
  }
  if (block.anew && ahead > 0) skip_to(exit, stream, block.base_psn);  // what lies before was never coded
  // A block begins where one is awaited, also when its first packet comes later than this, or has to be rebuilt.
  if (!stream.clocked && block.base_psn == stream.expected) begin_block(stream, block.base_psn);
  const Outcome outcome = try_repair(exit, stream, packet, header);
  if (ahead + block.packets >= 0) {
    stream.boundary = psn_add(block.base_psn, block.packets);
    stream.has_boundary = true;
  }
  if (outcome != Outcome::kWaits) {
    batch.drop(exit.slot, reason(outcome));
  } else if (buffer_.full() || stream.repairs_held == kRepairsHeld) {
    batch.drop(exit.slot, count_.drop_repair_full);
  } else {
    keep(stream.repairs, batch.take(exit.slot), block.base_psn, exit.context.now(), {});
    stream.repairs_held++;
  }
  if (config_.reorder == 0) release_unrepairable(exit, stream, header);
  settle(exit, stream);
  was_sent(stream, header);
}

// Where nothing overtakes, all that is left of a block has come when its last repair packet has.
void Decoder::release_unrepairable(Exit& exit, Stream& stream, const RepairHeader& header) {
  const Block& block = header.block;
  if (header.isn + 1u < std::min<unsigned>(block.coding.c, block.packets)) return;
  const std::uint32_t end = psn_add(block.base_psn, block.packets);
  drain(exit, stream);
  retry(exit, stream);
  while (!stream.held.empty() && roce::psn_before(stream.expected, end)) {
    skip(exit, stream);
    retry(exit, stream);
  }
}

std::uint64_t Decoder::lowar_packets() const {
  std::uint64_t sum = 0;
  for (const Counter* counter : {&count_.drop_negotiation, &count_.drop_repair_used, &count_.drop_repair_unused,
                                 &count_.drop_repair_short, &count_.drop_repair_failed, &count_.drop_repair_full,
                                 &count_.drop_repair_unknown, &count_.drop_lowar_icrc, &count_.drop_lowar_malformed})
    sum += counter->read();
  return sum;
}

Counter& Decoder::reason(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUsed:
      return count_.drop_repair_used;
    case Outcome::kFailed:
      return count_.drop_repair_failed;
    case Outcome::kFull:
      return count_.drop_repair_full;
    case Outcome::kShort:
    case Outcome::kWaits:
      return count_.drop_repair_short;
    case Outcome::kUnused:
      break;
  }
  return count_.drop_repair_unused;
}

Decoder::Parts Decoder::parts_of(const Stream& stream, const RepairHeader& header) const {
  const Block& block = header.block;
  Parts parts;
  std::uint16_t at = stream.held.head;
  for (unsigned i = header.isn; i < block.packets; i += block.coding.c) {
    const std::uint32_t psn = psn_add(block.base_psn, i);
    if (roce::psn_before(psn, stream.expected)) {
      parts.delivered++;
      continue;
    }
    at = buffer_.find(at, psn);
    if (at != ReorderingBuffer::kNone && buffer_[at].psn == psn) {
      parts.usable &= buffer_[at].usable;
      parts.slots[parts.held++] = at;
    } else {
      parts.missing++;
      parts.missing_psn = psn;
    }
  }
  if (!parts.delivered) return parts;
  // What was handed over is known only as the XOR of exactly these packets.
  const bool same = stream.whole && stream.base == block.base_psn && stream.coding.c == block.coding.c;
  if (same) parts.unit = stream.units[header.isn];
  if (parts.unit == CodingUnits::kNone || units_[parts.unit].packets != parts.delivered) parts.usable = false;
  return parts;
}

Decoder::Outcome Decoder::try_repair(Exit& exit, Stream& stream, Packet packet, const RepairHeader& header) {
  const Parts parts = parts_of(stream, header);
  if (parts.missing == 0) return Outcome::kUnused;
  if (!parts.usable) return Outcome::kShort;
  if (parts.missing > 1) return Outcome::kWaits;
  PacketPtr rebuilt = rebuild(exit.context, packet, header, parts);
  if (!rebuilt) return Outcome::kFailed;
  return take_in(exit, stream, std::move(rebuilt), parts.missing_psn);
}

// XORs what is there onto the repair packet's image. Empty when the result does not prove right.
PacketPtr Decoder::rebuild(Context& context, Packet packet, const RepairHeader& header, const Parts& parts) {
  const std::span<const std::uint8_t> image = lowar_bytes(packet).subspan(sizeof(HeaderBytes));
  CodedPrefix prefix;
  auto* prefix_bytes = reinterpret_cast<std::uint8_t*>(&prefix);
  std::memcpy(prefix_bytes, image.data(), sizeof prefix);
  Sums sums;
  if (parts.unit != CodingUnits::kNone) {
    xor_into(prefix_bytes, units_.image(parts.unit).data(), sizeof prefix);
    sums += units_[parts.unit].sums;
  }
  for (unsigned i = 0; i < parts.held; i++) {
    const Packet held = *buffer_[parts.slots[i]].packet;
    const CodedPrefix other = prefix_of(held);
    xor_into(prefix_bytes, reinterpret_cast<const std::uint8_t*>(&other), sizeof prefix);
    sums += sums_of(held);
  }
  const auto bytes = static_cast<std::uint32_t>(prefix.transport_bytes);
  const std::uint32_t offset = packet.meta().bth_offset;
  constexpr std::uint32_t kLeast = sizeof(roce::Bth) + roce::kIcrcBytes;
  if (bytes < kLeast || bytes > image.size() - sizeof prefix) return count_.rebuild_failed.add(), PacketPtr();
  PacketPtr rebuilt = context.allocate(offset + bytes);
  if (!rebuilt) return count_.pool_dry.add(), PacketPtr();

  std::uint8_t* to = rebuilt->data() + offset;
  std::memcpy(to, image.data() + sizeof prefix, bytes);
  if (parts.unit != CodingUnits::kNone) {
    const auto unit = units_.image(parts.unit).subspan(sizeof prefix);
    xor_into(to, unit.data(), std::min<std::size_t>(bytes, unit.size()));
  }
  for (unsigned i = 0; i < parts.held; i++) {
    const Packet held = *buffer_[parts.slots[i]].packet;
    xor_into(to, transport(held), std::min(bytes, transport_bytes(held)));
  }
  put_headers(*rebuilt, packet, prefix, true);
  if (proves_right(*rebuilt, header, parts.missing_psn)) {
    sums += sums_of(*rebuilt);
    if (sums.set == header.set_sum) {
      if (sums.hops != header.hop_sum) {
        put_headers(*rebuilt, packet, prefix, false);
        count_.recovered_hops.add();
      }
      return rebuilt;
    }
  }
  count_.rebuild_failed.add();
  context.drop(std::move(rebuilt), count_.drop_rebuilt);
  return {};
}

bool Decoder::proves_right(Packet rebuilt, const RepairHeader& header, std::uint32_t psn) const {
  const Block& block = header.block;
  if (role_of(rebuilt) != (block.responses ? Role::kResponse : Role::kRequest)) return false;
  if (qpn_of(rebuilt) != header.qpn || psn_of(rebuilt) != psn) return false;
  const roce::OpcodeInfo& info = roce::opcode_info(rebuilt);
  const bool first = psn == block.base_psn, last = psn == psn_add(block.base_psn, block.packets - 1);
  if (info.has(roce::kStartsMessage) != (first && block.has_first)) return false;
  if (info.has(roce::kEndsMessage) != (last && block.has_last)) return false;
  if (last && block.has_last && transport_bytes(rebuilt) != block.last_bytes) return false;
  return roce::icrc_check(rebuilt) == roce::IcrcStatus::kGood;
}

// A rebuilt packet goes the way of one that came.
Decoder::Outcome Decoder::take_in(Exit& exit, Stream& stream, PacketPtr rebuilt, std::uint32_t psn) {
  const Nanos now = exit.context.now();
  const Packet packet = *rebuilt;
  const bool usable = fits(packet);  // the far end's `roce_mtu` may be larger
  if (psn != stream.expected && buffer_.full()) {
    exit.context.drop(std::move(rebuilt), count_.drop_rebuilt);
    return Outcome::kFull;
  }
  count_.recovered.add();
  exit.context.note(packet, "recover");
  stream.unreliable = roce::opcode_info(packet).service == roce::Service::kUc;
  const Nanos until = now + (stream.unreliable ? kHoldMax : patience(stream));
  stream.recovered[stream.recovered_next++ % kRecoveredKept] = {psn, roce::icrc_stored(packet),
                                                                static_cast<std::uint32_t>(until / kMicrosecond)};
  if (psn != stream.expected) {
    keep(stream.held, std::move(rebuilt), psn, now, {.usable = usable, .rebuilt = true});
    return Outcome::kUsed;
  }
  advance(now, stream, packet, usable, true);
  exit.deliver(std::move(rebuilt));
  return Outcome::kUsed;
}

}  // namespace rocebox::lowar
