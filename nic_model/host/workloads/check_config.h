// SPDX-License-Identifier: BSD-3-Clause
// What can be written about verbs_check, and the cases that follow from it.
#pragma once
#include <optional>
#include <vector>

#include "nic_model/host/workloads/check_case.h"
#include "nic_model/host/workloads/recovery_options.h"

namespace rocebox::nic_model::check {

/// An entry of `cases:`.
struct CaseConfig {
  Transport transport = Transport::kRc;
  Verb verb = Verb::kSend;
  int requester = 0;
  std::uint64_t size = 0;
  std::int64_t messages = 0;
  std::optional<roce::IpAddress> group;
};

struct Config {
  void fields(Fields& fields);
  /// All that a client does, in order.
  std::vector<Case> all_cases() const;

  std::optional<roce::IpAddress> address;
  std::int64_t port = 7175, messages = 64, mtu = 1024;
  std::uint64_t size = 5000;
  Nanos settle = 500 * kMillisecond;
  bool persistent = false;
  std::vector<CaseConfig> cases;
  RecoveryOptions recovery;  ///< of reliable queue pairs, the control connection's too

 private:
  void show(Fields& fields, CaseConfig& one) const;
};

}  // namespace rocebox::nic_model::check
