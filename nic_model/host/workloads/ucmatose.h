// SPDX-License-Identifier: BSD-3-Clause
// ucmatose: rdmacm-utils' program of that name, as a workload: connections by RDMA CM, messages there and back.
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox {
Component ucmatose_workload();
}
