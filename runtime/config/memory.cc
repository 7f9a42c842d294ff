// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/config.h"

namespace rocebox::config {

std::uint64_t eal_mebibytes(const RunConfig& config) {
  std::uint64_t bytes = 0;
  for (const DeviceConfig& device : config.devices)
    for (const KernelConfig& kernel : device.kernels) bytes += kernel.options->eal_bytes();
  for (const LinkConfig& link : config.links) bytes += link.kernel.options->eal_bytes();
  return config.pool.mebibytes() + (bytes >> 20);
}

}  // namespace rocebox::config
