// SPDX-License-Identifier: BSD-3-Clause
// Program `forward`: L2 with learning, L3 by longest prefix, ECMP, multicast.
#pragma once
#include "switch_model/program.h"

namespace rocebox::switch_model {

Component forward_component();

}  // namespace rocebox::switch_model
