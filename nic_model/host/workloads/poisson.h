// SPDX-License-Identifier: BSD-3-Clause
// poisson: transfers that arrive by chance, as many as make a load, with sizes of a distribution.
#pragma once
#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {

Component poisson_workload();

}  // namespace rocebox::nic_model
