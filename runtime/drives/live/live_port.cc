// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/live_port.h"

#include <fmt/format.h>

#include "runtime/kernel/kernel.h"

namespace rocebox {

void LivePort::refuse(const std::string& why) const {
  throw ConfigError(fmt::format("{}: port `{}` ({}): {}", by_, binding_.port.text(), text(), why));
}

}  // namespace rocebox
