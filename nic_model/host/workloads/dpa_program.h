// SPDX-License-Identifier: BSD-3-Clause
// dpa_program: a device program on the DPA of a host's NIC, and its peer: what it is sent by a host, and what it says.
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox {
Component dpa_program_workload();
}
