// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {

/// write_bw, read_bw, send_bw, atomic_bw, write_lat, read_lat, send_lat, atomic_lat.
std::vector<Component> perftest_workloads();

}  // namespace rocebox::nic_model
