// SPDX-License-Identifier: BSD-3-Clause
// Series: what counters and levels come to over time, in bounded memory.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/drives/virtual/sim_workloads.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Reads counters of devices in even steps of virtual time. When there is no more room every second sample goes, and
/// the step is twice as long. It only reads memory: a run is the same with it and without.
class Series {
 public:
  /// `workloads`: of which it reads what they have placed with receivers, where they say.
  Series(const config::RunConfig& config, const Testbed& testbed, const SimWorkloads& workloads);

  /// How far samples are apart by now.
  Nanos width() const { return width_; }
  /// When the next sample is due.
  Nanos next() const { return static_cast<Nanos>(rows_ + 1) * width_; }
  /// Takes those that are due by `now`: nothing that happens at that time may have happened.
  void sample_until(Nanos now);
  /// The last sample, which may be a shorter one. Once.
  void finish(Nanos now);
  /// Adds `series`: beginnings of samples; sums over devices of what each counter has counted in them (`counts`),
  /// levels of each device at their ends (`levels`), and the load of the busiest links. What was 0 throughout is left
  /// out.
  void report(Json& report) const;
  /// Of workload `row`, up to the end of each sample so far, bytes. Nothing where it does not say.
  std::vector<std::uint64_t> placed(std::size_t row) const;

 private:
  // Counters of one name are added up over all devices, in which it may stand more than once.
  struct Count {
    const CounterValue* number;
    std::size_t place;  // in count_names_
  };
  struct OneLevel {
    std::string name;
    const CounterValue* number;
  };
  // A direction of a link.
  struct Load {
    std::string name;
    std::uint64_t bits_per_second = 0;
    const CounterValue *packets = nullptr, *bytes = nullptr;  // sampled: bytes on the wire
  };

  void find_numbers(const Testbed& testbed, unsigned device, std::unordered_map<std::string, std::size_t>& places);
  void find_loads(const config::RunConfig& config, const Testbed& testbed);
  void sample();
  void halve();
  std::size_t columns() const { return count_names_.size() + levels_.size() + loads_.size() + placers_.size(); }
  std::vector<std::uint64_t> samples_of(std::size_t column) const;
  void report_loads(Json& shares) const;
  struct Busy {
    std::size_t number;  // of what is sampled
    std::vector<std::uint64_t> samples;
  };
  template <class Most>
  std::vector<Busy> busiest(std::size_t first_column, std::size_t count, Most most) const;

  std::vector<std::string> count_names_;
  std::vector<Count> counts_;  // by device: what is read one after the other lies side by side in memory
  std::vector<OneLevel> levels_;
  std::vector<Load> loads_;
  struct OnePlacer {
    std::size_t row;  // of the workloads
    const Placer* placer;
  };
  std::vector<OnePlacer> placers_;
  std::vector<std::uint64_t> samples_;  // rows of columns(): counts by name, levels, loads, bytes placed
  Nanos width_, end_ = 0;               // end_: of the last one
  std::size_t rows_ = 0, rows_max_;
};

}  // namespace rocebox
