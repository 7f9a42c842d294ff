// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace rocebox::test {

/// Bytes of this process that are in memory.
inline std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace rocebox::test
