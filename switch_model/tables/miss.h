// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace rocebox::switch_model {

/// What lookups of all tables give on a miss.
inline constexpr std::uint32_t kMiss = 0xFFFFFFFF;

}  // namespace rocebox::switch_model
