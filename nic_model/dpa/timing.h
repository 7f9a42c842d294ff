// SPDX-License-Identifier: BSD-3-Clause
// Timing: how long the DPA's threads take. A core issues at most one instruction in a cycle, whichever of its threads
// has one; what a thread waits for memory and PCIe overlaps with what the others do.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/component/fields.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model::dpa {

struct TimingConfig {
  void fields(Fields& fields);
  bool enabled() const { return cycles_per_cqe > 0; }
  double nanoseconds(std::int64_t cycles) const {
    return static_cast<double>(cycles) * 1000 / static_cast<double>(clock_mhz);
  }

  std::int64_t clock_mhz = 1800;
  std::int64_t cycles_per_cqe = 0;  ///< 0: threads take no time
  std::int64_t instructions_per_cqe = 66;
  std::int64_t cycles_per_activation = 0, cycles_per_window_write = 0;
};

/// When the threads of a DPA are done. Times are nanoseconds with their fraction, so that none is lost.
class Timing {
 public:
  static constexpr std::size_t kCores = 16;
  explicit Timing(const TimingConfig& config) : config_(config) {}

  const TimingConfig& config() const { return config_; }
  /// What takes a thread of `core` so many cycles, of which it issues instructions in some, from `begin` on: its end.
  double take(std::size_t core, double begin, std::int64_t cycles, std::int64_t instructions) {
    double& issued = issued_[core];
    issued = std::max(issued, begin) + config_.nanoseconds(instructions);
    return std::max(begin + config_.nanoseconds(cycles), issued);
  }

 private:
  const TimingConfig config_;
  std::array<double, kCores> issued_{};  // until when the core's instructions are issued
};

}  // namespace rocebox::nic_model::dpa
