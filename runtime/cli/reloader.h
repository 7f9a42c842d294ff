// SPDX-License-Identifier: BSD-3-Clause
// Reloader: takes over what a run's configuration file says now, by SIGHUP or by `rocebox reload`.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "runtime/drives/live/live.h"
#include "runtime/telemetry/endpoints.h"

namespace rocebox::cli {

class Reloader {
 public:
  /// `load` reads the configuration as the command line changes it, and throws ConfigError; `told` is called around
  /// each reload: true before, false after it.
  Reloader(Live& live, config::RunConfig running, std::function<config::RunConfig()> load,
           std::function<void(bool begins)> told);

  struct Outcome {
    bool taken;        ///< else the configuration before it stays in force
    std::string text;  ///< what changed, or why nothing did: lines, each with its end
  };
  /// On any thread; one after another. What came of it is also said on standard error.
  Outcome reload();

 private:
  Outcome try_reload();

  std::mutex one_;
  Live& live_;
  config::RunConfig running_;
  std::function<config::RunConfig()> load_;
  std::function<void(bool)> told_;
  Endpoints endpoints_;  // last: no call comes before all is there, or after any of it is gone
};

}  // namespace rocebox::cli
