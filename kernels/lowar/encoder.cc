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
      table_(static_cast<std::uint32_t>(config.streams)),
      streams_(static_cast<std::size_t>(config.streams)) {}

void Encoder::process(Context& context, Batch& batch) {
  std::array<Role, kBatchMax> roles;
  std::array<StreamKey, kBatchMax> keys;
  std::array<std::uint64_t, kBatchMax> hashes;
  for (unsigned i = 0; i < batch.size(); i++) {
    roles[i] = role_of(batch[i]);
    if (roles[i] != Role::kRequest && roles[i] != Role::kResponse) continue;
    keys[i] = stream_key(batch[i], qpn_of(batch[i]), roles[i] == Role::kResponse);
    hashes[i] = table_.hash(keys[i]);
    table_.prefetch(hashes[i]);
  }
  Call call{context, batch, 0, {}};
  for (; call.slot < batch.size(); call.slot++)
    if (const Role role = roles[call.slot]; role == Role::kRequest || role == Role::kResponse)
      one(call, role, keys[call.slot], hashes[call.slot]);
}

void Encoder::one(Call& call, Role role, const StreamKey& key, std::uint64_t hash) {
  Packet packet = call.batch[call.slot];
  if (!can_be_coded(packet)) return;
  const std::uint32_t index = table_.insert(key, hash);
  if (index == table_.kNone) return count_.unprotected_streams.add();
  Stream& stream = streams_[index];
  const bool responses = role == Role::kResponse;
  const std::uint32_t psn = psn_of(packet), qpn = qpn_of(packet);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (stream.block.packets && (psn != stream.next || info.has(roce::kStartsMessage))) [[unlikely]] {
    count_.blocks_cut.add();
    call.go_ahead();
    end_block(call, stream, packet, qpn);
  }
  if (!stream.begun) count_.streams.add();
  if (begins_anew(stream, packet)) announce(call, packet, responses);
  if (call.taken) call.batch.follow(call.slot, std::move(call.taken), out_);
  if (stream.block.packets == 0) begin_block(stream, packet, responses);
  code(stream, packet);
  if (info.has(roce::kEndsMessage)) {
    stream.block.has_last = true;
    stream.block.last_bytes = static_cast<std::uint16_t>(transport_bytes(packet));
  }
  if (stream.block.has_last || stream.block.packets == stream.block.coding.r) end_block(call, stream, packet, qpn);
}

// A packet that cannot is not there for the block: the next one begins a new one.
bool Encoder::can_be_coded(Packet packet) {
  if (!roce::icrc_held(packet)) {
    count_.unprotected_snapped.add();
  } else if (transport_bytes(packet) > config_.transport_bytes_max() || datagram_bytes(packet, 0) > kIpUdpBytesMax) {
    count_.unprotected_size.add();
  } else if (roce::icrc_compute(packet) != roce::icrc_stored(packet)) {
    count_.unprotected_icrc.add();
  } else {
    return true;
  }
  return false;
}

// At the stream's first packet, at a retransmission, and where packets are missing before they came here. Between
// messages a jump ahead is usual: READs have taken the PSNs.
bool Encoder::begins_anew(const Stream& stream, Packet packet) const {
  const std::int32_t jump = roce::psn_distance(psn_of(packet), stream.next);
  if (!stream.begun || jump < 0) return true;
  return jump > 0 && !(stream.block.has_last && roce::opcode_info(packet).has(roce::kStartsMessage));
}

// Goes ahead of the packet, so that the far end knows where the sequence begins even if that is lost.
void Encoder::announce(Call& call, Packet packet, bool responses) {
  const NegotiationHeader header{qpn_of(packet), NegotiationKind::kAnnounce, config_.coding(), psn_of(packet),
                                 responses};
  PacketPtr made = call.context.allocate(packet.meta().bth_offset + static_cast<std::uint32_t>(sizeof(HeaderBytes)) +
                                         roce::kIcrcBytes);
  if (!made) return count_.pool_dry.add();
  build(*made, packet, encode(header), {});
  count_.announcements.add();
  call.go_ahead();
  call.batch.follow(call.slot, std::move(made), out_);
}

void Encoder::begin_block(Stream& stream, Packet packet, bool responses) {
  const std::uint32_t psn = psn_of(packet);
  Block block;
  block.coding = config_.coding();
  block.base_psn = psn;
  block.has_first = roce::opcode_info(packet).has(roce::kStartsMessage);
  block.responses = responses;
  block.anew = !stream.begun || psn != stream.next;
  stream.block = block;
  stream.begun = true;
}

void Encoder::code(Stream& stream, Packet packet) {
  Block& block = stream.block;
  const unsigned isn = block.packets % block.coding.c;
  std::uint16_t& unit = stream.units[isn];
  if (block.packets < block.coding.c) {
    unit = units_.bind();
    count_.units_max.raise_to(units_.bound());
  }
  block.packets++;
  stream.next = roce::psn_add(psn_of(packet), 1);
  if (unit == CodingUnits::kNone) return count_.unprotected_units.add();
  units_.add(unit, packet);
  count_.packets.add();
  count_.bytes.add(packet.wire_bytes());
}

// Algorithm 1, line 5, says "i mod c = 0"; the text, that all units of a block are sent at the block's end: so it is.
void Encoder::end_block(Call& call, Stream& stream, Packet like, std::uint32_t qpn) {
  Block& block = stream.block;
  count_.blocks.add();
  for (unsigned isn = 0; isn < std::min<unsigned>(block.coding.c, block.packets); isn++) {
    const std::uint16_t unit = stream.units[isn];
    if (unit == CodingUnits::kNone) continue;
    const Sums& sums = units_[unit].sums;
    send_repair(call, like, {qpn, block, static_cast<std::uint8_t>(isn), sums.hops, sums.set}, unit);
    units_.release(unit);
  }
  block.packets = 0;
}

void Encoder::send_repair(Call& call, Packet like, const RepairHeader& header, std::uint16_t unit) {
  const std::span<const std::uint8_t> image = units_.image(unit);
  const auto behind_udp = static_cast<std::uint32_t>(sizeof(HeaderBytes) + image.size()) + roce::kIcrcBytes;
  if (datagram_bytes(like, behind_udp) > config_.link_mtu) return count_.link_mtu.add();
  PacketPtr made = call.context.allocate(like.meta().bth_offset + behind_udp);
  if (!made) return count_.pool_dry.add();
  build(*made, like, encode(header), image);
  count_.repairs.add();
  count_.repair_bytes.add(made->wire_bytes());
  call.batch.follow(call.slot, std::move(made), out_);
}

}  // namespace rocebox::lowar
