// SPDX-License-Identifier: BSD-3-Clause
// Who may look into a live run: DPDK's telemetry socket under the run's name, and /metrics.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "runtime/cli/commands.h"
#include "runtime/drives/live/live_endpoints.h"
#include "runtime/process/eal.h"
#include "runtime/telemetry/instance.h"
#include "runtime/telemetry/metrics_server.h"

namespace rocebox::cli {

class RunObservers {
 public:
  /// Takes the run's name and the address of /metrics. Throws ConfigError, naming what stands in the way. Where no
  /// socket can be had the run goes on without, and standard error says so.
  RunObservers(const RunArguments& arguments, const config::RunConfig& config);

  /// What EAL has to know; before it is started.
  void add_to(EalOptions& options) const;

  /// Answers about a run, while it lives.
  class Watch {
   public:
    Watch(const Live& live, RunObservers& observers);

   private:
    std::optional<LiveEndpoints> endpoints_;
    std::unique_ptr<MetricsServer> server_;
  };

  /// The run's name; empty when nobody can ask for it.
  std::string name() const { return instance_ ? instance_->name() : ""; }
  /// For the status line: ", metrics at ADDRESS", or nothing.
  const std::string& metrics_text() const { return metrics_text_; }

 private:
  std::optional<Instance> instance_;
  std::unique_ptr<MetricsServer> server_;  // until a watch has it
  std::string metrics_text_;
};

}  // namespace rocebox::cli
