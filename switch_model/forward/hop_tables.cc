// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/hop_tables.h"

#include <fmt/format.h>

#include "runtime/kernel/kernel.h"

namespace rocebox::switch_model::forward {

HopPlacer::HopPlacer(const HopTables& running) : running_(running), made_(running) {
  made_.hop_used.assign(running.hops.size(), false);
  made_.group_used.assign(running.groups.size(), false);
  for (std::uint32_t number = 0; number < running.groups.size(); number++) {
    if (!running.group_used[number]) continue;
    const auto first = running.hops.begin() + running.groups[number].first;
    groups_.emplace(std::vector<NextHop>(first, first + running.groups[number].count), number);
  }
}

std::uint32_t HopPlacer::place(const std::vector<NextHop>& hops) {
  auto known = groups_.find(hops);
  if (known == groups_.end()) {
    const std::size_t first = free_run(hops.size());
    while (next_group_ < made_.groups.size() && (running_.group_used[next_group_] || made_.group_used[next_group_]))
      next_group_++;
    if (first == made_.hops.size() || next_group_ == made_.groups.size())
      throw ConfigError(
          fmt::format("forward: no room for {} next hops beside those of the running configuration and of this one: "
                      "`hop_entries: {}`",
                      hops.size(), made_.hops.size()));
    std::copy(hops.begin(), hops.end(), made_.hops.begin() + static_cast<std::ptrdiff_t>(first));
    made_.groups[next_group_] = {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(hops.size())};
    known = groups_.emplace(hops, static_cast<std::uint32_t>(next_group_)).first;
  }
  const EcmpGroup& group = made_.groups[known->second];
  made_.group_used[known->second] = true;
  for (std::size_t i = 0; i < group.count; i++) made_.hop_used[group.first + i] = true;
  return known->second;
}

// The first of `count` free places side by side; the number of all places when there are none.
std::size_t HopPlacer::free_run(std::size_t count) {
  const auto taken = [this](std::size_t i) { return running_.hop_used[i] || made_.hop_used[i]; };
  const std::size_t all = made_.hops.size();
  while (next_hop_ < all && taken(next_hop_)) next_hop_++;
  std::size_t first = next_hop_;
  for (std::size_t at = first; at < all && at - first < count; at++)
    if (taken(at)) first = at + 1;
  return first + count <= all ? first : all;
}

}  // namespace rocebox::switch_model::forward
