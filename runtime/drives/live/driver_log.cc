// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/driver_log.h"

#include <algorithm>
#include <sstream>

namespace rocebox {
namespace {

// What EAL adds behind a driver's own words, and what libbpf and libxdp remark on their way.
constexpr const char* kRemarks[] = {
    "Failed to attach device", "Driver cannot attach the device", "skipping unrecognized data", "No bpffs found",
    "without a working bpffs", "Falling back to loading",         "Failed to initialise device"};

}  // namespace

std::string DriverLog::cause() {
  const std::string text = dpdk_.text() + stderr_.text();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool remark = std::any_of(std::begin(kRemarks), std::end(kRemarks),
                                    [&](const char* words) { return line.find(words) != std::string::npos; });
    if (!line.empty() && !remark) return ": " + line;
  }
  return "";
}

}  // namespace rocebox
