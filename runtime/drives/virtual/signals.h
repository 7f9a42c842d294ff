// SPDX-License-Identifier: BSD-3-Clause
// What transports and networks tell of losses and congestion, over all devices.
#pragma once
#include "runtime/drives/testbed.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Sums over the kernels and ports of all devices, of what any of them counts: retransmissions, timeouts, NAKs, CNPs,
/// marks, pause frames, and for how long these paused somebody: each by its name, and `pause_time_ns` in all.
Json signals(const Testbed& testbed);

}  // namespace rocebox
