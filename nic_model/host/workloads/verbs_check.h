// SPDX-License-Identifier: BSD-3-Clause
// verbs_check: every verb of every transport between two hosts, both ways, and every byte compared; the other one may
// be a machine with an RDMA device and the program of that name (configs/lab/vm/guest/verbs_check.c).
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox {
Component verbs_check_workload();
}
