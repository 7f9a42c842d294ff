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
  std::array<Named, kBatchMax> names;
  name_packets(batch, streams_, names);
  Call call{context, batch, names, 0, {}};
  for (; call.slot < batch.size(); call.slot++) {
    if (call.slot + 1 < batch.size()) prefetch_transport(batch[call.slot + 1]);
    if (names[call.slot].is_data())
      one(call, names[call.slot]);
    else if (names[call.slot].role == Role::kLowar)
      batch.drop(call.slot, count_.drop_lowar_host);
  }
}

// The unit that the packet will be coded in, if it can be and its block goes on with it.
roce::Ahead Encoder::unit_ahead(Packet packet, const Named& named) {
  if (named.index == streams_.kNone) return {};
  const Stream& stream = streams_[named.index];
  if (stream.coding.off()) return {};
  const unsigned place = stream.block.packets, c = stream.block.coding.c;
  return units_.ahead(place > 0 && place >= c ? stream.units[place % c] : CodingUnits::kNone, transport_bytes(packet));
}

void Encoder::one(Call& call, const Named& named) {
  Packet packet = call.batch[call.slot];
  if (!can_be_coded(packet, named)) return;
  const std::uint32_t index = streams_.use(named.key, named.hash, call.context.now(), release_idle());
  if (index == streams_.kNone) return count_.unprotected_streams.add();
  Stream& stream = streams_[index];
  const bool responses = named.role == Role::kResponse;
  const std::uint32_t psn = psn_of(packet), qpn = qpn_of(packet);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (stream.block.packets && (psn != stream.expected || info.has(roce::kStartsMessage))) [[unlikely]] {
    count_.blocks_cut.add();
    call.go_ahead();
    end_block(call, stream, packet, qpn);
  }
  const bool anew = begins_anew(stream, packet);
  if (anew) stream.jump(psn);
  if (!stream.begun) begin_stream(call.context, stream, responses);
  if (anew || info.has(roce::kStartsMessage)) take_up(stream);
  if (anew)
    announce(call, stream, packet, NegotiationKind::kAnnounce, responses);
  else if (tells_status(stream))
    announce(call, stream, packet, NegotiationKind::kStatus, responses);
  if (call.taken) call.context.emit(std::move(call.taken), out_, call.slot);
  stream.since_status++;
  stream.sent++;
  if (stream.coding.off()) return leave_uncoded(stream, packet);
  if (stream.block.packets == 0) begin_block(stream, packet, responses, anew);
  code(call, stream, packet);
  if (info.has(roce::kEndsMessage)) {
    stream.block.has_last = true;
    stream.block.last_bytes = static_cast<std::uint16_t>(transport_bytes(packet));
  }
  if (stream.block.has_last || stream.block.packets == stream.block.coding.r) end_block(call, stream, packet, qpn);
}

// A packet that cannot is not there for the block: the next one begins a new one.
bool Encoder::can_be_coded(Packet packet, const Named& named) {
  if (!roce::icrc_held(packet)) {
    count_.unprotected_snapped.add();
  } else if (transport_bytes(packet) > config_.transport_bytes_max() || datagram_bytes(packet, 0) > kIpUdpBytesMax) {
    count_.unprotected_size.add();
  } else if (roce::icrc_check(packet, unit_ahead(packet, named)) == roce::IcrcStatus::kBad) {
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

void Encoder::code(const Call& call, Stream& stream, Packet packet) {
  Block& block = stream.block;
  const unsigned isn = block.packets % block.coding.c;
  std::uint16_t& unit = stream.units[isn];
  if (block.packets < block.coding.c) {
    unit = units_.bind();
    if (unit == CodingUnits::kNone && streams_.retire(call.context.now(), release_idle())) unit = units_.bind();
    count_.units_max.raise_to(units_.bound());
  }
  block.packets++;
  stream.go_on(packet, psn_of(packet));
  if (unit == CodingUnits::kNone) return count_.unprotected_units.add();
  units_.add(unit, packet);
  count_.packets.add();
  count_.bytes.add(packet.wire_bytes());
}

// Algorithm 1, line 5, says "i mod c = 0"; the text, that all units of a block are sent at the block's end: so it is.
void Encoder::end_block(Call& call, Stream& stream, Packet like, std::uint32_t qpn) {
  Block& block = stream.block;
  count_.blocks.add();
  const auto before = static_cast<std::uint8_t>(stream.sent - block.packets);
  const unsigned shares = std::min<unsigned>(block.coding.c, block.packets);
  for (unsigned isn = 0; isn < shares; isn++) {
    const std::uint16_t unit = stream.units[isn];
    if (unit == CodingUnits::kNone) continue;
    const Sums& sums = units_[unit].sums;
    const std::uint16_t next = isn + 1 < shares ? stream.units[isn + 1] : CodingUnits::kNone;
    send_repair(call, like, {qpn, block, static_cast<std::uint8_t>(isn), sums.hops, sums.set, before}, unit, next);
    units_.release(unit);
  }
  block.packets = 0;
}

void Encoder::send_repair(Call& call, Packet like, const RepairHeader& header, std::uint16_t unit,
                          std::uint16_t next_unit) {
  const std::span<const std::uint8_t> image = units_.image(unit);
  if (datagram_bytes(like, lowar_packet_bytes(image.size())) > config_.link_mtu) return count_.link_mtu.add();
  roce::Ahead ahead;
  if (next_unit != CodingUnits::kNone) ahead = units_.ahead(next_unit, transport_bytes(like));
  PacketPtr made = make_packet(call.context, like, encode(header), image, ahead);
  if (!made) return count_.pool_dry.add();
  count_.repairs.add();
  count_.repair_bytes.add(made->wire_bytes());
  call.context.emit(std::move(made), out_, call.slot);
}

}  // namespace rocebox::lowar
