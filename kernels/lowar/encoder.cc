// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/encoder.h"

#include <algorithm>

#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

Encoder::Encoder(const Config& config, Stats& stats, Port out)
    : config_(config),
      out_(out),
      count_(stats),
      units_(static_cast<std::uint32_t>(config.units),
             static_cast<std::uint32_t>(sizeof(CodedPrefix)) + config.transport_bytes_max()),
      streams_(static_cast<std::uint32_t>(config.streams), config.idle) {}

void Encoder::process(Context& context, Batch& batch) {
  std::array<ClassifiedPacket, kBatchMax> classes;
  classify(batch, streams_, classes);
  Current current{context, batch, 0, {}};
  for (; current.slot < batch.size(); current.slot++) {
    if (current.slot + 1 < batch.size()) prefetch_transport(batch[current.slot + 1]);
    if (classes[current.slot].is_data())
      data(current, classes[current.slot]);
    else if (classes[current.slot].role == Role::kLowar)
      batch.drop(current.slot, count_.drop_lowar_host);
  }
}

// The unit that the packet will be coded in, if it can be and its block goes on with it.
roce::Ahead Encoder::unit_ahead(Packet packet, const ClassifiedPacket& kind) {
  if (kind.index == streams_.kNone) return {};
  const Stream& stream = streams_[kind.index];
  if (stream.coding.off()) return {};
  const unsigned place = stream.block.packets, c = stream.block.coding.c;
  return units_.ahead(place > 0 && place >= c ? stream.units[place % c] : CodingUnits::kNone, transport_bytes(packet));
}

void Encoder::data(Current& current, const ClassifiedPacket& kind) {
  Packet packet = current.batch[current.slot];
  if (!admit(packet, kind)) return;
  const std::uint32_t index = streams_.use(kind.key, kind.hash, current.context.now(), retire_idle());
  if (index == streams_.kNone) return count_.unprotected_streams.add();
  Stream& stream = streams_[index];
  const bool responses = kind.role == Role::kResponse;
  const std::uint32_t psn = psn_of(packet), qpn = qpn_of(packet);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (stream.block.packets && (psn != stream.expected || info.has(roce::kStartsMessage))) [[unlikely]] {
    count_.blocks_cut.add();
    current.take_out();
    end_block(current, stream, packet, qpn);
  }
  const bool anew = begins_anew(stream, packet);
  if (anew) stream.jump(psn);
  if (!stream.begun) begin_stream(current.context, stream, responses);
  if (anew || info.has(roce::kStartsMessage)) apply_request(stream);
  if (anew)
    announce(current, stream, packet, NegotiationKind::kAnnounce, responses);
  else if (status_is_due(stream))
    announce(current, stream, packet, NegotiationKind::kStatus, responses);
  if (current.taken) current.context.emit(std::move(current.taken), out_, current.slot);
  stream.since_status++;
  stream.sent++;
  if (stream.coding.off()) return follow_uncoded(stream, packet);
  if (stream.block.packets == 0) begin_block(stream, packet, responses, anew);
  add_to_block(current, stream, packet);
  if (info.has(roce::kEndsMessage)) {
    stream.block.has_last = true;
    stream.block.last_bytes = static_cast<std::uint16_t>(transport_bytes(packet));
  }
  if (stream.block.has_last || stream.block.packets == stream.block.coding.r) end_block(current, stream, packet, qpn);
}

// Whether the packet can be coded; counts why not. One that cannot is not there for the block: the next one begins a
// new one.
bool Encoder::admit(Packet packet, const ClassifiedPacket& kind) {
  if (!roce::icrc_held(packet)) {
    count_.unprotected_snapped.add();
  } else if (transport_bytes(packet) > config_.transport_bytes_max() || datagram_bytes(packet, 0) > kIpUdpBytesMax) {
    count_.unprotected_size.add();
  } else if (roce::icrc_check(packet, unit_ahead(packet, kind)) == roce::IcrcStatus::kBad) {
    count_.unprotected_icrc.add();
  } else {
    return true;
  }
  return false;
}

// At the stream's first packet, at a retransmission, and where packets are missing before they came here.
bool Encoder::begins_anew(const Stream& stream, Packet packet) const {
  const std::uint32_t psn = psn_of(packet);
  return !stream.begun || roce::psn_before(psn, stream.expected) || !stream.is_next(packet, psn);
}

void Encoder::begin_block(Stream& stream, Packet packet, bool responses, bool anew) {
  Block block;
  block.coding = stream.coding;
  block.base_psn = psn_of(packet);
  block.has_first = roce::opcode_info(packet).has(roce::kStartsMessage);
  block.responses = responses;
  block.anew = anew || block.base_psn != stream.expected;
  stream.block = block;
}

void Encoder::add_to_block(const Current& current, Stream& stream, Packet packet) {
  Block& block = stream.block;
  const unsigned isn = block.packets % block.coding.c;
  std::uint16_t& unit = stream.units[isn];
  if (block.packets < block.coding.c) {
    unit = units_.bind();
    if (unit == CodingUnits::kNone && streams_.retire(current.context.now(), retire_idle())) unit = units_.bind();
    count_.units_max.raise_to(units_.bound());
  }
  block.packets++;
  stream.advance(packet, psn_of(packet));
  if (unit == CodingUnits::kNone) return count_.unprotected_units.add();
  units_.add(unit, packet);
  count_.packets.add();
  count_.bytes.add(packet.wire_bytes());
}

// Algorithm 1, line 5, says "i mod c = 0"; the text, that all units of a block are sent at the block's end: so it is.
void Encoder::end_block(Current& current, Stream& stream, Packet like, std::uint32_t qpn) {
  Block& block = stream.block;
  count_.blocks.add();
  const auto before = static_cast<std::uint8_t>(stream.sent - block.packets);
  const unsigned shares = std::min<unsigned>(block.coding.c, block.packets);
  for (unsigned isn = 0; isn < shares; isn++) {
    const std::uint16_t unit = stream.units[isn];
    if (unit == CodingUnits::kNone) continue;
    const Sums& sums = units_[unit].sums;
    const std::uint16_t next = isn + 1 < shares ? stream.units[isn + 1] : CodingUnits::kNone;
    send_repair(current, like, {qpn, block, static_cast<std::uint8_t>(isn), sums.hops, sums.set, before}, unit, next);
    units_.release(unit);
  }
  block.packets = 0;
}

void Encoder::send_repair(Current& current, Packet like, const RepairHeader& header, std::uint16_t unit,
                          std::uint16_t next_unit) {
  const std::span<const std::uint8_t> image = units_.image(unit);
  if (datagram_bytes(like, lowar_packet_bytes(image.size())) > config_.link_mtu) return count_.link_mtu.add();
  roce::Ahead ahead;
  if (next_unit != CodingUnits::kNone) ahead = units_.ahead(next_unit, transport_bytes(like));
  PacketPtr made = make_packet(current.context, like, encode(header), image, ahead);
  if (!made) return count_.pool_dry.add();
  count_.repairs.add();
  count_.repair_bytes.add(made->wire_bytes());
  current.context.emit(std::move(made), out_, current.slot);
}

}  // namespace rocebox::lowar
