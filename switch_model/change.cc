// SPDX-License-Identifier: BSD-3-Clause
// Datapath: new options while it runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "switch_model/datapath.h"

namespace rocebox::switch_model {

// What cannot be changed while the switch runs, with its value.
FlatValues Datapath::fixed_options(const Config& config) const {
  FlatValues values = flatten_all(config.values);
  const std::vector<std::string> changeable = changeable_options(config);
  std::erase_if(values, [&](const auto& option) {
    return std::ranges::any_of(changeable, [&](const std::string& name) { return is_within(option.first, name); });
  });
  return values;
}

std::vector<std::string> Datapath::changeable_options(const Config& config) const {
  std::vector<std::string> paths = {"multicast_groups", "traffic_manager.rate", "traffic_manager.rates"};
  for (const std::string& name : names_)
    for (const std::string_view option : config.find(name)->changeable())
      paths.push_back(fmt::format("{}.{}", name, option));
  return paths;
}

// Those of one number are one; the last floods.
std::vector<Datapath::Group> Datapath::groups_of(const Config& config) const {
  std::vector<Group> groups;
  for (const GroupConfig& row : config.groups) {
    const auto number = static_cast<std::uint16_t>(row.group);
    auto group = std::ranges::find(groups, number, &Group::number);
    if (group == groups.end()) group = groups.insert(groups.end(), Group{number, {}});
    for (const std::string& port : row.ports) group->members.push_back(info_.find(port));
  }
  Group all{kFloodGroup, {}};
  for (Port port = 0; port < info_.port_count(); port++) all.members.push_back(port);
  groups.push_back(std::move(all));
  return groups;
}

class Datapath::NewOptions final : public Change {
 public:
  NewOptions(std::vector<std::unique_ptr<ProgramChange>> changes, std::vector<Group> groups,
             std::vector<std::uint64_t> rates)
      : changes_(std::move(changes)), groups_(std::move(groups)), rates_(std::move(rates)) {}
  void apply(Kernel& kernel, Nanos) override {
    auto& datapath = static_cast<Datapath&>(kernel);
    datapath.groups_.swap(groups_);
    for (Port port = 0; port < rates_.size(); port++) datapath.traffic_.set_rate(port, rates_[port]);
    for (Resource& resource : datapath.layout_.resources()) resource.unused.clear();  // by the options before
    auto& programs = datapath.programs_;
    for (std::size_t i = 0; i < programs.size(); i++)
      if (changes_[i]) changes_[i]->apply(*programs[i]);
  }

 private:
  std::vector<std::unique_ptr<ProgramChange>> changes_;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> rates_;  // by port
};

std::unique_ptr<Change> Datapath::prepare(const Config& config) const {
  if (const std::string other = first_difference(fixed_options_, fixed_options(config)); !other.empty()) {
    const std::vector<std::string> changeable = changeable_options(config);
    throw ConfigError(fmt::format("switch: `{}` cannot be changed while it runs{}", other,
                                  changeable.empty() ? "" : fmt::format("; only {} can", fmt::join(changeable, ", "))));
  }
  if (config.traffic_manager.waits() == traffic_.idle())
    throw ConfigError(
        "switch: `traffic_manager`: one without a rate and without a lossless class has no queues, and cannot get or "
        "lose them while it runs");
  std::vector<std::uint64_t> rates;
  for (Port port = 0; port < info_.port_count(); port++) rates.push_back(config.traffic_manager.rate_of(info_, port));
  std::vector<std::unique_ptr<ProgramChange>> changes;
  for (std::size_t i = 0; i < names_.size(); i++) changes.push_back(config.find(names_[i])->prepare(*programs_[i]));
  return std::make_unique<NewOptions>(std::move(changes), groups_of(config), std::move(rates));
}

}  // namespace rocebox::switch_model
