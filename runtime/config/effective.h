// SPDX-License-Identifier: BSD-3-Clause
// Every option of a configuration that counts, with the value that it has.
#pragma once
#include "runtime/component/option_values.h"
#include "runtime/config/config.h"

namespace rocebox::config {

/// As effective_yaml() writes them.
OptionValues effective_values(const RunConfig& config);

}  // namespace rocebox::config
