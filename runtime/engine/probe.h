// SPDX-License-Identifier: BSD-3-Clause
// Probe: how long a sample of packets stays in a kernel and in a device, timed by a drive that has a clock.
#pragma once
#include "runtime/packet/packet.h"

namespace rocebox {

class Probe {
 public:
  /// While true, the first packet of each batch that enters a kernel or leaves the device belongs to the sample.
  bool sampling = false;

  virtual Nanos now() = 0;
  /// A packet that entered kernel `stage` left it after `spent`: the call itself, and the time it was held.
  virtual void kernel_left(unsigned stage, Nanos spent) = 0;
  /// A packet left the device `spent` after it had come.
  virtual void device_left(Nanos spent) = 0;

 protected:
  ~Probe() = default;
};

}  // namespace rocebox
