// SPDX-License-Identifier: BSD-3-Clause
// The kernel `switch`, which a device of kind `switch` consists of: ports, programs, traffic manager.
#pragma once
#include "runtime/kernel/kernel.h"

namespace rocebox {

KernelType switch_kernel_type();

}  // namespace rocebox
