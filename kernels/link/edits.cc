// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/edits.h"

#include <algorithm>

#include "kernels/link/random.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/hop_fields.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"

namespace rocebox::link {
namespace {

constexpr std::uint32_t kMaskedBthByte = 4;  // FECN, BECN, reserved: an error there leaves the ICRC right

// The repair is incremental: an ICRC that came in wrong goes out wrong.
void flip(Packet packet, std::uint32_t offset, std::uint8_t mask, Icrc icrc) {
  const std::uint8_t flipped = packet.data()[offset] ^ mask;
  if (icrc == Icrc::kRepaired)
    roce::edit(packet, offset, {&flipped, 1});
  else
    packet.data()[offset] = flipped;
  roce::parse(packet);  // opcode, lengths and even the protocol may have changed
}

}  // namespace

bool corrupt_bit(Packet packet, std::uint64_t draw, Icrc icrc) {
  const PacketMeta& meta = packet.meta();
  const bool repairs = icrc == Icrc::kRepaired;
  if (repairs && !roce::icrc_held(packet)) return false;
  std::uint32_t first = sizeof(roce::Ethernet), end = packet.size();
  std::uint32_t skipped = end;
  if (meta.bth_offset) {
    first = meta.bth_offset;
    end = std::min(end, meta.datagram_end - (repairs ? roce::kIcrcBytes : 0));
    skipped = first + kMaskedBthByte;
  } else if (meta.ip_version) {
    first = meta.l3_offset;
  }
  const bool skips = skipped < end;
  if (first + skips >= end) return false;
  const std::uint64_t bit = below(draw, std::uint64_t{end - first - skips} * 8);
  std::uint32_t offset = first + static_cast<std::uint32_t>(bit / 8);
  if (skips && offset >= skipped) offset++;
  flip(packet, offset, static_cast<std::uint8_t>(1u << bit % 8), icrc);
  return true;
}

bool corrupt_byte(Packet packet, std::uint32_t offset, std::uint8_t mask, std::uint64_t draw, Icrc icrc) {
  if (offset >= packet.size()) return false;
  const PacketMeta& meta = packet.meta();
  if (icrc == Icrc::kRepaired &&
      (!roce::icrc_held(packet) || offset < meta.bth_offset || offset + roce::kIcrcBytes >= meta.datagram_end))
    return false;
  flip(packet, offset, mask ? mask : static_cast<std::uint8_t>(1u << (draw >> 61)), icrc);
  return true;
}

std::uint32_t header_bytes(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const bool held = meta.status == ParseStatus::kRoce || (meta.status == ParseStatus::kShorterThanIpLength &&
                                                          meta.bth_offset != 0 && packet.size() >= meta.payload_offset);
  return held ? meta.payload_offset : 0;
}

bool trim(Packet packet, std::int64_t dscp) {
  const std::uint32_t bytes = header_bytes(packet);
  if (bytes == 0 || packet.meta().payload_bytes == 0 || packet.wire_bytes() <= bytes) return false;
  if (dscp >= 0) roce::set_tos(packet, static_cast<std::uint8_t>(dscp << 2 | (roce::tos(packet) & roce::kEcnMask)));
  packet.trim_to(bytes);
  roce::parse(packet);
  return true;
}

}  // namespace rocebox::link
