// SPDX-License-Identifier: BSD-3-Clause
// MAC addresses and prefixes as configurations write them.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/component/fields.h"

namespace rocebox::switch_model {

using Mac = std::array<std::uint8_t, 6>;

/// A MAC address as a number, to compare or look up without a loop over its bytes.
inline std::uint64_t mac_number(const std::uint8_t* bytes) {
  std::uint32_t high;
  std::uint16_t low;
  std::memcpy(&high, bytes, sizeof high);
  std::memcpy(&low, bytes + sizeof high, sizeof low);
  return std::uint64_t{high} << 16 | low;
}

/// "02:00:00:00:00:01"; false when it is none.
bool parse_mac(const std::string& text, Mac& mac);
/// Reads a MAC address that must be given.
void read_mac(Fields& fields, std::string_view name, std::string& text, std::string_view doc);

/// "10.0.0.0/8", "2001:db8::/32"; IPv4 addresses as ::ffff:a.b.c.d with bits counted in the 32.
struct Prefix {
  std::array<std::uint8_t, 16> address;
  bool is_ipv4;
  unsigned bits;
};
/// False when it is none, and when address bits behind the prefix are set; `why` says which.
bool parse_prefix(const std::string& text, Prefix& prefix, std::string& why);

}  // namespace rocebox::switch_model
