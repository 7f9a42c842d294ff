// SPDX-License-Identifier: BSD-3-Clause
// Addresses of multicast groups.
#pragma once
#include "runtime/roce/address.h"

namespace rocebox::roce {

/// Whether it is a group's address: 224.0.0.0/4 or ff00::/8.
inline bool is_multicast(const IpAddress& address) {
  return is_ipv4(address) ? address[12] >> 4 == 0xE : address[0] == 0xFF;
}

/// The MAC address of a group, as Linux maps it: 01:00:5e and 23 bits of an IPv4 address (RFC 1112, 6.4), 33:33 and 32
/// bits of an IPv6 address (RFC 2464, 7).
inline Mac multicast_mac(const IpAddress& group) {
  if (!is_ipv4(group)) return {0x33, 0x33, group[12], group[13], group[14], group[15]};
  return {0x01, 0x00, 0x5E, static_cast<std::uint8_t>(group[13] & 0x7F), group[14], group[15]};
}

}  // namespace rocebox::roce
