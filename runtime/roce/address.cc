// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace rocebox::roce {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr std::size_t kMacText = 17;  // characters
constexpr unsigned kIpv4Bits = 32, kIpv6Bits = 128;

std::string ipv6_text(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, address.data(), text, sizeof text);
  return text;
}

}  // namespace

std::optional<Mac> parse_mac(std::string_view text) {
  Mac mac;
  if (text.size() != kMacText) return {};
  for (std::size_t i = 0; i < mac.size(); i++) {
    const char* at = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(at, at + 2, mac[i], 16);
    if (error != std::errc() || end != at + 2 || (i + 1 < mac.size() && at[2] != ':')) return {};
  }
  return mac;
}

std::optional<IpAddress> parse_address(std::string_view text) {
  const std::string whole(text);
  if (whole.find('\0') != std::string::npos) return {};  // inet_pton would not see what stands behind
  IpAddress address;
  std::array<std::uint8_t, 4> four;
  if (inet_pton(AF_INET, whole.c_str(), four.data()) == 1) {
    std::copy(four.begin(), four.end(), std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.begin()));
    return address;
  }
  if (inet_pton(AF_INET6, whole.c_str(), address.data()) != 1) return {};
  return address;
}

std::optional<Prefix> parse_prefix(std::string_view text, std::string& why) {
  const std::size_t slash = text.find('/');
  const auto address = slash == std::string_view::npos ? std::nullopt : parse_address(text.substr(0, slash));
  if (!address) {
    why = "must be a prefix, such as 10.0.0.0/24 or 2001:db8::/64, found `" + std::string(text) + "`";
    return {};
  }
  Prefix prefix{*address, text.find(':') == std::string_view::npos, 0};
  const unsigned bits_max = prefix.is_ipv4 ? kIpv4Bits : kIpv6Bits;
  const char *at = text.data() + slash + 1, *end = text.data() + text.size();
  const auto [read, error] = std::from_chars(at, end, prefix.bits);
  if (error != std::errc() || read != end || prefix.bits > bits_max) {
    why = "must have a length from 0 to " + std::to_string(bits_max) + ", found `" + std::string(text) + "`";
    return {};
  }
  for (unsigned bit = prefix.bits + (kIpv6Bits - bits_max); bit < kIpv6Bits; bit++)
    if (prefix.address[bit / 8] >> (7 - bit % 8) & 1) {
      why = "has address bits behind its length: `" + std::string(text) + "`";
      return {};
    }
  return prefix;
}

bool is_ipv4(const IpAddress& address) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), address.begin());
}

std::string mac_text(const Mac& mac) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : mac) {
    if (!text.empty()) text += ':';
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

std::string address_text(const IpAddress& address) {
  if (!is_ipv4(address)) return ipv6_text(address);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, address.data() + kMappedPrefix.size(), text, sizeof text);
  return text;
}

std::string prefix_text(const Prefix& prefix) {
  // One that is written as IPv6 may begin like a mapped IPv4 address: its bits are counted in the 128.
  return (prefix.is_ipv4 ? address_text(prefix.address) : ipv6_text(prefix.address)) + '/' +
         std::to_string(prefix.bits);
}

}  // namespace rocebox::roce
