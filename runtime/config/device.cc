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

namespace {

// One kernel, whose ports are the device's. Its fields have checked what is written for it.
void make_switch(const Node& node, const Registry& registry, DeviceConfig& device, Mistakes& mistakes) {
  for (const char* key : {"path", "kernels"})
    if (const Node* of_bump = node.find(key))
      mistakes.add(of_bump->place, fmt::format("device `{}` is a switch, which has no `{}:`", device.name, key));
  const Node* options = node.find("switch");
  const Node* ports = options ? options->find("ports") : nullptr;
  if (!ports)
    return mistakes.add(options ? options->place : node.place,
                        fmt::format("device `{}` is a switch and needs `switch: {{ports: [...]}}`", device.name));
  const Node* kind = node.find("kind");
  if (kind && kind->scalar != "switch")
    mistakes.add(kind->place, fmt::format("device `{}` has `switch:`, so its kind is `switch`", device.name));
  device.kernels.push_back({"switch", registry.find("switch"), *options});
  Mistakes reported(mistakes.file());
  FieldsReader(options, reported).texts("ports", device.wiring.ports, "");
  std::vector<Edge>& outputs = device.wiring.outputs.emplace_back();
  for (std::size_t port = 0; port < device.wiring.ports.size(); port++) {
    device.wiring.inputs.push_back({0, static_cast<Port>(port)});
    outputs.push_back({Edge::kOutside, static_cast<Port>(port)});
  }
}

void make_bump(const TopFields::Device& raw, const Node& node, const Registry& registry, DeviceConfig& device,
               Mistakes& mistakes) {
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
  for (const KernelConfig& kernel : device.kernels) {
    if (std::string_view(kernel.type->name) == "switch")
      mistakes.add(node.place, fmt::format("`{}` is a whole device: give device `{}` no path, but `switch:`",
                                           kernel.name, raw.name));
    kernels.push_back({kernel.name, kernel.type->shape, kernel.type->inputs, kernel.type->outputs});
  }
  const Node* path = node.find("path");
  if (!raw.path.empty()) device.wiring = wire(raw.path, kernels, path->place, mistakes);
}

}  // namespace

DeviceConfig make_device(const TopFields::Device& raw, const Node& node, const Registry& registry, Mistakes& mistakes) {
  DeviceConfig device;
  device.name = raw.name;
  device.pipeline = raw.pipeline;
  check_name(raw.name, node.place, mistakes);
  for (const TopFields::KernelRow& row : raw.kernels) check_name(row.name, node.place, mistakes);
  device.place = node.place;
  device.kind = raw.is_switch ? DeviceKind::kSwitch : static_cast<DeviceKind>(raw.kind);
  if (device.kind == DeviceKind::kSwitch)
    make_switch(node, registry, device, mistakes);
  else
    make_bump(raw, node, registry, device, mistakes);
  return device;
}

}  // namespace rocebox::config
