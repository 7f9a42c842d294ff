// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/edits.h"

#include <algorithm>

#include "kernels/link/random.h"
#include "runtime/roce/headers.h"
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

std::uint8_t tos(Packet packet) {
  const std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 4) return ip[1];
  return static_cast<std::uint8_t>(ip[0] << 4 | ip[1] >> 4);
}

// ToS and traffic class are masked in the ICRC and outside the UDP checksum: only IPv4's own
// checksum follows.
void set_tos(Packet packet, std::uint8_t value) {
  std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 6) {
    ip[0] = static_cast<std::uint8_t>((ip[0] & 0xF0) | value >> 4);
    ip[1] = static_cast<std::uint8_t>((ip[1] & 0x0F) | value << 4);
    return;
  }
  auto* header = reinterpret_cast<roce::Ipv4*>(ip);
  // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). A wrong checksum stays wrong.
  std::uint32_t sum = (0xFFFFu - static_cast<std::uint32_t>(header->checksum)) + (0xFFFFu - header->tos) + value;
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  header->checksum = ~sum & 0xFFFF;
  header->tos = value;
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
  if (dscp >= 0) set_tos(packet, static_cast<std::uint8_t>(dscp << 2 | (tos(packet) & roce::kEcnMask)));
  packet.trim_to(bytes);
  roce::parse(packet);
  return true;
}

Marked mark_ce(Packet packet) {
  if (packet.meta().ip_version == 0) return Marked::kNotEct;
  const std::uint8_t old = tos(packet);
  if ((old & roce::kEcnMask) == roce::kEcnNotEct) return Marked::kNotEct;
  if ((old & roce::kEcnMask) == roce::kEcnCe) return Marked::kWasMarked;
  set_tos(packet, old | roce::kEcnCe);
  return Marked::kMarked;
}

}  // namespace rocebox::link
