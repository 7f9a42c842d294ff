// SPDX-License-Identifier: BSD-3-Clause
// What can be written for the virtual drive: how long it runs, and what its report measures by.
#pragma once
#include "runtime/component/fields.h"

namespace rocebox::config {

struct SimConfig {
  Nanos time = 0;                 ///< 0: until all workloads have finished
  Nanos watchdog = 10 * kSecond;  ///< 0: off
  Nanos sample = 0;               ///< 0: as the run is long; see runtime/drives/virtual/README.md
  std::uint64_t packet = 1024;    ///< bytes of a packet in an empty network, for slowdowns
  void fields(Fields& f);
};

}  // namespace rocebox::config
