// SPDX-License-Identifier: BSD-3-Clause
// HopTables: next hops and groups of equal ones, in tables of fixed size, and how a new configuration takes its places
// beside the running one.
#pragma once
#include <map>
#include <vector>

#include "switch_model/next_hops.h"

namespace rocebox::switch_model::forward {

/// A group is a run of next hops that stand side by side. Places that are not used keep what stood there.
struct HopTables {
  explicit HopTables(std::size_t entries = 0)
      : hops(entries), groups(entries), hop_used(entries), group_used(entries) {}
  std::vector<NextHop> hops;
  std::vector<EcmpGroup> groups;
  std::vector<bool> hop_used, group_used;
};

/// Makes the tables of a configuration that is to follow a running one. Packets that wait in queues or go round bear
/// numbers of hops and groups: those of the running configuration stay what they are, and their places are free for
/// the one after it only.
class HopPlacer {
 public:
  explicit HopPlacer(const HopTables& running);
  /// The number of the group of these next hops, in this order; the running one's where there is one. Throws
  /// ConfigError when there is no room.
  std::uint32_t place(const std::vector<NextHop>& hops);
  /// What was placed.
  HopTables take() { return std::move(made_); }

 private:
  std::size_t free_run(std::size_t count);

  const HopTables& running_;
  HopTables made_;
  std::map<std::vector<NextHop>, std::uint32_t> groups_;
  std::size_t next_hop_ = 0, next_group_ = 0;  // nothing before them is free
};

}  // namespace rocebox::switch_model::forward
