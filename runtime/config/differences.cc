// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/differences.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::config {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

// Every scalar with the way to it. Empty lists and mappings count as scalars, so that nothing written is lost.
void flatten(const Node& node, const std::string& path, Values& values) {
  for (const Entry& entry : node.entries)
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, values);
  for (std::size_t i = 0; i < node.items.size(); i++) flatten(node.items[i], fmt::format("{}[{}]", path, i), values);
  if (node.entries.empty() && node.items.empty()) values.emplace_back(path, node.scalar);
}

Values values_of(const RunConfig& config) {
  Mistakes none(config.file);
  Values values;
  flatten(parse_yaml(effective_yaml(config), none), "", values);
  return values;
}

const std::string* find(const Values& values, const std::string& path) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == path; });
  return found == values.end() ? nullptr : &found->second;
}

// Whether `path` is an option of the kernel that stands at `prefix`, and not its type or place.
bool is_option(const std::string& path, const std::string& prefix, const char* fixed) {
  return path.starts_with(prefix + ".") && !path.substr(prefix.size() + 1).starts_with(fixed);
}

void name_kernel(const RunConfig& config, Difference& difference) {
  for (unsigned i = 0; i < config.devices.size(); i++)
    for (unsigned k = 0; k < config.devices[i].kernels.size(); k++) {
      const DeviceConfig& device = config.devices[i];
      const bool is_switch = device.kind == DeviceKind::kSwitch;
      const std::string prefix = is_switch ? fmt::format("devices.{}.switch", device.name)
                                           : fmt::format("devices.{}.kernels.{}", device.name, device.kernels[k].name);
      if (is_option(difference.path, prefix, is_switch ? "ports" : "type"))
        difference.device = i, difference.kernel = k;
    }
  for (unsigned i = 0; i < config.links.size(); i++)
    if (is_option(difference.path, "links." + config.links[i].name, "between"))
      difference.device = static_cast<unsigned>(config.devices.size()) + i;
}

}  // namespace

std::vector<Difference> differences(const RunConfig& before, const RunConfig& after) {
  const Values old_values = values_of(before), new_values = values_of(after);
  std::vector<Difference> all;
  for (const auto& [path, value] : old_values) {
    const std::string* now = find(new_values, path);
    if (!now || *now != value) all.push_back({path, value, now ? *now : ""});
  }
  for (const auto& [path, value] : new_values)
    if (!find(old_values, path)) all.push_back({path, "", value});
  for (Difference& difference : all) name_kernel(before, difference);
  return all;
}

const KernelConfig& kernel_of(const RunConfig& config, const Difference& difference) {
  const std::size_t devices = config.devices.size();
  if (difference.device >= devices) return config.links[difference.device - devices].kernel;
  return config.devices[difference.device].kernels[difference.kernel];
}

}  // namespace rocebox::config
