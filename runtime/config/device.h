// SPDX-License-Identifier: BSD-3-Clause
// Devices as they are written, checked.
#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/config/top_fields.h"

namespace rocebox::config {

/// Checks what was read of a device, and wires it. `node` is what was written.
DeviceConfig resolve_device(const TopFields::Device& raw, const Node& node, const Registry& registry,
                            Mistakes& mistakes);

/// Names stand in paths of the report, so they are plain words.
void check_name(const std::string& name, Place place, Mistakes& mistakes);

}  // namespace rocebox::config
