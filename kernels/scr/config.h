// SPDX-License-Identifier: BSD-3-Clause
// What can be written about Software-Controlled RDMA: the framework's options, and those of a NIC that has it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/scr/coalescing.h"
#include "kernels/scr/policy.h"
#include "kernels/scr/queues.h"
#include "nic_model/rate/congestion_control.h"
#include "runtime/component/fields.h"
#include "runtime/component/input_file.h"

namespace rocebox::scr {

/// How long things take (SCR, A.11, Figure 22). Only handling occupies a thread.
struct Timing {
  Nanos trigger = 7 * kMicrosecond;       ///< from an event to its thread
  Nanos law = 4 * kMicrosecond;           ///< the program, for one event
  Nanos early = 200;                      ///< an event that is only put aside (rate_stable)
  Nanos install = 6 * kMicrosecond;       ///< from the end of the program to the rate in force
  Nanos rtt_request = 5 * kMicrosecond;   ///< from there to the probe that leaves
  Nanos rtt_response = 5 * kMicrosecond;  ///< from its answer to its thread
  Nanos message = 0;                      ///< of peers and of the host: from its coming to its thread
};

struct ParameterConfig {
  void fields(Fields& fields);
  std::string name;
  std::int64_t value = 0;
};

/// Which program, and the machinery around it.
struct FrameworkConfig {
  /// What can be changed while it runs.
  static constexpr std::string_view kChangeable[] = {"parameters"};
  void fields(Fields& fields);
  bool has_policy() const { return !policy.empty() || !file.path.empty(); }
  std::vector<ParameterValue> values() const;
  Strategies strategies() const { return coalescing; }

  std::string policy;
  InputFile file;
  std::vector<ParameterConfig> parameters;
  std::int64_t flows = 1024;
  std::array<std::int64_t, 3> threads = {64, 16, 4};
  Timing timing;
  Strategies coalescing = {Strategy::kAccumulate, Strategy::kAccumulate, Strategy::kAccumulate, Strategy::kAccumulate,
                           Strategy::kAccumulate, Strategy::kKeepLatest, Strategy::kKeepLatest, Strategy::kKeepLatest};
  std::uint64_t ceiling = 64 << 10;
  std::int64_t stable_after = 8, stable_events = 4;
  Nanos probe_timeout = 100 * kMicrosecond;
  Nanos host_period = 20 * kMicrosecond;
  Nanos watchdog = 100 * kMillisecond;
  std::int64_t budget = nic_model::dpa::kBlocksMax;
  std::int64_t trace = 0;
};

/// What an application says of a queue pair.
struct HintConfig {
  void fields(Fields& fields);
  std::int64_t qpn = 0, weight = 1;
  Nanos at = 0;
};

struct ControlConfig : FrameworkConfig {
  void fields(Fields& fields);
  const char* refuses(std::uint64_t line_rate) const { return line_rate == 0 ? "needs the port's `rate:`" : nullptr; }
  std::optional<nic_model::NotificationPoint> notification_point() const { return nic_model::NotificationPoint{}; }

  std::vector<HintConfig> hints;
  std::string hints_file;  ///< include/rocebox_hints.h; empty: none
  Nanos hints_period = 100 * kMicrosecond;
};

}  // namespace rocebox::scr
