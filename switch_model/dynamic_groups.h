// SPDX-License-Identifier: BSD-3-Clause
// DynamicGroups: multicast groups whose members a program's control plane changes while packets flow.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "switch_model/limits.h"
#include "switch_model/packet_state.h"

namespace rocebox::switch_model {

/// Their numbers begin behind all that a configuration can name.
class DynamicGroups {
 public:
  static constexpr std::uint16_t kFirst = 0xC000;

  /// While the switch is made: so many groups without members, with numbers one behind the other; the first one's.
  std::uint16_t reserve(std::size_t count) {
    const std::size_t first = members_.size();
    members_.resize(first + count);
    for (std::size_t i = first; i < members_.size(); i++) members_[i].reserve(kGroupMembersMax);
    return static_cast<std::uint16_t>(kFirst + first);
  }
  bool has(std::uint16_t number) const { return number >= kFirst && place_of(number) < members_.size(); }
  const std::vector<Port>& members(std::uint16_t number) const { return members_[place_of(number)]; }
  /// Behind all packets of an instant: from Program::on_timer. Does not allocate.
  void clear(std::uint16_t number) { members_[place_of(number)].clear(); }
  void add(std::uint16_t number, Port port) {
    std::vector<Port>& ports = members_[place_of(number)];
    if (std::ranges::find(ports, port) == ports.end()) ports.push_back(port);
  }

 private:
  static std::size_t place_of(std::uint16_t number) { return static_cast<std::size_t>(number - kFirst); }

  std::vector<std::vector<Port>> members_;
};

}  // namespace rocebox::switch_model
