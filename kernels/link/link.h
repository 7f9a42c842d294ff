// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "runtime/kernel/kernel.h"

namespace rocebox {
KernelType link_kernel_type();
}  // namespace rocebox
