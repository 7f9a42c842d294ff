// SPDX-License-Identifier: BSD-3-Clause
// Workloads that are transfers from a list, from a file, or by a simple pattern.
#pragma once
#include <vector>

#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {

/// flows, permutation, incast.
std::vector<Component> flow_workloads();

}  // namespace rocebox::nic_model
