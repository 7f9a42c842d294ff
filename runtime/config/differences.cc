// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/effective.h"

namespace rocebox::config {
namespace {

using Values = FlatValues;

const std::string* find(const Values& values, const std::string& path) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == path; });
  return found == values.end() ? nullptr : &found->second;
}

// Whether `path` is an option of the kernel that stands at `prefix`, and not its type or place.
bool is_option(const std::string& path, const std::string& prefix, std::string_view fixed) {
  if (!path.starts_with(prefix + ".")) return false;
  const std::string_view option = std::string_view(path).substr(prefix.size() + 1);
  return option.substr(0, option.find_first_of(".[")) != fixed;
}

void name_kernel(const RunConfig& config, Difference& difference) {
  for (unsigned i = 0; i < config.devices.size(); i++)
    for (unsigned k = 0; k < config.devices[i].kernels.size(); k++) {
      const DeviceConfig& device = config.devices[i];
      const std::string prefix = device.kind
                                     ? fmt::format("devices.{}.{}", device.name, device.kind->name)
                                     : fmt::format("devices.{}.kernels.{}", device.name, device.kernels[k].name);
      if (is_option(difference.path, prefix, device.kind ? "ports" : "type")) {
        difference.device = i;
        difference.kernel = k;
      }
    }
  for (unsigned i = 0; i < config.links.size(); i++)
    if (is_option(difference.path, "links." + config.links[i].name, "between"))
      difference.device = static_cast<unsigned>(config.devices.size()) + i;
}

}  // namespace

std::vector<Difference> differences(const RunConfig& before, const RunConfig& after) {
  const Values old_values = flatten(effective_values(before)), new_values = flatten(effective_values(after));
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
