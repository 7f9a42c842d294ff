// SPDX-License-Identifier: BSD-3-Clause
// scr: Software-Controlled RDMA (Zhao et al., NSDI 2025). Two components: `scr_control`, a congestion control of NICs,
// and `scr`, a kernel in a path that shows what a policy would do with the packets that pass. README.md has both.
#pragma once
#include "runtime/component/component.h"

namespace rocebox {
Component scr_component();
Component scr_control_component();
}  // namespace rocebox
