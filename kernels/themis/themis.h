// SPDX-License-Identifier: BSD-3-Clause
// Program `themis`: Themis-S in ingress, Themis-D in egress. README.md says which decisions stand where.
#pragma once
#include "switch_model/program.h"

namespace rocebox {

Component themis_component();

}  // namespace rocebox
