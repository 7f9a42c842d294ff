// SPDX-License-Identifier: BSD-3-Clause
// Small pieces of the report.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/packet/packet.h"

namespace rocebox::inspect {

/// "RC RDMA WRITE First" -> "rc_rdma_write_first".
inline std::string as_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c == ' ')
      c = '_';
    else if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

/// 0x and at least `digits` digits.
inline std::string hex(std::uint32_t number, unsigned digits = 6) {
  std::string text;
  for (; number != 0 || text.size() < digits; number >>= 4) text.insert(text.begin(), "0123456789abcdef"[number & 15]);
  return "0x" + text;
}

inline std::int64_t signed_count(std::uint64_t n) { return static_cast<std::int64_t>(n); }

inline double bits_per_second(std::uint64_t bytes, Nanos span) {
  return span > 0 ? static_cast<double>(bytes) * 8.0 * 1e9 / static_cast<double>(span) : 0;
}

}  // namespace rocebox::inspect
