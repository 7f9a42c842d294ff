// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "runtime/config/config.h"
#include "runtime/config/units.h"

namespace rocebox::config {
namespace {

// MAC tables and the like; and rte_lpm's and rte_lpm6's tables of all /24, of which the system gives what is touched,
// twice: those of a reload are built beside. They hold so many prefixes, and each more takes its groups of 256.
constexpr std::uint64_t kTablesMebibytes = 16, kRoutesMebibytes = 2 * 144, kRoutesWithin = 1024,
                        kBytesPerRoute = 2 * 15 * 1024;
// Of rte_hash, in both MAC tables.
constexpr std::uint64_t kBytesPerMac = 512;
// Of rte_acl, as rules with wildcards in many fields were seen to take; twice, for rules that are built beside.
constexpr std::uint64_t kRulesMebibytes = 2 * 16, kBytesPerRow = 2 * 4096;

std::uint64_t number_at(const Node* group, std::string_view name) {
  const Node* value = group ? group->find(name) : nullptr;
  return value ? static_cast<std::uint64_t>(parse_integer(value->scalar).value_or(0)) : 0;
}

}  // namespace

std::uint64_t eal_mebibytes(const RunConfig& config) {
  std::uint64_t sum = config.pool.mebibytes();
  for (const DeviceConfig& device : config.devices) {
    if (device.kind != DeviceKind::kSwitch || device.kernels.empty()) continue;
    const Node* forward = device.kernels[0].options.find("forward");
    sum += kTablesMebibytes;
    // Without routes at the start some may be reloaded.
    if (forward && (forward->find("routes") || forward->find("router_mac"))) {
      const std::uint64_t routes = number_at(forward, "route_entries");
      sum += kRoutesMebibytes + ((routes - std::min(routes, kRoutesWithin)) * kBytesPerRoute >> 20);
    }
    sum += number_at(forward, "mac_entries") * kBytesPerMac >> 20;
    if (const Node* acl = device.kernels[0].options.find("acl"))
      sum += kRulesMebibytes + (number_at(acl, "tcam_entries") * kBytesPerRow >> 20);
  }
  return sum;
}

}  // namespace rocebox::config
