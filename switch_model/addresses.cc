// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/addresses.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/roce/address.h"

namespace rocebox::switch_model {

bool parse_mac(const std::string& text, Mac& mac) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < 6; i++) {
    const char* at = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(at, at + 2, mac[i], 16);
    if (error != std::errc() || end != at + 2 || (i < 5 && at[2] != ':')) return false;
  }
  return true;
}

bool parse_prefix(const std::string& text, Prefix& prefix, std::string& why) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || !roce::parse_address(text.substr(0, slash), prefix.address)) {
    why = fmt::format("must be a prefix, such as 10.0.0.0/24 or 2001:db8::/64, found `{}`", text);
    return false;
  }
  prefix.is_ipv4 = text.find(':') == std::string::npos;
  const unsigned bits_max = prefix.is_ipv4 ? 32 : 128;
  const char* at = text.data() + slash + 1;
  const auto [end, error] = std::from_chars(at, text.data() + text.size(), prefix.bits);
  if (error != std::errc() || end != text.data() + text.size() || prefix.bits > bits_max) {
    why = fmt::format("must have a length from 0 to {}, found `{}`", bits_max, text);
    return false;
  }
  for (unsigned bit = prefix.bits + (128 - bits_max); bit < 128; bit++)
    if (prefix.address[bit / 8] >> (7 - bit % 8) & 1) {
      why = fmt::format("has address bits behind its length: `{}`", text);
      return false;
    }
  return true;
}

void read_mac(Fields& fields, std::string_view name, std::string& text, std::string_view doc) {
  fields.text(name, text, doc);
  Mac mac;
  if (text.empty()) return fields.refuse(name, "must be given, such as 02:00:00:00:00:01");
  if (!parse_mac(text, mac))
    fields.refuse(name, fmt::format("must be a MAC address, such as 02:00:00:00:00:01, found `{}`", text));
}

}  // namespace rocebox::switch_model
