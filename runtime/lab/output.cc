// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include "runtime/lab/checks.h"

namespace rocebox::lab {
namespace {

constexpr std::string_view kNames[] = {"host",       "run",       "exit",         "elapsed",
                                       "elapsed_ns", "timed_out", "ended_by_lab", "json"};

// The number that a text is; a whole one stays whole.
bool number_of(const std::string& text, Json& value) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return false;
  if (text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19)
    value = static_cast<std::int64_t>(std::stoll(text));
  else
    value = number;
  return true;
}

}  // namespace

void add_numbers(const std::vector<std::string>& rules, const std::string& text, Json& row) {
  for (const std::string& each : rules) {
    NumberRule rule;
    std::string why;
    if (!parse_number_rule(each, rule, why)) continue;
    const std::regex expression(rule.expression);
    std::istringstream lines(text);
    // Line by line, and not the longest: the library's matcher takes stack by the letter.
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      Json value;
      if (line.size() <= kLineBytesMax && std::regex_search(line, match, expression) &&
          number_of(match[1].str(), value))
        row[rule.name] = value;
    }
  }
}

bool is_listening(int process, unsigned port) {
  constexpr const char* kListen = "0A";
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream lines(fmt::format("/proc/{}/net/{}", process, table));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {  // "sl: ADDRESS:PORT ADDRESS:PORT STATE ..."
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const std::size_t colon = local.rfind(':');
      if (state == kListen && colon != std::string::npos &&
          std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port)
        return true;
    }
  }
  return false;
}

bool is_name_of_report(const std::string& name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace rocebox::lab
