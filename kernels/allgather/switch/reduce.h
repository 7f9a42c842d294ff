// SPDX-License-Identifier: BSD-3-Clause
// Program `reduce`: sums packets of a reduction on their way up a tree of switches. See README.md beside.
#pragma once
#include "switch_model/program.h"

namespace rocebox {
Component inc_reduce_component();
}  // namespace rocebox
