// SPDX-License-Identifier: BSD-3-Clause
// sdr: watches Writes of SDR-RDMA and changes nothing: what has come of each message. kernels/sdr/observer/README.md.
// Ports: two-sided. Example: `path: host <-> sdr <-> wire`.
#pragma once
#include "runtime/kernel/kernel_options.h"

namespace rocebox {
Component sdr_component();
}  // namespace rocebox
