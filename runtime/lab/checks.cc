// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <regex>
#include <vector>

#include "runtime/config/document.h"
#include "runtime/config/units.h"

namespace rocebox::lab {
namespace {

constexpr std::size_t kInterfaceNameMax = 15;  // IFNAMSIZ, its zero left out

// Bits of an address of that text; 0 when it is none.
int address_bits(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return 32;
  return inet_pton(AF_INET6, text.c_str(), bytes) == 1 ? 128 : 0;
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

bool is_address(const std::string& text) { return address_bits(text) != 0; }

bool is_address_with_prefix(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || text.size() - slash > 4) return false;
  const int bits = address_bits(text.substr(0, slash));
  const std::string length = text.substr(slash + 1);
  if (bits == 0 || length.empty() || length.find_first_not_of("0123456789") != std::string::npos) return false;
  return std::stoi(length) <= bits;
}

bool is_mac(const std::string& text) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < text.size(); i++)
    if (i % 3 == 2 ? text[i] != ':' : !is_hex(text[i])) return false;
  return std::stoi(text.substr(0, 2), nullptr, 16) % 2 == 0 && text != "00:00:00:00:00:00";
}

bool is_neighbour(const std::string& text) {
  std::vector<std::string> words;
  for_each_word(text, [&](std::string word) { words.push_back(std::move(word)); });
  return words.size() == 2 && is_address(words[0]) && is_mac(words[1]);
}

bool is_sysctl(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || text[0] == '-') return false;
  return text.find_first_of(" \t\n") == std::string::npos || text.find_first_of(" \t\n") > equals;
}

std::string why_no_interface_name(std::string_view name) {
  if (!config::is_plain_name(name) || name[0] == '-') return "use letters, digits, _ and -";
  if (name.size() > kInterfaceNameMax) return fmt::format("Linux takes at most {} characters", kInterfaceNameMax);
  if (name == "lo" || name == "all" || name == "default") return "Linux uses that name itself";
  return "";
}

bool parse_number_rule(const std::string& text, NumberRule& rule, std::string& why) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    why = "write NAME = REGULAR EXPRESSION, such as `received = (\\d+) received`";
    return false;
  }
  rule.name = config::trimmed(std::string_view(text).substr(0, equals));
  rule.expression = config::trimmed(std::string_view(text).substr(equals + 1));
  if (!config::is_plain_name(rule.name)) {
    why = fmt::format("`{}` is no name: use letters, digits, _ and -", rule.name);
    return false;
  }
  try {
    if (std::regex(rule.expression).mark_count() > 0) return true;
    why = fmt::format("`{}` has no group: put the number in parentheses, such as `(\\d+) received`", rule.expression);
  } catch (const std::regex_error& error) {
    why = fmt::format("`{}` is no regular expression: {}", rule.expression, error.what());
  }
  return false;
}

std::vector<std::string> neighbour_words(const std::string& neighbour, const std::string& interface) {
  std::vector<std::string> words = {"ip", "neighbour", "replace"};
  for_each_word(neighbour, [&](std::string word) {
    if (words.size() == 4) words.push_back("lladdr");
    words.push_back(std::move(word));
  });
  words.insert(words.end(), {"dev", interface});
  return words;
}

std::vector<std::string> route_words(const std::string& route) {
  std::vector<std::string> words = {"ip", "route", "add"};
  if (route.find(':') != std::string::npos) words.insert(words.begin() + 1, "-6");
  for_each_word(route, [&](std::string word) { words.push_back(std::move(word)); });
  return words;
}

}  // namespace rocebox::lab
