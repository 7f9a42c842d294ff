// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "runtime/config/config.h"
#include "runtime/config/document.h"

namespace rocebox::config {

/// Devices that links join, with others between them or not, and that have one address: what is sent to it would come
/// to one of them, or never leave the other one. `root` is the document, in which a topology's devices stand.
void refuse_shared_addresses(const RunConfig& config, const Node& root, Mistakes& mistakes);

}  // namespace rocebox::config
