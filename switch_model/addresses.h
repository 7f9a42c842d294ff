// SPDX-License-Identifier: BSD-3-Clause
// MAC addresses and prefixes as configurations write them.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "runtime/kernel/fields.h"

namespace rocebox::switch_model {

using Mac = std::array<std::uint8_t, 6>;

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
