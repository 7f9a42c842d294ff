// SPDX-License-Identifier: BSD-3-Clause
// rping: rdmacm-utils' program of that name, as a workload: a client's buffer is read by the server and written back.
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox {
Component rping_workload();
}
