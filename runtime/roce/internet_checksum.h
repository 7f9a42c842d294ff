// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum of anything but IPv4's header (ipv4_checksum.h): one's complement sums (RFC 1071), of upper
// layers with their pseudo header (RFC 768; RFC 8200, 8.1).
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/roce/headers.h"

namespace rocebox::roce {

/// Adds the 16-bit words at `at`; a single byte at the end is the high one of its word. The sum is not folded.
inline std::uint32_t add_words(const std::uint8_t* at, std::size_t bytes, std::uint32_t sum = 0) {
  for (; bytes > 1; bytes -= 2, at += 2) sum += load_be16(at);
  return bytes ? sum + (std::uint32_t{*at} << 8) : sum;
}
/// In 16 bits; the checksum is its complement, and what has its right checksum in it comes to 0xFFFF.
inline std::uint16_t folded(std::uint32_t sum) {
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}
/// Of a message of `protocol` behind both IP addresses, which stand one behind the other; folded.
inline std::uint16_t sum_with_addresses(const std::uint8_t* addresses, std::size_t address_bytes, std::uint8_t protocol,
                                        const std::uint8_t* message, std::uint32_t bytes) {
  return folded(add_words(message, bytes, add_words(addresses, address_bytes, protocol + bytes)));
}

}  // namespace rocebox::roce
