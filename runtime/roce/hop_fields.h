// SPDX-License-Identifier: BSD-3-Clause
// What a hop may change in the IP header of any packet: ToS or traffic class, and TTL or hop limit. The ICRC masks
// these fields and UDP's checksum does not see them, so only IPv4's own checksum follows.
#pragma once
#include <cstdint>

#include "runtime/packet/packet.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::roce {

/// ToS of IPv4, traffic class of IPv6. For packets whose ip_version is set, as all below.
std::uint8_t tos(Packet packet);
/// A wrong IPv4 checksum stays wrong.
void set_tos(Packet packet, std::uint8_t value);

enum class Marked : std::uint8_t { kMarked, kWasMarked, kNotEct };
/// Sets CE on a packet with ECT(0) or ECT(1), of any protocol above IP; others it leaves alone, those that are not IP
/// too.
Marked mark_ce(Packet packet);
/// Whether mark_ce() would mark it: ECT(0) or ECT(1).
bool is_markable(Packet packet);

/// Lowers TTL or hop limit by one. False, and nothing is changed, when it is 0 or 1: the packet has no hop left.
inline bool lower_ttl(Packet packet) {
  std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 6) {
    auto& header = *reinterpret_cast<Ipv6*>(ip);
    if (header.hop_limit <= 1) return false;
    header.hop_limit--;
    return true;
  }
  auto& header = *reinterpret_cast<Ipv4*>(ip);
  if (header.ttl <= 1) return false;
  lower_ttl(header);
  return true;
}

}  // namespace rocebox::roce
