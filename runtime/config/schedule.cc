// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/config/device.h"
#include "runtime/config/pipeline_files.h"

namespace rocebox::config {
namespace {

class Reader {
 public:
  Reader(const Node& root, const Topology* topology, const Registry& registry, RunConfig& config, Mistakes& mistakes)
      : root_(root), topology_(topology), registry_(registry), config_(config), mistakes_(mistakes) {
    for (const DeviceConfig& device : config.devices) devices_.push_back(device.name);
    for (const LinkConfig& link : config.links) links_.push_back(link.name);
  }

  void entry(const TopFields::ScheduleRow& row, const Node& node) {
    entry_ = &row;
    place_ = node.place;
    const Node *devices = node.find("devices"), *links = node.find("links");
    if (!devices && !links) mistakes_.add(node.place, "changes nothing: give `links:` or `devices:`");
    if (devices && devices->is_map())
      for (const Entry& one : devices->entries) device(one);
    if (!links || !links->is_map()) return;
    for (const Entry& one : links->entries) {
      const std::size_t number = find(links_, one, "link");
      if (number == links_.size()) continue;
      const LinkConfig& link = config_.links[number];
      change({config_.devices.size() + number, 0}, link.kernel, one.value, [&] { return written(link); });
    }
  }

 private:
  using Target = std::pair<std::size_t, unsigned>;  // device, behind them links; kernel

  std::size_t find(const std::vector<std::string>& names, const Entry& entry, const char* what) {
    const auto found = std::ranges::find(names, entry.key);
    if (found == names.end())
      mistakes_.add(entry.place, fmt::format("there is no {} `{}`{}", what, entry.key,
                                             mistakes_.full() ? "" : suggestion(entry.key, names)));
    return static_cast<std::size_t>(found - names.begin());
  }

  // Its options stand as in the configuration: under its kind, or by kernel.
  void device(const Entry& entry) {
    const std::size_t number = find(devices_, entry, "device");
    if (number == devices_.size()) return;
    const DeviceConfig& device = config_.devices[number];
    const std::string key = device.kind ? device.kind->name : "kernels";
    if (!entry.value.is_map())
      return mistakes_.add(entry.value.place, fmt::format("expected a mapping with `{}:`", key));
    for (const Entry& part : entry.value.entries) {
      if (part.key != key) {
        mistakes_.add(part.place, fmt::format("unknown key `{}`; device `{}` has `{}:`", part.key, device.name, key));
      } else if (device.kind) {
        change({number, 0}, device.kernels[0], part.value, [&] { return written(device, device.kind->name); });
      } else if (part.value.is_map()) {
        for (const Entry& kernel : part.value.entries) this->kernel(number, kernel);
      }
    }
  }

  void kernel(std::size_t number, const Entry& entry) {
    const DeviceConfig& device = config_.devices[number];
    std::vector<std::string> names;
    for (const KernelConfig& kernel : device.kernels) names.push_back(kernel.name);
    const std::size_t which = find(names, entry, "kernel");
    if (which == names.size()) return;
    change({number, static_cast<unsigned>(which)}, device.kernels[which], entry.value, [&] {
      Node node = written(device, "kernels");
      const Node* own = node.find(entry.key);
      Node options = own ? *own : Node{};
      std::erase_if(options.entries, [](const Entry& option) { return option.key == "type"; });
      return options;
    });
  }

  // What was written of a device under `key`; nothing is a mapping without entries.
  Node written(const DeviceConfig& device, const std::string& key) const {
    const Node* devices = root_.find("devices");
    const Node* node = devices ? devices->find(device.name) : nullptr;
    const Node* part = node ? node->find(key) : nullptr;
    return part ? *part : Node{};
  }
  Node written(const LinkConfig& link) const {
    if (link.placed) return topology_->link_node(link.name, config_);
    Node node = *root_.find("links")->find(link.name);
    std::erase_if(node.entries, [](const Entry& option) { return option.key == "between"; });
    return node;
  }

  template <class Written>
  void change(Target target, const KernelConfig& kernel, const Node& change, Written written) {
    if (!change.is_map() || change.entries.empty())
      return mistakes_.add(change.place, "expected a mapping with the options that change");
    auto known = now_.find(target);
    if (known == now_.end()) known = now_.emplace(target, written()).first;
    Node& node = known->second;
    if (!node.is_map()) node.kind = Node::Kind::kMap;
    if (!node.place.is_known()) node.place = change.place;
    lay_over(node, change);
    std::shared_ptr<KernelOptions> options(static_cast<KernelOptions*>(kernel.type->options(registry_).release()));
    if (auto* whole = dynamic_cast<DeviceOptions*>(options.get()))
      for (const auto& [device, placement] : config_.placements)
        if (device == config_.devices[target.first].name) whole->place(placement);
    FieldsReader reader(&node, mistakes_);
    options->fields(reader);
    reader.finish();
    config_.schedule.push_back(
        {entry_->name, place_, entry_->at, static_cast<unsigned>(target.first), target.second, std::move(options)});
  }

  const Node& root_;
  const Topology* topology_;
  const Registry& registry_;
  RunConfig& config_;
  Mistakes& mistakes_;
  std::vector<std::string> devices_, links_;
  std::map<Target, Node> now_;  // options as they are by then
  const TopFields::ScheduleRow* entry_ = nullptr;
  Place place_;
};

}  // namespace

void add_schedule(const TopFields& top, const Node& root, const Topology* topology, const Registry& registry,
                  RunConfig& config, Mistakes& mistakes) {
  const Node* rows = root.find("schedule");
  if (!rows) return;
  std::vector<const TopFields::ScheduleRow*> by_time;
  for (const TopFields::ScheduleRow& row : top.schedule) by_time.push_back(&row);
  std::ranges::stable_sort(by_time, {}, &TopFields::ScheduleRow::at);
  Reader reader(root, topology, registry, config, mistakes);
  for (const TopFields::ScheduleRow* row : by_time) {
    const Node& node = *rows->find(row->name);
    check_name(row->name, node.place, mistakes);
    reader.entry(*row, node);
  }
  for (const TopFields::ScheduleRow& row : top.schedule)
    config.schedule_values.push_back(
        {row.name, OptionValue::Kind::kGroup, true, {}, {}, {written_values(*rows->find(row.name))}});
}

}  // namespace rocebox::config
