// SPDX-License-Identifier: BSD-3-Clause
// Workloads `multicast_allgather` and `multicast_broadcast`: the paper's collectives over emulated NICs.
#pragma once
#include <vector>

#include "runtime/component/component.h"

namespace rocebox {

std::vector<Component> allgather_workloads();

}  // namespace rocebox
