// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/driver_log.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace rocebox {
namespace {

// What EAL adds behind a driver's own words, and what libbpf and libxdp remark on their way.
constexpr const char* kRemarks[] = {
    "Failed to attach device", "Driver cannot attach the device", "skipping unrecognized data", "No bpffs found",
    "without a working bpffs", "Falling back to loading",         "Failed to initialise device"};

}  // namespace

DriverLog::DriverLog() {
  std::fflush(stderr);
  kept_ = memfd_create("driver_log", MFD_CLOEXEC);
  stderr_ = kept_ < 0 ? -1 : dup(STDERR_FILENO);
  if (stderr_ >= 0) dup2(kept_, STDERR_FILENO);
}

DriverLog::~DriverLog() {
  std::fflush(stderr);
  if (stderr_ >= 0) {
    dup2(stderr_, STDERR_FILENO);
    close(stderr_);
  }
  if (kept_ >= 0) close(kept_);
}

std::string DriverLog::cause() {
  std::fflush(stderr);
  std::string text = dpdk_.text();
  char buffer[4096];
  off_t at = 0;
  for (ssize_t got; kept_ >= 0 && (got = pread(kept_, buffer, sizeof buffer, at)) > 0; at += got)
    text.append(buffer, static_cast<std::size_t>(got));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool remark = std::any_of(std::begin(kRemarks), std::end(kRemarks),
                                    [&](const char* words) { return line.find(words) != std::string::npos; });
    if (!line.empty() && !remark) return ": " + line;
  }
  return "";
}

}  // namespace rocebox
