// SPDX-License-Identifier: BSD-3-Clause
// SojournTimes: histograms of how long packets stay in a device and in its kernels, of one shard.
#pragma once
#include <vector>

#include "runtime/drives/live/clock.h"
#include "runtime/engine/probe.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox {

class SojournTimes final : public Probe {
 public:
  SojournTimes(const Clock& clock, std::size_t kernels) : clock_(clock), kernels_(kernels) {}
  Nanos now() override { return clock_.now(); }
  void kernel_left(unsigned stage, Nanos spent) override { kernels_[stage].add(spent); }
  void device_left(Nanos spent) override { device_.add(spent); }

  const Histogram& device() const { return device_; }
  const Histogram& kernel(std::size_t stage) const { return kernels_[stage]; }

 private:
  const Clock& clock_;
  Histogram device_;
  std::vector<Histogram> kernels_;
};

}  // namespace rocebox
