// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/config.h"
#include "runtime/config/units.h"

namespace rocebox::config {
namespace {

// MAC tables and the like; and rte_lpm's and rte_lpm6's tables of all /24, of which the system gives what is touched.
constexpr std::uint64_t kTablesMebibytes = 16, kRoutesMebibytes = 2 * 72;
// Of rte_hash, in both MAC tables.
constexpr std::uint64_t kBytesPerMac = 512;

}  // namespace

std::uint64_t eal_mebibytes(const RunConfig& config) {
  std::uint64_t sum = config.pool.mebibytes();
  for (const DeviceConfig& device : config.devices) {
    if (device.kind != DeviceKind::kSwitch || device.kernels.empty()) continue;
    const Node* forward = device.kernels[0].options.find("forward");
    sum += kTablesMebibytes + (forward && forward->find("routes") ? kRoutesMebibytes : 0);
    if (const Node* macs = forward ? forward->find("mac_entries") : nullptr)
      sum += static_cast<std::uint64_t>(parse_integer(macs->scalar).value_or(0)) * kBytesPerMac >> 20;
  }
  return sum;
}

}  // namespace rocebox::config
