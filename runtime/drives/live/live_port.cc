// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/live_port.h"

#include <fmt/format.h>

#include "runtime/kernel/kernel.h"

namespace rocebox {

void LivePort::refuse(const std::string& why) const {
  const config::Place place = binding_.place;
  const std::string by = place.line ? fmt::format("{}:{}:{}", file_, place.line, place.column) : file_ + ": --port";
  throw ConfigError(fmt::format("{}: port `{}` ({}): {}", by, binding_.port.text(), text(), why));
}

}  // namespace rocebox
