// SPDX-License-Identifier: BSD-3-Clause
// allgather: watches the chunks of multicast collectives that pass by, and changes nothing. What each number means:
// kernels/allgather/observer/README.md. Ports: two-sided. Example: `path: fabric <-> allgather <-> leaf`.
#pragma once
#include "runtime/kernel/kernel_options.h"

namespace rocebox {
Component allgather_component();
}  // namespace rocebox
