// SPDX-License-Identifier: BSD-3-Clause
// The checksum of IPv4's header: the one's complement of the sum of its words (RFC 791, RFC 1071).
#pragma once
#include "runtime/roce/headers.h"

namespace rocebox::roce {

/// Writes the right checksum. The header's options, as its length says, lie behind it, here and below.
void store_ipv4_checksum(Ipv4& ip);

bool ipv4_checksum_holds(const Ipv4& ip);

/// Follows the change of one byte of the header; a wrong checksum stays wrong. `shift`: 8 for a byte at an even offset,
/// the high one of its word, else 0 (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')).
inline void follow_byte(Be16& checksum, std::uint8_t from, std::uint8_t to, unsigned shift) {
  std::uint32_t sum = (0xFFFFu - static_cast<std::uint32_t>(checksum.get())) +
                      (0xFFFFu - (std::uint32_t{from} << shift)) + (std::uint32_t{to} << shift);
  for (unsigned fold = 0; fold < 2; fold++) sum = (sum & 0xFFFF) + (sum >> 16);
  checksum = ~sum & 0xFFFF;
}

}  // namespace rocebox::roce
