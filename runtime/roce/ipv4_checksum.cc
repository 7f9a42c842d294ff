// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::roce {
namespace {

std::uint32_t sum_of_words(const Ipv4& ip) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&ip);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < ip.header_bytes(); i += 2) sum += load_be16(bytes + i);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

}  // namespace

void store_ipv4_checksum(Ipv4& ip) {
  ip.checksum = 0;
  ip.checksum = ~sum_of_words(ip) & 0xFFFF;
}

bool ipv4_checksum_holds(const Ipv4& ip) { return sum_of_words(ip) == 0xFFFF; }

}  // namespace rocebox::roce
