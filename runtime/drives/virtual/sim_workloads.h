// SPDX-License-Identifier: BSD-3-Clause
// SimWorkloads: the workloads of a configuration on their hosts, and who starts when.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/kernel/carried.h"
#include "runtime/kernel/workload.h"
#include "runtime/telemetry/expectations.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

class SimWorkloads {
 public:
  struct Row {
    const config::WorkloadConfig* config;
    std::unique_ptr<Workload> workload;
    std::vector<unsigned> hosts;       ///< devices
    std::vector<unsigned> dependents;  ///< rows that wait for this one
    std::size_t waits_for = 0;         ///< rows that have not finished
    Nanos due = kNever;                ///< when it starts, once that is known and until it does
    Nanos started = kNever, finished = kNever;
  };

  /// Makes every workload, and has its hosts wake their devices in the testbed's fabric; `begin` is when the run
  /// begins. Throws ConfigError with every host that is none, and with what only making a workload shows.
  SimWorkloads(const config::RunConfig& config, Testbed& testbed, Nanos begin = 0);

  /// The earliest start that is due; kNever when none is.
  Nanos next_start() const { return next_start_; }
  /// Starts those that are due by `now`, in the order of the configuration.
  void start_due(Nanos now);
  /// Whoever has not started never does.
  void start_no_more();
  /// Those in the background left out; false where there are no others.
  bool all_finished() const { return unfinished_ == 0 && waited_for_ > 0; }
  /// Whether one waits for another one to finish.
  bool any_waits() const { return waiting_ > 0; }
  /// Whether the hosts of all that have started act alone (Workload::hosts_act_alone).
  bool hosts_act_alone() const;
  /// When the last of those that have finished did, those in the background left out.
  Nanos finished_at() const { return finished_at_; }
  /// Whether one in the background goes on: once all others have finished its devices never come to rest.
  bool any_goes_on() const;
  /// What all of them have done, and the latest time for which one waits that has not finished.
  Progress progress() const;
  /// What those that the run waits for have carried; of 0 where one of them does not know how much that will be.
  Carrier::Share share_carried() const;

  const std::vector<Row>& rows() const { return rows_; }

 private:
  bool is_watched(const Row& row) const;
  // Once all others have finished.
  bool is_cut_off(const Row& row) const { return row.config->background && waited_for_ > 0; }
  Row make(const config::RunConfig& config, const config::WorkloadConfig& workload, Testbed& testbed,
           config::Mistakes& mistakes);
  void join(Nanos begin);
  void on_finished(unsigned row, Nanos now);
  void set_due(Row& row, Nanos now);

  std::vector<Row> rows_;
  const std::size_t waited_for_;  // that are not in the background
  std::size_t unfinished_, waiting_ = 0;
  Nanos next_start_ = kNever, finished_at_ = 0;
};

/// The error that a workload's own part of a report tells; empty: none.
std::string workload_error(const Json& details);
/// A line for each workload that tells of an error in the report of a run that has ended, where no expectation says
/// that it is to fail.
std::vector<std::string> failed_workloads(const Json& report, const Expectations& expectations);

}  // namespace rocebox
