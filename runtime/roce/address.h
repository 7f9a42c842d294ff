// SPDX-License-Identifier: BSD-3-Clause
// IP addresses as text.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace rocebox::roce {

/// Reads an IPv4 address (as ::ffff:a.b.c.d, like roce::addresses()) or an IPv6 address; false when it is neither.
bool parse_address(const std::string& text, std::array<std::uint8_t, 16>& address);
/// Whether it is an IPv4 address.
bool is_ipv4(const std::array<std::uint8_t, 16>& address);
/// The address as people write it.
std::string address_text(const std::array<std::uint8_t, 16>& address);

}  // namespace rocebox::roce
