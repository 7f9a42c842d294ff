// SPDX-License-Identifier: BSD-3-Clause
// Program `acl`: an access list, a ternary table whose rules permit, drop, count, meter, mark, mirror and redirect.
#pragma once
#include "switch_model/program.h"

namespace rocebox::switch_model {

Component acl_component();

}  // namespace rocebox::switch_model
