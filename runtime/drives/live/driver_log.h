// SPDX-License-Identifier: BSD-3-Clause
// What a driver has to say while a port is made.
#pragma once
#include <unistd.h>

#include <string>

#include "runtime/process/eal.h"
#include "runtime/process/kept_output.h"

namespace rocebox {

/// While it lives, the words of DPDK and of what drivers print to standard error by themselves (libbpf, libxdp) are
/// kept: the cause when something fails, noise when it does not. One at a time, while no other thread prints.
class DriverLog {
 public:
  /// ": " and the line that is most to the point; empty when nothing was said.
  std::string cause();

 private:
  DpdkLog dpdk_;
  KeptOutput stderr_{STDERR_FILENO};
};

}  // namespace rocebox
