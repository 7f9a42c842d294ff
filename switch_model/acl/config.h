// SPDX-License-Identifier: BSD-3-Clause
// What can be written about an access list.
#pragma once
#include <string>
#include <vector>

#include "switch_model/acl/match.h"
#include "switch_model/meter.h"

namespace rocebox::switch_model::acl {

/// A two-rate three-color meter; `committed` 0: none.
struct MeterConfig {
  std::uint64_t committed = 0, committed_burst = 64 * 1024;
  std::uint64_t peak = 0, peak_burst = 0;  ///< as committed where they are not written
  std::int64_t yellow_dscp = -1, red_dscp = -1;
  bool drop_red = true;

  bool on() const { return committed != 0; }
  MeterRates rates() const;
  void fields(Fields& fields);
};

/// What is done to packets that match.
struct RuleConfig {
  std::string name;
  Match match;
  bool drop = false;
  std::int64_t traffic_class = -1, dscp = -1;
  std::int64_t mirror = 0;  ///< session; 0: none
  std::string egress_port;
  MeterConfig meter;

  void fields(Fields& fields, const SwitchInfo& info);
};

struct Config {
  std::int64_t rule_entries = 256, tcam_entries = 1024;
  bool drop_others = false;
  std::vector<RuleConfig> rules;  ///< the first that matches counts

  /// Of rte_acl, as rules with wildcards in many fields were seen to take; twice, for rules that are built beside.
  std::uint64_t eal_bytes() const {
    return (std::uint64_t{2 * 16} << 20) + static_cast<std::uint64_t>(tcam_entries) * 2 * 4096;
  }
  void fields(Fields& fields, const SwitchInfo& info);
  void tell(SwitchInfo& info) const {
    for (const RuleConfig& rule : rules) info.classifies |= rule.traffic_class >= 0;
  }
};

}  // namespace rocebox::switch_model::acl
