// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace rocebox::roce {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

bool parse_address(const std::string& text, std::array<std::uint8_t, 16>& address) {
  std::array<std::uint8_t, 4> four;
  if (inet_pton(AF_INET, text.c_str(), four.data()) == 1) {
    std::copy(four.begin(), four.end(), std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.begin()));
    return true;
  }
  return inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

bool is_ipv4(const std::array<std::uint8_t, 16>& address) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), address.begin());
}

std::string address_text(const std::array<std::uint8_t, 16>& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(address))
    inet_ntop(AF_INET, address.data() + 12, text, sizeof text);
  else
    inet_ntop(AF_INET6, address.data(), text, sizeof text);
  return text;
}

}  // namespace rocebox::roce
