// SPDX-License-Identifier: BSD-3-Clause
// Program `acl`: an access list, a ternary table whose rules permit, drop, count, meter, mark, mirror and redirect.
#pragma once
#include "switch_model/program.h"

namespace rocebox::switch_model {

ProgramType acl_program_type();

}  // namespace rocebox::switch_model
