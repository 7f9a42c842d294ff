// SPDX-License-Identifier: BSD-3-Clause
// Collectives, as workloads: each host takes its next step when what it waits for has come.
#pragma once
#include <span>

#include "runtime/kernel/workload.h"

namespace rocebox {

/// The rows of the registry: all workloads of NICs but rping.
std::span<const Component> nic_workloads();

}  // namespace rocebox
