// SPDX-License-Identifier: BSD-3-Clause
// Rules: what an access list does, as its tables hold it. Built beside the running one, and then taken over.
#pragma once
#include <string>
#include <vector>

#include "runtime/kernel/stimulus.h"
#include "switch_model/acl/config.h"
#include "switch_model/tables/ternary_table.h"

namespace rocebox::switch_model::acl {

/// The action data of a rule.
struct Action {
  std::uint16_t rule = 0;  ///< its place in the arrays of counters and meters
  bool drop = false, metered = false, drop_red = false;
  std::int8_t traffic_class = -1, dscp = -1, yellow_dscp = -1, red_dscp = -1;
  Port mirror_port = kNoPort;
  std::uint16_t mirror_bytes = 0;
  Port egress_port = kNoPort;
};
using Table = TernaryTable<Key, Action>;

/// A rule that the table holds, in order.
struct Placed {
  std::string name;
  std::uint16_t place;
  bool is_new;  ///< its place was free, or another's: counters and meter begin anew
  bool metered;
  MeterRates rates;
};

struct Rules {
  explicit Rules(std::uint32_t rows) : table(rows) {}
  Table table;
  std::vector<Placed> placed;
  Action others;  ///< of packets that no rule matches
};

/// The rules of a configuration that fields() has found right. A rule whose name is among `running` keeps its place;
/// others get one that is free. Throws ConfigError when rte_acl cannot build the table.
Rules make_rules(const Config& config, const SwitchInfo& info, const std::vector<Placed>& running);

/// Headers, or a whole frame, that a rule matches, for `rocebox check --strict`.
Stimulus stimulus_of(const Row& row);

}  // namespace rocebox::switch_model::acl
