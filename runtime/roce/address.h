// SPDX-License-Identifier: BSD-3-Clause
// MAC addresses, IP addresses and prefixes: as numbers, and as people write them.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace rocebox::roce {

using Mac = std::array<std::uint8_t, 6>;
/// IPv6; IPv4 addresses as ::ffff:a.b.c.d, as roce::addresses() gives them.
using IpAddress = std::array<std::uint8_t, 16>;

constexpr IpAddress ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, d};
}

/// fe80::/64 and the interface identifier of a MAC address (RFC 4291, 2.5.1 and appendix A).
constexpr IpAddress link_local(const Mac& mac) {
  return {0xFE,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(mac[0] ^ 2),
          mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]};
}

/// The IP addresses that begin with the first `bits` bits of `address`; all bits behind these are 0.
struct Prefix {
  IpAddress address{};
  bool is_ipv4 = false;
  unsigned bits = 0;  ///< of 32 in IPv4, of 128 in IPv6
  auto operator<=>(const Prefix&) const = default;
};

/// "02:00:00:00:00:01"; empty when it is none.
std::optional<Mac> parse_mac(std::string_view text);
/// "10.0.0.1", "2001:db8::1"; empty when it is neither.
std::optional<IpAddress> parse_address(std::string_view text);
/// "10.0.0.0/8", "2001:db8::/32". Empty when it is none, or has address bits behind its length; `why` then says
/// which.
std::optional<Prefix> parse_prefix(std::string_view text, std::string& why);

/// Whether it is an IPv4 address.
bool is_ipv4(const IpAddress& address);

// What parses back to the same value.
std::string mac_text(const Mac& mac);
std::string address_text(const IpAddress& address);
std::string prefix_text(const Prefix& prefix);

/// A MAC address as a number, to compare or look up without a loop over its bytes.
inline std::uint64_t mac_number(const std::uint8_t* bytes) {
  std::uint32_t high;
  std::uint16_t low;
  std::memcpy(&high, bytes, sizeof high);
  std::memcpy(&low, bytes + sizeof high, sizeof low);
  return std::uint64_t{high} << 16 | low;
}

}  // namespace rocebox::roce
