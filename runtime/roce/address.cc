// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/address.h"

#include <arpa/inet.h>

namespace rocebox::roce {

bool parse_address(const std::string& text, std::array<std::uint8_t, 16>& address) {
  std::array<std::uint8_t, 16> mapped{};
  mapped[10] = mapped[11] = 0xFF;
  if (inet_pton(AF_INET, text.c_str(), mapped.data() + 12) == 1) {
    address = mapped;
    return true;
  }
  return inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

}  // namespace rocebox::roce
