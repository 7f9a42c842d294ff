// SPDX-License-Identifier: BSD-3-Clause
// The checksum of IPv4's header: the one's complement of the sum of its words (RFC 791, RFC 1071).
#pragma once
#include <bit>
#include <cstring>

#include "runtime/roce/headers.h"

namespace rocebox::roce {

/// Writes the right checksum. The header's options, as its length says, lie behind it, here and below.
void store_ipv4_checksum(Ipv4& ip);

/// Of any header.
bool any_ipv4_checksum_holds(const Ipv4& ip);
inline bool ipv4_checksum_holds(const Ipv4& ip) {
  if (ip.header_bytes() != sizeof(Ipv4)) return any_ipv4_checksum_holds(ip);
  // Eight bytes at a time in the machine's own order: whether the sum of the 16-bit words is all ones does not depend
  // on the order of their bytes, nor on how many are added at once (RFC 1071, section 2).
  std::uint64_t first, second;
  std::uint32_t last;
  std::memcpy(&first, &ip, sizeof first);
  std::memcpy(&second, reinterpret_cast<const std::uint8_t*>(&ip) + sizeof first, sizeof second);
  std::memcpy(&last, ip.destination, sizeof last);
  const auto add = [](std::uint64_t a, std::uint64_t b) { return a + b + (a + b < a); };
  const std::uint64_t sum = add(add(first, second), last);
  // Each half of a number and of its turned copy makes the sum of both halves, in the upper one with the lower's carry.
  const auto half = static_cast<std::uint32_t>((sum + std::rotl(sum, 32)) >> 32);
  return (half + std::rotl(half, 16)) >> 16 == 0xFFFF;
}

/// Follows the change of one byte of the header; a wrong checksum stays wrong. `shift`: 8 for a byte at an even offset,
/// the high one of its word, else 0 (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')).
inline void follow_byte(Be16& checksum, std::uint8_t from, std::uint8_t to, unsigned shift) {
  std::uint32_t sum = (0xFFFFu - static_cast<std::uint32_t>(checksum.get())) +
                      (0xFFFFu - (std::uint32_t{from} << shift)) + (std::uint32_t{to} << shift);
  for (unsigned fold = 0; fold < 2; fold++) sum = (sum & 0xFFFF) + (sum >> 16);
  checksum = ~sum & 0xFFFF;
}

/// Lowers the TTL, which is not 0, by one, and follows with the checksum.
inline void lower_ttl(Ipv4& ip) {
  ip.ttl--;
  // As above with m' - m = -0x0100, and all words in the machine's own order.
  std::uint16_t checksum;
  std::memcpy(&checksum, ip.checksum.bytes, sizeof checksum);
  const std::uint32_t sum = (0xFFFFu ^ checksum) + (0xFFFFu - 0x0001u);
  checksum = static_cast<std::uint16_t>(~((sum & 0xFFFF) + (sum >> 16)));
  std::memcpy(ip.checksum.bytes, &checksum, sizeof checksum);
  static_assert(std::endian::native == std::endian::little);
}

}  // namespace rocebox::roce
