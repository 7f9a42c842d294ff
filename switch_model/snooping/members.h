// SPDX-License-Identifier: BSD-3-Clause
// Members: which ports have members of which groups, and behind which there are routers, each until when. The control
// plane's; packets meet the table `group` and the ports of DynamicGroups.
#pragma once
#include <array>
#include <vector>

#include "switch_model/dynamic_groups.h"
#include "switch_model/program.h"
#include "switch_model/snooping/config.h"
#include "switch_model/tables/exact_table.h"

namespace rocebox::switch_model::snooping {

/// A group's address within a VLAN.
struct GroupKey {
  roce::IpAddress group;
  std::uint32_t vlan;
};

class Members {
 public:
  using Table = ExactTable<GroupKey, std::uint16_t>;

  Members(const Config& config, const Build& build);

  Table& table() { return table_; }
  /// The group of router ports alone.
  std::uint16_t router_group() const { return first_; }
  bool has_router() const { return !groups_->members(first_).empty(); }

  /// Behind all packets of the instant. Members until `until`; false: there is no room for one more group.
  bool join(const GroupKey& key, Port port, Nanos until);
  /// A port's membership ends at `until`, where that is before it would have.
  void leave(const GroupKey& key, Port port, Nanos until);
  void add_router(Port port, Nanos until);
  /// Forgets what has ended by `now`; how many memberships of ports, and when the next one ends.
  unsigned forget(Nanos now);
  Nanos next_end() const { return next_end_; }
  bool is_member(const GroupKey& key, Port port) const;

  void report(Report& report) const;

 private:
  using Ends = std::array<Nanos, kSwitchPortsMax>;  // 0: none
  struct Group {
    GroupKey key;
    Ends until;
    bool used = false;
  };
  Group* find(const GroupKey& key);
  void tell(std::size_t place);
  void tell_all();
  bool is_router(Port port) const { return static_[port] || routers_[port] > 0; }

  const SwitchInfo& info_;
  DynamicGroups* groups_;
  std::uint16_t first_;  // number of the routers' group; those of members follow
  Table table_;
  std::vector<Group> all_;
  Ends routers_{};
  std::array<bool, kSwitchPortsMax> static_{};
  Nanos next_end_ = kNever;
};

}  // namespace rocebox::switch_model::snooping
