// SPDX-License-Identifier: BSD-3-Clause
// TierTraffic: what the switches of a topology received and transmitted, by tier, in all and from the start of one
// workload to that of the next one.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Reads the counters of ports, whose bytes are those of frames without FCS. It only reads memory: a run is the same
/// with it and without.
class TierTraffic {
 public:
  TierTraffic(const config::RunConfig& config, const Testbed& testbed);

  /// Workloads are to start: before they do. Each start begins a phase, to which all bytes until the next one are put
  /// down, whoever sent them.
  void begin_phase(Nanos now, const SimWorkloads& workloads);
  /// Adds `tiers`, from the hosts' switches upwards; and `traffic`, a row for each phase, with all switches' bytes in
  /// both directions and their ratio to those of the first phase. Nothing where there is no topology with switches.
  void report(Json& report) const;

 private:
  enum Number : unsigned { kRxPackets, kRxBytes, kTxPackets, kTxBytes, kNumbers };
  using Sums = std::array<std::uint64_t, kNumbers>;
  struct Tier {
    std::string name;
    std::size_t switches = 0, ports = 0;
    std::array<std::vector<const CounterValue*>, kNumbers> counters;
    Sums sums() const;
  };
  struct Phase {
    Nanos at;
    std::string workloads;
    std::vector<Sums> before;  // of each tier
  };
  std::vector<Sums> sums() const;

  std::vector<Tier> tiers_;
  std::vector<Phase> phases_;
};

}  // namespace rocebox
