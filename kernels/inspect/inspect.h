// SPDX-License-Identifier: BSD-3-Clause
// inspect: watches RoCEv2 flows and changes nothing. What each number means:
// kernels/inspect/README.md. Ports: two-sided. Example: `path: host <-> inspect <-> wire`.
#pragma once
#include "runtime/kernel/kernel.h"

namespace rocebox {
KernelType inspect_kernel_type();
}  // namespace rocebox
