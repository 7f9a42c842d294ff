// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/config.h"

#include <fmt/format.h>

#include <set>

namespace rocebox::switch_model::acl {
namespace {

constexpr std::string_view kActionWords[] = {"permit", "drop"};
constexpr std::string_view kRedWords[] = {"pass", "drop"};
constexpr std::uint64_t kFrameMin = 60;  // of Ethernet, without FCS
constexpr std::int64_t kRulesMax = 1 << 14, kRowsMax = 1 << 16;

// A choice between two words, of which the second is true.
void either(Fields& f, std::string_view name, bool& value, std::span<const std::string_view> words,
            std::string_view doc) {
  int index = value;
  f.choice(name, index, words, doc);
  value = index == 1;
}

}  // namespace

MeterRates MeterConfig::rates() const { return {committed, peak, committed_burst, peak_burst}; }

void MeterConfig::fields(Fields& f) {
  constexpr Range<std::uint64_t> kBurst{0, kRateQueueBytesMax};
  f.rate("committed", committed, {0, kRateMax}, "CIR: up to this rate packets are green; unlimited: there is no meter");
  f.bytes("committed_burst", committed_burst, kBurst, "CBS: bytes that may come at once and be green");
  // Before they are read: a field is shown with the value that it has then.
  if (!f.given("peak")) peak = committed;
  if (!f.given("peak_burst")) peak_burst = committed_burst;
  f.rate("peak", peak, {0, kRateMax},
         "PIR: up to this rate packets are yellow, beyond it red; not written: as `committed`");
  f.bytes("peak_burst", peak_burst, kBurst,
          "PBS: bytes that may come at once and not be red; not written: as `committed_burst`");
  f.integer("yellow_dscp", yellow_dscp, {-1, 63}, "DSCP that yellow packets get; -1: theirs");
  either(f, "red", drop_red, kRedWords, "what happens to red packets");
  f.integer("red_dscp", red_dscp, {-1, 63}, "DSCP that red packets get when they pass; -1: theirs");
  if (!on()) {
    if (peak != 0) f.refuse("peak", "needs `committed`: a meter has two rates");
    return;
  }
  if (committed < kRateMin) f.refuse("committed", "must be 1kbps at least");
  if (committed_burst < kFrameMin)
    f.refuse("committed_burst", "must be as long as a packet, 60B at least, or none is green");
  if (peak == 0) f.refuse("peak", "must be a rate; leave it out for that of `committed`");
  if (peak_burst < kFrameMin) f.refuse("peak_burst", "must be as long as a packet, 60B at least, or all are red");
  if (peak != 0 && peak < committed) f.refuse("peak", "must not be below `committed` (RFC 2698)");
  if (drop_red && red_dscp >= 0) f.refuse("red_dscp", "is used with `red: pass` only");
}

void RuleConfig::fields(Fields& f, const SwitchInfo& info) {
  f.text("name", name, "its name in the report; what a reload keeps counting under; empty: its number, from 1");
  f.group("match", "conditions that must all hold; none: every packet", [&](Fields& g) { match.fields(g, info); });
  either(f, "action", drop, kActionWords, "whether packets that match go on");
  f.integer("traffic_class", traffic_class, {-1, kQueuesPerPort - 1}, "class, and so queue, that they get; -1: theirs");
  f.integer("dscp", dscp, {-1, 63}, "DSCP that they get; -1: theirs");
  f.integer("mirror", mirror, {0, kMirrorSessionMax},
            "mirror session that gets a copy, also of packets that are dropped; 0: none");
  if (mirror != 0 && !info.mirror_session(mirror))
    f.refuse("mirror", fmt::format("names no mirror session: {} is not in `mirror_sessions:` of the switch", mirror));
  f.text("egress_port", egress_port, "port of the switch that they leave by, in place of what forwarding says");
  info.check_port(f, "egress_port", egress_port);
  f.group("meter", "a two-rate three-color meter (RFC 2698) over what matches", [&](Fields& g) { meter.fields(g); });
  if (!drop) return;
  if (traffic_class >= 0) f.refuse("traffic_class", "is of no use where packets are dropped");
  if (dscp >= 0 && mirror == 0) f.refuse("dscp", "is of no use where packets are dropped and not mirrored");
  if (!egress_port.empty()) f.refuse("egress_port", "is of no use where packets are dropped");
  if (meter.on()) f.refuse("meter", "is of no use where packets are dropped");
}

void Config::fields(Fields& f, const SwitchInfo& info) {
  f.integer("rule_entries", rule_entries, {1, kRulesMax},
            "rules that there is room for, each with counters and a meter");
  f.integer("tcam_entries", tcam_entries, {1, kRowsMax},
            "rows of the ternary table; a rule with a range of ports, or with several ports or opcodes, takes more "
            "than one");
  either(f, "default", drop_others, kActionWords, "what happens to packets that no rule matches");
  f.list("rules", rules, static_cast<std::size_t>(kRulesMax), "rules, of which the first that matches a packet counts",
         [&](Fields& g, RuleConfig& rule) { rule.fields(g, info); });
  if (rules.size() > static_cast<std::size_t>(rule_entries))
    f.refuse("rules", fmt::format("has {} entries, more than `rule_entries: {}`", rules.size(), rule_entries));
  std::set<std::string> names;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < rules.size(); i++) {
    if (rules[i].name.empty()) rules[i].name = fmt::format("{}", i + 1);
    if (!names.insert(rules[i].name).second) f.refuse("rules", fmt::format("has two named `{}`", rules[i].name));
    rows += rules[i].match.row_count();
  }
  if (rows > static_cast<std::size_t>(tcam_entries))
    f.refuse("rules",
             fmt::format("take {} rows of the ternary table, more than `tcam_entries: {}`", rows, tcam_entries));
}

}  // namespace rocebox::switch_model::acl
