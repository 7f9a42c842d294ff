// SPDX-License-Identifier: BSD-3-Clause
// What a network's configuration says, as text: what was drawn is known by its words alone.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <regex>
#include <sstream>
#include <string>

namespace rocebox::swarm {

inline bool says(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

// Below 17 ms, as other timeouts that are in a hurry; 0 never fires.
inline bool has_short_ack_timeout(const std::string& yaml) {
  static const std::regex given("local_ack_timeout: ([0-9]+)");
  return std::any_of(std::sregex_iterator(yaml.begin(), yaml.end(), given), std::sregex_iterator(),
                     [](const std::smatch& one) {
                       const int exponent = std::stoi(one[1]);
                       return exponent > 0 && exponent < 12;
                     });
}

// Of a link: shorter than a window, most of which is lost there, asked for and lost again.
inline bool has_short_queue(const std::string& yaml) {
  static const std::regex given("[{ ]queue: ([0-9]+)B");
  constexpr long kWindowBytes = 64 * 1024;
  return std::any_of(std::sregex_iterator(yaml.begin(), yaml.end(), given), std::sregex_iterator(),
                     [](const std::smatch& one) { return std::stol(one[1]) < kWindowBytes; });
}

// Workloads on multicast groups begin at the same address where they are given none: WRITEs of one and datagrams of
// another come to the hosts of both.
struct SharedGroups {
  explicit SharedGroups(const std::string& yaml) {
    std::istringstream rows(yaml);
    for (std::string row; std::getline(rows, row);)
      if (says(row, {"{type: multicast_"})) (says(row, {"transport: uc"}) ? writes : datagrams)++;
  }
  bool services() const { return writes && datagrams; }
  bool qkeys() const { return datagrams > 1; }  ///< datagrams of one come to the other's, which may have another Q_Key

  unsigned writes = 0, datagrams = 0;
};

}  // namespace rocebox::swarm
