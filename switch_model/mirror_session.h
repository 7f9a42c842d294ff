// SPDX-License-Identifier: BSD-3-Clause
// MirrorSession: where copies of packets go, by a number that programs name.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/component/fields.h"

namespace rocebox::switch_model {

struct MirrorSession {
  std::int64_t session = 1;
  std::string port;
  std::uint64_t bytes = 0xFFFF;  ///< a copy is cut to so many
};

}  // namespace rocebox::switch_model
