// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/rules.h"

#include <algorithm>

namespace rocebox::switch_model::acl {
namespace {

Action action_of(const RuleConfig& rule, const SwitchInfo& info) {
  Action action;
  action.drop = rule.drop;
  action.metered = rule.meter.on();
  action.drop_red = rule.meter.drop_red;
  action.traffic_class = static_cast<std::int8_t>(rule.traffic_class);
  action.dscp = static_cast<std::int8_t>(rule.dscp);
  action.yellow_dscp = static_cast<std::int8_t>(rule.meter.yellow_dscp);
  action.red_dscp = static_cast<std::int8_t>(rule.meter.red_dscp);
  if (!rule.egress_port.empty()) action.egress_port = info.find(rule.egress_port);
  if (const MirrorSession* session = info.mirror_session(rule.mirror)) {
    action.mirror_port = info.find(session->port);
    action.mirror_bytes = static_cast<std::uint16_t>(session->bytes);
  }
  return action;
}

// Places for the rules: the old one for a name that is known, a free one for others.
std::vector<Placed> place(const Config& config, const std::vector<Placed>& running) {
  std::vector<bool> taken(static_cast<std::size_t>(config.rule_entries));
  std::vector<Placed> placed;
  for (const RuleConfig& rule : config.rules) {
    Placed& one = placed.emplace_back(
        Placed{rule.name, 0, true, rule.meter.on(), rule.meter.on() ? rule.meter.rates() : MeterRates{}});
    const auto known =
        std::find_if(running.begin(), running.end(), [&](const Placed& p) { return p.name == rule.name; });
    if (known == running.end()) continue;
    one.place = known->place;
    one.is_new = false;
    taken[one.place] = true;
  }
  std::size_t next = 0;
  for (Placed& one : placed) {
    if (!one.is_new) continue;
    while (taken[next]) next++;
    taken[next] = true;
    one.place = static_cast<std::uint16_t>(next);
  }
  return placed;
}

}  // namespace

Rules make_rules(const Config& config, const SwitchInfo& info, const std::vector<Placed>& running) {
  Rules rules(static_cast<std::uint32_t>(config.tcam_entries));
  rules.placed = place(config, running);
  std::vector<Table::Entry> entries;
  for (std::size_t i = 0; i < config.rules.size(); i++) {
    Action action = action_of(config.rules[i], info);
    action.rule = rules.placed[i].place;
    const auto priority = static_cast<std::uint32_t>(config.rules.size() - i);
    for (const Row& row : config.rules[i].match.rows(info)) entries.push_back({row.value, row.mask, priority, action});
  }
  if (!rules.table.set(std::move(entries))) throw ConfigError("acl: the rules take more rows than `tcam_entries`");
  rules.others.drop = config.drop_others;
  rules.others.rule = static_cast<std::uint16_t>(config.rule_entries);
  return rules;
}

}  // namespace rocebox::switch_model::acl
