// SPDX-License-Identifier: BSD-3-Clause
// Watcher: the kernel itself. Each message that would complete at its receiver becomes a CQE, and the threads of a DPA
// run on it before the next packet is looked at.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/dpa/config.h"
#include "kernels/dpa/messages.h"
#include "kernels/dpa/station.h"
#include "kernels/dpa/surroundings.h"
#include "nic_model/dpa/engine.h"
#include "nic_model/dpa/guarded_memory.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::dpa_observer {

class Watcher final : public Kernel {
 public:
  using Config = dpa_observer::Config;

  /// Throws ConfigError: the program cannot be loaded.
  Watcher(const Config& config, Stats& stats);
  void start(Context& context) override { context.reserve_timers(2); }
  void process(Context& context, Port in, Batch& batch) override;
  void on_timer(Context& context, Timer& timer) override;
  /// Calls the functions of `results`, too.
  void report(Report& report) const override;

 private:
  struct Result {
    std::string function;
    bool is_known = false;
    std::uint64_t value = 0;
    int error = 0;
  };

  bool is_wanted(Packet packet, Port in) const;
  void watch(Packet packet);
  void complete(Packet packet, const Flow& flow, Station& station, std::uint32_t bytes);
  void run_threads();
  void ask(Result& result) const;
  void report_stations(Report& report) const;

  const Config config_;
  Counters counters_;
  Messages messages_;
  Surroundings around_;
  const std::unique_ptr<nic_model::dpa::Engine> engine_;
  nic_model::dpa::Process* process_;
  std::optional<nic_model::dpa::GuardedMemory> window_;
  std::vector<Station> stations_;  // one a thread
  const std::unique_ptr<std::vector<Result>> results_;
};

}  // namespace rocebox::dpa_observer
