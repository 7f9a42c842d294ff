// SPDX-License-Identifier: BSD-3-Clause
// Addresses that are one host's or one station's, and those that cannot be.
#pragma once
#include <algorithm>

#include "runtime/roce/multicast.h"

namespace rocebox::roce {

/// What an IP address is that no host can have as its own (RFC 1122, 3.2.1.3; RFC 4291, 2.5.2 and 2.5.3), in words;
/// null: one can have it.
inline const char* why_no_hosts(const IpAddress& address) {
  if (is_multicast(address)) return "a group's address";
  if (is_ipv4(address)) {
    if (address == ipv4(255, 255, 255, 255)) return "everybody's address";
    return address[12] == 0 ? "nobody's address" : address[12] == 127 ? "a loopback address" : nullptr;
  }
  if (std::any_of(address.begin(), address.end() - 1, [](std::uint8_t byte) { return byte != 0; })) return nullptr;
  return address.back() == 0 ? "nobody's address" : address.back() == 1 ? "a loopback address" : nullptr;
}
inline bool is_hosts(const IpAddress& address) { return !why_no_hosts(address); }

/// The same of a MAC address: one station has none that is a group's (RFC 1812, 3.3.2), or nothing.
inline const char* why_no_stations(const std::uint8_t* mac) {
  if (mac[0] & 1) return "a group's";
  return std::all_of(mac, mac + sizeof(Mac), [](std::uint8_t byte) { return byte == 0; }) ? "nobody's" : nullptr;
}
inline bool is_stations(const std::uint8_t* mac) { return !why_no_stations(mac); }

}  // namespace rocebox::roce
