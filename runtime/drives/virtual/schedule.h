// SPDX-License-Identifier: BSD-3-Clause
// Schedule: changes of running devices and links at given times, such as a link that fails.
#pragma once
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// What a reload does to a live run, by the clock of the fabric. It is made ready when it is due, between two instants:
/// that allocates, and is no part of the datapath.
class Schedule {
 public:
  /// Throws ConfigError with every change that cannot be made while its kernel runs.
  Schedule(const config::RunConfig& config, Testbed& testbed);

  /// When the next one is due; kNever: there is none.
  Nanos next() const { return done_ < config_.schedule.size() ? config_.schedule[done_].at : kNever; }
  /// Makes those that are due by `now`, in their order; the devices are stepped in this instant.
  void apply_due(Nanos now);
  /// Adds `schedule`, a row for each change, where there are any.
  void report(Json& report) const;

 private:
  Kernel& kernel_of(const config::ScheduledChange& change) {
    return testbed_.device(change.device).kernel(change.kernel);
  }

  const config::RunConfig& config_;
  Testbed& testbed_;
  std::size_t done_ = 0;
};

}  // namespace rocebox
