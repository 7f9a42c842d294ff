// SPDX-License-Identifier: BSD-3-Clause
// Whether single values of a lab's configuration can be what they are meant to be.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace rocebox::lab {

/// "10.99.0.1" or "fd99::1".
bool is_address(const std::string& text);
/// "10.99.0.1/24" or "fd99::1/64".
bool is_address_with_prefix(const std::string& text);
/// "02:00:00:00:00:01"; no group address.
bool is_mac(const std::string& text);
/// "10.99.0.2 02:00:00:00:00:02".
bool is_neighbour(const std::string& text);
/// "net.ipv4.ip_forward=1".
bool is_sysctl(const std::string& text);
/// Why an interface cannot have that name; empty when it can.
std::string why_no_interface_name(std::string_view name);

/// "NAME = REGULAR EXPRESSION" in two.
struct NumberRule {
  std::string name, expression;
};
/// Explains in `why` when it is none.
bool parse_number_rule(const std::string& text, NumberRule& rule, std::string& why);

/// What adds a neighbour ("ADDRESS MAC") or a route, as `ip route add` has it.
std::vector<std::string> neighbour_words(const std::string& neighbour, const std::string& interface);
std::vector<std::string> route_words(const std::string& route);

/// Words parted by blanks.
template <class Use>
void for_each_word(std::string_view text, Use use) {
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\n", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    use(std::string(text.substr(at, end - at)));
    at = end;
  }
}

}  // namespace rocebox::lab
