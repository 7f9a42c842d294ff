// SPDX-License-Identifier: BSD-3-Clause
// The traffic of a lab: commands in its hosts, one after the other, and what became of them.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/lab/appliances.h"
#include "runtime/lab/interrupts.h"
#include "runtime/lab/lab_config.h"
#include "runtime/lab/process.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::lab {

class TrafficRun {
 public:
  using Progress = std::function<void(const TrafficStep&)>;
  /// `folder`: for what the commands print. `progress` is told of each command that is about to start.
  TrafficRun(const LabConfig& lab, std::string folder, Appliances& appliances, Interrupts& interrupts,
             Progress progress);

  /// Runs all commands; the first that fails, an appliance that ends, or an interruption is the end, and stands in
  /// `failures` then. Ends those in the background.
  void run(std::vector<std::string>& failures);
  /// What became of each command that was started, by name.
  Json report();

  /// The report of a run that has not begun: every name that an expectation can use.
  static Json skeleton(const LabConfig& lab);

 private:
  struct Step {
    const TrafficStep* config;
    Process process;
    Nanos started, ended = -1;
    std::optional<Process> listener = {};  // in a virtual machine: ends when `ready_port` is listened on
    bool timed_out = false, ended_by_lab = false;
  };
  void foreground(Step& step);
  void until_ready(Step& step);
  void wait_a_moment(const Step& step, Nanos nanos);
  Step& start(const TrafficStep& config);
  void end(Step& step);
  void end_background(std::vector<std::string>& failures);
  void check_exit(Step& step) const;
  std::string file(const Step& step, const char* kind) const;
  std::string output_file(const Step& step) const;
  bool is_ready(Step& step) const;
  bool listens(Step& step) const;
  std::vector<std::string> words(const TrafficStep& config) const;
  Json row(Step& step) const;
  [[noreturn]] void fail(const Step& step, const std::string& why) const;

  const LabConfig& lab_;
  std::string folder_;
  Appliances& appliances_;
  Interrupts& interrupts_;
  Progress progress_;
  std::deque<Step> steps_;
};

}  // namespace rocebox::lab
