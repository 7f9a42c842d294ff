// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/snooping/members.h"

#include <algorithm>
#include <string>

namespace rocebox::switch_model::snooping {
namespace {

constexpr unsigned kStage = 0;

}  // namespace

Members::Members(const Config& config, const Build& build)
    : info_(build.info),
      groups_(&build.groups),
      first_(groups_->reserve(static_cast<std::size_t>(config.groups) + 1)),
      table_(build.layout, "group", {Gress::kIngress, kStage}, static_cast<std::uint32_t>(config.groups)),
      all_(static_cast<std::size_t>(config.groups)) {
  for (const std::string& name : config.router_ports) static_[info_.find(name)] = true;
  tell_all();
}

Members::Group* Members::find(const GroupKey& key) {
  const std::uint32_t entry = table_.lookup(key);
  return entry == kMiss ? nullptr : &all_[table_.value(entry) - first_ - 1u];
}

bool Members::is_member(const GroupKey& key, Port port) const {
  const std::uint32_t entry = table_.lookup(key);
  return entry != kMiss && all_[table_.value(entry) - first_ - 1u].until[port] > 0;
}

// What the switch is to do with packets of the group in `place`.
void Members::tell(std::size_t place) {
  const auto number = static_cast<std::uint16_t>(first_ + 1 + place);
  groups_->clear(number);
  for (Port port = 0; port < info_.port_count(); port++)
    if (all_[place].until[port] > 0 || is_router(port)) groups_->add(number, port);
}

void Members::tell_all() {
  groups_->clear(first_);
  for (Port port = 0; port < info_.port_count(); port++)
    if (is_router(port)) groups_->add(first_, port);
  for (std::size_t place = 0; place < all_.size(); place++)
    if (all_[place].used) tell(place);
}

bool Members::join(const GroupKey& key, Port port, Nanos until) {
  Group* group = find(key);
  if (!group) {
    const auto free = std::ranges::find(all_, false, &Group::used);
    if (free == all_.end()) return false;
    const auto place = static_cast<std::size_t>(free - all_.begin());
    if (table_.insert(key, static_cast<std::uint16_t>(first_ + 1 + place)) == kMiss) return false;
    group = &*free;
    *group = {key, {}, true};
  }
  const bool is_new = group->until[port] == 0;
  group->until[port] = until;
  next_end_ = std::min(next_end_, until);
  if (is_new) tell(static_cast<std::size_t>(group - all_.data()));
  return true;
}

void Members::leave(const GroupKey& key, Port port, Nanos until) {
  Group* const group = find(key);
  if (!group || group->until[port] <= until) return;
  group->until[port] = until;
  next_end_ = std::min(next_end_, until);
}

void Members::add_router(Port port, Nanos until) {
  const bool is_new = !is_router(port);
  routers_[port] = std::max(routers_[port], until);
  next_end_ = std::min(next_end_, until);
  if (is_new) tell_all();
}

unsigned Members::forget(Nanos now) {
  unsigned ended = 0;
  bool routers = false;
  next_end_ = kNever;
  const auto look = [&](Nanos& until) {
    if (until == 0) return false;
    if (until > now) {
      next_end_ = std::min(next_end_, until);
      return false;
    }
    until = 0;
    return true;
  };
  for (Port port = 0; port < info_.port_count(); port++) routers |= look(routers_[port]);
  for (std::size_t place = 0; place < all_.size(); place++) {
    Group& group = all_[place];
    if (!group.used) continue;
    const unsigned before = ended;
    bool some = false;
    for (Port port = 0; port < info_.port_count(); port++) {
      ended += look(group.until[port]);
      some |= group.until[port] > 0;
    }
    if (!some) {
      table_.erase(group.key);
      group.used = false;
    } else if (ended != before) {
      tell(place);
    }
  }
  if (routers) tell_all();
  return ended;
}

void Members::report(Report& report) const {
  std::vector<const Group*> used;
  for (const Group& group : all_)
    if (group.used) used.push_back(&group);
  report.table("groups", used.size(), [&](Report& row, std::size_t i) {
    row.text("group", roce::address_text(used[i]->key.group));
    if (used[i]->key.vlan) row.count("vlan_number", used[i]->key.vlan);
    std::string ports;
    for (Port port = 0; port < info_.port_count(); port++)
      if (used[i]->until[port] > 0) ports += (ports.empty() ? "" : " ") + info_.ports[port];
    row.text("ports", ports);
  });
  std::string routers;
  for (Port port = 0; port < info_.port_count(); port++)
    if (is_router(port)) routers += (routers.empty() ? "" : " ") + info_.ports[port];
  report.text("router_ports", routers);
}

}  // namespace rocebox::switch_model::snooping
