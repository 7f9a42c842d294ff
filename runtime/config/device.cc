// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/device.h"
#include "runtime/limits.h"

namespace rocebox::config {

void check_name(const std::string& name, Place place, Mistakes& mistakes) {
  if (!is_plain_name(name)) mistakes.add(place, fmt::format("`{}` is no name: use letters, digits, _ and -", name));
}

namespace {

KernelConfig config_of(const TopFields::KernelRow& row, Place place) {
  return {row.name, row.type, row.options, row.values, place};
}

// One kernel, whose ports are the device's. Its fields have checked what is written for it.
void make_whole(const TopFields::Device& raw, const Node& node, DeviceConfig& device, Mistakes& mistakes) {
  const char* kind = raw.whole.type->name;
  for (const char* key : {"path", "kernels"})
    if (const Node* of_bump = node.find(key))
      mistakes.add(of_bump->place, fmt::format("device `{}` is a {}, which has no `{}:`", device.name, kind, key));
  const bool names_ports = std::ranges::any_of(
      raw.whole.values, [](const OptionValue& value) { return value.name == "ports" && !value.given; });
  if (names_ports && !raw.placed)
    return mistakes.add(node.find(kind)->place,
                        fmt::format("device `{0}` is a {1} and needs `{1}: {{ports: [...]}}`", device.name, kind));
  const Node* written = node.find("kind");
  if (written && written->scalar != kind)
    mistakes.add(written->place, fmt::format("device `{0}` has `{1}:`, so its kind is `{1}`", device.name, kind));
  device.kernels.push_back(config_of(raw.whole, node.find(kind)->place));
  device.kernels.back().name = kind;
  device.wiring.ports = device.whole()->ports();
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
  const Node *path = node.find("path"), *rows = node.find("kernels");
  for (const TopFields::KernelRow& row : raw.kernels)
    if (row.type) device.kernels.push_back(config_of(row, rows->find(row.name)->place));
  // A kernel without options needs no entry under `kernels:`.
  for (const std::string& name : path_names(raw.path)) {
    TopFields::KernelRow row{name, name, registry.find(kKernelKind, name), {}, {}};
    const bool has = std::any_of(raw.kernels.begin(), raw.kernels.end(), [&](const auto& k) { return k.name == name; });
    if (registry.find(kDeviceKind, name))
      mistakes.add(node.place,
                   fmt::format("`{0}` is a whole device: give device `{1}` no path, but `{0}:`", name, raw.name));
    if (!row.type || has) continue;
    TopFields::read_defaults(row, registry);
    device.kernels.push_back(config_of(row, path->place));
  }
  if (device.kernels.size() > kStagesMax)
    mistakes.add(node.place, fmt::format("device `{}` has more than {} kernels", raw.name, kStagesMax));
  std::vector<PathKernel> kernels;
  for (const KernelConfig& kernel : device.kernels)
    kernels.push_back({kernel.name, kernel.options->shape(), kernel.options->inputs(), kernel.options->outputs()});
  if (!raw.path.empty()) device.wiring = wire(raw.path, kernels, path->place, mistakes);
}

}  // namespace

DeviceConfig resolve_device(const TopFields::Device& raw, const Node& node, const Registry& registry,
                            Mistakes& mistakes) {
  DeviceConfig device;
  device.name = raw.name;
  device.pipeline = raw.pipeline;
  check_name(raw.name, node.place, mistakes);
  for (const TopFields::KernelRow& row : raw.kernels) check_name(row.name, node.place, mistakes);
  device.place = node.place;
  device.kind = raw.whole.type;
  if (device.kind)
    make_whole(raw, node, device, mistakes);
  else if (raw.kind > 0)
    mistakes.add(node.find("kind")->place, fmt::format("device `{0}` is a {1} and needs `{1}: {{ports: [...]}}`",
                                                       device.name, node.find("kind")->scalar));
  else
    make_bump(raw, node, registry, device, mistakes);
  return device;
}

}  // namespace rocebox::config
