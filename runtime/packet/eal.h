// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment layer, started once for the process.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rocebox {

/// Starts EAL so that it works in any sandbox: no hugepages, PCI, root, shared configuration or telemetry, one
/// lcore that floats over the CPUs this process may use, `mebibytes` of memory. Leaves no file behind. Calling it
/// again does nothing. Throws ConfigError.
void start_eal(std::uint64_t mebibytes);

}  // namespace rocebox
