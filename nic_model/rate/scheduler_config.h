// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a NIC's scheduler and its limiters.
#pragma once
#include <vector>

#include "nic_model/limits.h"
#include "runtime/component/fields.h"

namespace rocebox::nic_model {

enum class SchedulerPolicy : std::uint8_t {
  kRoundRobin,  ///< queue pairs of a group in turn, a packet each
  kGreedy,      ///< in turn, some packets of one message each; chosen ahead of the wire: as ConnectX (SCR, Table 2)
};

/// Queue pairs of one priority: the upper three bits of their traffic class.
struct GroupConfig {
  std::int64_t priority = 0;
  bool strict = false;
  std::int64_t weight = 1;
};

struct SchedulerConfig {
  void fields(Fields& fields);
  SchedulerPolicy policy = SchedulerPolicy::kRoundRobin;
  std::uint64_t turn = kGreedyTurnBytes, ahead = kStagedBytes;  // of the greedy policy
  std::vector<GroupConfig> groups;
};

/// Host memory behind PCIe, as far as packets' data are read from there; a bandwidth of 0 is memory that is there at
/// once.
struct PcieConfig {
  void fields(Fields& fields);
  std::uint64_t bandwidth = 0;
  Nanos read_latency = 600;
  std::int64_t outstanding_reads = 64;
};

/// The way from a queue pair to one of the same NIC, through the host's memory.
struct LoopbackConfig {
  void fields(Fields& fields);
  std::uint64_t rate = 0;
  Nanos latency = 1000;
};

/// Token buckets; a rate of 0 is none.
struct LimiterConfig {
  void fields(Fields& fields);
  /// What a queue pair whose rate is to be `rate` gets.
  double effective(double rate) const {
    return rate < kLossBelow ? rate * (1 - low_rate_loss * (1 - rate / kLossBelow)) : rate;
  }

  static constexpr double kLossBelow = 1e9;  // SCR, 6.2
  std::uint64_t qp_rate = 0, qp_burst = 0, port_rate = 0, port_burst = 0;
  double low_rate_loss = 0;
};

}  // namespace rocebox::nic_model
