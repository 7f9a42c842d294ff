// SPDX-License-Identifier: BSD-3-Clause
// Series: what counters and levels come to over time, in bounded memory.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Reads counters of devices in even steps of virtual time. When there is no more room every second sample goes, and
/// the step is twice as long. It only reads memory: a run is the same with it and without.
class Series {
 public:
  Series(const config::RunConfig& config, const Testbed& testbed);

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

 private:
  // Of one name over all devices, in which it may stand more than once.
  struct Count {
    std::string name;
    std::vector<const CounterValue*> numbers;
    std::vector<std::uint64_t> samples;
  };
  struct OneLevel {
    std::string name;
    const CounterValue* number;
    std::vector<std::uint64_t> samples;
  };
  // A direction of a link.
  struct Load {
    std::string name;
    std::uint64_t bits_per_second = 0;
    const CounterValue *packets = nullptr, *bytes = nullptr;
    std::vector<std::uint64_t> samples;  // bytes on the wire
  };

  void find_numbers(const Testbed& testbed, unsigned device, std::unordered_map<std::string, std::size_t>& places);
  void find_loads(const config::RunConfig& config, const Testbed& testbed);
  void sample();
  void halve();
  template <class Each>
  void for_each_samples(Each each);

  std::vector<Count> counts_;
  std::vector<OneLevel> levels_;
  std::vector<Load> loads_;
  Nanos width_, end_ = 0;  // end_: of the last one
  std::size_t rows_ = 0, rows_max_;
};

}  // namespace rocebox
