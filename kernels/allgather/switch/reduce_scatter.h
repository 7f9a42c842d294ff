// SPDX-License-Identifier: BSD-3-Clause
// Workload `inc_reduce_scatter`: each host owns one block of every host's buffer and gets its sum, which switches with
// the program `inc_reduce` have added up (II-A, Appendix B). Datagrams alone; see README.md beside.
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox {
Component inc_reduce_scatter_workload();
}  // namespace rocebox
