// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "runtime/kernel/kernel.h"

namespace rocebox {
KernelType inspect_kernel_type();
}  // namespace rocebox
