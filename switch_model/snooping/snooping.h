// SPDX-License-Identifier: BSD-3-Clause
// Program `snooping`: packets to multicast groups go to the ports behind which somebody has joined (RFC 4541).
#pragma once
#include "switch_model/program.h"

namespace rocebox::switch_model {
Component snooping_component();
}  // namespace rocebox::switch_model
