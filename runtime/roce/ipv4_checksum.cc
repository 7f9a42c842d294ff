// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/ipv4_checksum.h"

#include <bit>
#include <cstring>

namespace rocebox::roce {
namespace {

std::uint32_t sum_of_words(const Ipv4& ip) {
  // Four bytes at a time in the machine's own order: the sum of the halves is the same but for the order of its bytes
  // (RFC 1071, section 2).
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&ip);
  std::uint64_t sum = 0;
  const auto add = [&](unsigned offset) {
    std::uint32_t word;
    std::memcpy(&word, bytes + offset, sizeof word);
    sum += word;
  };
  for (unsigned offset = 0; offset < sizeof(Ipv4); offset += 4) add(offset);  // unrolled: few headers have options
  for (unsigned offset = sizeof(Ipv4); offset < ip.header_bytes(); offset += 4) add(offset);
  for (unsigned fold = 0; fold < 3; fold++) sum = (sum & 0xFFFF) + (sum >> 16);
  static_assert(std::endian::native == std::endian::little);
  return __builtin_bswap16(static_cast<std::uint16_t>(sum));
}

}  // namespace

void store_ipv4_checksum(Ipv4& ip) {
  ip.checksum = 0;
  ip.checksum = ~sum_of_words(ip) & 0xFFFF;
}

bool any_ipv4_checksum_holds(const Ipv4& ip) { return sum_of_words(ip) == 0xFFFF; }

}  // namespace rocebox::roce
