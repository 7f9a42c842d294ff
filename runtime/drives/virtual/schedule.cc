// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/schedule.h"

#include <fmt/format.h>

namespace rocebox {

// What can never change is equal in all: each can be held against the kernels as they are now.
Schedule::Schedule(const config::RunConfig& config, Testbed& testbed) : config_(config), testbed_(testbed) {
  config::Mistakes mistakes = config.further_mistakes();
  for (const config::ScheduledChange& change : config.schedule) try {
      (void)change.options->change(kernel_of(change));
    } catch (const ConfigError& error) {
      mistakes.add(change.place, fmt::format("`{}` changes `{}`: {}", change.name, testbed.device(change.device).name(),
                                             error.what()));
    }
  if (!mistakes.none()) throw ConfigError(mistakes.text());
}

void Schedule::apply_due(Nanos now) {
  for (; next() <= now; done_++) {
    const config::ScheduledChange& change = config_.schedule[done_];
    Kernel& kernel = kernel_of(change);
    change.options->change(kernel)->apply(kernel, now);
    testbed_.fabric().wake(change.device);
  }
}

void Schedule::report(Json& report) const {
  if (config_.schedule.empty()) return;
  Json& rows = report["schedule"] = Json::array();
  for (std::size_t i = 0; i < config_.schedule.size(); i++) {
    const config::ScheduledChange& change = config_.schedule[i];
    rows.push_back({{"change", change.name},
                    {"at_ns", change.at},
                    {"of", testbed_.device(change.device).name()},
                    {"done", i < done_}});
  }
}

}  // namespace rocebox
