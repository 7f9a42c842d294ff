// SPDX-License-Identifier: BSD-3-Clause
// Names for DPDK's tables, which are process-wide there and carry no meaning here.
#pragma once
#include <atomic>
#include <string>

namespace rocebox::switch_model {

inline std::string table_name() {
  static std::atomic<unsigned> serial{0};
  return "rocebox_table_" + std::to_string(serial++);
}

}  // namespace rocebox::switch_model
