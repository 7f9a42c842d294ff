// SPDX-License-Identifier: BSD-3-Clause
// The wires of a lab: what they join.
#pragma once
#include <string>
#include <vector>

#include "runtime/lab/lab_config.h"

namespace rocebox::lab {

/// Reads `texts`, which stand at `root`'s `wires:`, into `lab.wires`, whose hosts and appliances are known. What cannot
/// be joined, is joined twice, or is not joined and should be, is a mistake.
void read_wires(const std::vector<std::string>& texts, const config::Node& root, LabConfig& lab,
                config::Mistakes& mistakes);

}  // namespace rocebox::lab
