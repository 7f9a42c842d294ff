// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/pipeline.h"
#include "runtime/limits.h"

namespace rocebox::config {

Node without(const Node& node, std::initializer_list<std::string_view> keys) {
  Node result;
  result.kind = Node::Kind::kMap;
  result.place = node.place;
  for (const Entry& entry : node.entries)
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) result.entries.push_back(entry);
  return result;
}

void check_name(const std::string& name, Place place, Mistakes& mistakes) {
  if (!is_plain_name(name)) mistakes.add(place, fmt::format("`{}` is no name: use letters, digits, _ and -", name));
}

DeviceConfig make_device(const TopFields::Device& raw, const Node& node, const Registry& registry, Mistakes& mistakes) {
  DeviceConfig device;
  device.name = raw.name;
  device.pipeline = raw.pipeline;
  check_name(raw.name, node.place, mistakes);
  for (const TopFields::KernelRow& row : raw.kernels) check_name(row.name, node.place, mistakes);
  device.place = node.place;
  device.kind = static_cast<DeviceKind>(raw.kind);
  device.path = raw.path;
  if (raw.path.empty()) mistakes.add(node.place, fmt::format("device `{}` has no `path:`", raw.name));
  const Node* written = node.find("kernels");
  for (const TopFields::KernelRow& row : raw.kernels)
    if (row.type) device.kernels.push_back({row.name, row.type, without(*written->find(row.name), {"type"})});
  // A kernel without options needs no entry under `kernels:`.
  for (const std::string& name : path_names(raw.path)) {
    const KernelType* type = registry.find(name);
    const bool has = std::any_of(raw.kernels.begin(), raw.kernels.end(), [&](const auto& k) { return k.name == name; });
    if (type && !has) device.kernels.push_back({name, type, {}});
  }
  if (device.kernels.size() > kStagesMax)
    mistakes.add(node.place, fmt::format("device `{}` has more than {} kernels", raw.name, kStagesMax));
  std::vector<PathKernel> kernels;
  for (const KernelConfig& kernel : device.kernels)
    kernels.push_back({kernel.name, kernel.type->shape, kernel.type->inputs, kernel.type->outputs});
  const Node* path = node.find("path");
  if (!raw.path.empty()) device.wiring = wire(raw.path, kernels, path->place, mistakes);
  return device;
}

}  // namespace rocebox::config
