// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/hop_fields.h"

namespace rocebox::roce {

std::uint8_t tos(Packet packet) {
  const std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 4) return ip[1];
  return static_cast<std::uint8_t>(ip[0] << 4 | ip[1] >> 4);
}

void set_tos(Packet packet, std::uint8_t value) {
  std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 6) {
    ip[0] = static_cast<std::uint8_t>((ip[0] & 0xF0) | value >> 4);
    ip[1] = static_cast<std::uint8_t>((ip[1] & 0x0F) | value << 4);
    return;
  }
  auto& header = *reinterpret_cast<Ipv4*>(ip);
  follow_byte(header.checksum, header.tos, value, 0);
  header.tos = value;
}

bool is_markable(Packet packet) {
  if (packet.meta().ip_version == 0) return false;
  const std::uint8_t codepoint = tos(packet) & kEcnMask;
  return codepoint != kEcnNotEct && codepoint != kEcnCe;
}

Marked mark_ce(Packet packet) {
  if (packet.meta().ip_version == 0) return Marked::kNotEct;
  const std::uint8_t old = tos(packet);
  if ((old & kEcnMask) == kEcnNotEct) return Marked::kNotEct;
  if ((old & kEcnMask) == kEcnCe) return Marked::kWasMarked;
  set_tos(packet, old | kEcnCe);
  return Marked::kMarked;
}

}  // namespace rocebox::roce
