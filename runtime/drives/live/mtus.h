// SPDX-License-Identifier: BSD-3-Clause
// Whether what one port of a live run takes fits through the others.
#pragma once
#include <memory>
#include <vector>

#include "runtime/drives/live/live_port.h"

namespace rocebox {

/// Throws ConfigError when a kernel makes packets that do not fit the port by which they leave, or when ports that
/// devices and links join have different MTUs: packets that the larger lets in would be lost at the smaller, and path
/// MTU discovery would not learn of it. `mtu:` at the smaller port says that this is meant. After the ports are set up.
void check_mtus(const config::RunConfig& config, const std::vector<std::unique_ptr<LivePort>>& ports);

}  // namespace rocebox
