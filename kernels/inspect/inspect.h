// SPDX-License-Identifier: BSD-3-Clause
// inspect: watches RoCEv2 flows and changes nothing. What each number means:
// kernels/inspect/README.md. Ports: two-sided. Example: `path: host <-> inspect <-> wire`.
#pragma once
#include "runtime/kernel/kernel_options.h"

namespace rocebox {
Component inspect_component();
}  // namespace rocebox
