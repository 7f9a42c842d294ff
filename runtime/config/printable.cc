// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/printable.h"

#include <fmt/format.h>

namespace rocebox::config {

std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (first < 0xC2 || size == 0 || text.size() < size) return 0;
  char32_t code = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; i++) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool too_long = code < (size == 2 ? 0x80u : size == 3 ? 0x800u : 0x10000u);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return too_long || surrogate || code > 0x10FFFF ? 0 : size;
}

namespace {

// The same; 0 for a control character, too.
std::size_t printable_bytes(std::string_view text) {
  const std::size_t size = utf8_bytes(text);
  const auto first = static_cast<unsigned char>(text[0]);
  const bool control = size == 1 ? first < 0x20 || first == 0x7F
                                 : size == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
  return control ? 0 : size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = printable_bytes(text);
    if (size == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else
      out += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace rocebox::config
