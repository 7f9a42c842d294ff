// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/acl.h"

#include "runtime/roce/hop_fields.h"
#include "switch_model/acl/rules.h"
#include "switch_model/counter_array.h"

namespace rocebox::switch_model {
namespace acl {
namespace {

// Where things stand in ingress: from 0 the rules, behind them meters and hits, then what the meters say. One stage's
// TCAM holds 1024 rows: 24 blocks of 512 by 44 bits, twelve for the width of a key.
constexpr unsigned kRuleStage = 0;
constexpr std::int64_t kRowsPerStage = 1024;
unsigned meter_stage(const Config& config) {
  return kRuleStage + static_cast<unsigned>((config.tcam_entries + kRowsPerStage - 1) / kRowsPerStage);
}
constexpr std::size_t kStimuliMax = 64;  // they only have to reach every kind of action
constexpr std::uint64_t kColors = 3;
constexpr MeterRates kNoRates{kRateMin, kRateMin, 0, 0};

class Acl {
 public:
  using Config = acl::Config;
  using Prepared = Rules;

  Acl(const Config& config, const Build& build)
      : info_(build.info),
        next_hops_(build.next_hops),
        table_(build.layout, "rules", {Gress::kIngress, kRuleStage}, static_cast<std::uint32_t>(config.tcam_entries)),
        meters_(build.layout, "meters", {Gress::kIngress, meter_stage(config)}, places(config), kNoRates),
        // One more, for what no rule matches.
        hits_(build.layout, "hits", {Gress::kIngress, meter_stage(config)}, places(config) + 1),
        colors_(build.layout, "colors", {Gress::kIngress, meter_stage(config) + 1}, kColors * places(config)),
        drop_acl_(build.stats.counter("drop_acl", "a rule of the access list, or its default, drops it")),
        drop_meter_(build.stats.counter("drop_meter", "beyond the peak rate or burst of a rule's meter")) {
    Rules rules = prepare(config);
    change(rules);
    if (std::ranges::none_of(config.rules, [](const RuleConfig& rule) { return rule.meter.on(); })) {
      build.layout.unused(meters_, "no rule has a meter");
      build.layout.unused(colors_, "no rule has a meter");
    }
    for (const RuleConfig& rule : config.rules)
      for (const Row& row : rule.match.rows(info_))
        if (stimuli_.size() < kStimuliMax) stimuli_.push_back(stimulus_of(row));
  }

  static constexpr std::array<std::string_view, 2> kChangeable = {"rules", "default"};
  Rules prepare(const Config& config) const { return make_rules(config, info_, placed_); }
  void change(Rules& rules) {
    table_.swap_entries(rules.table);
    placed_.swap(rules.placed);
    others_ = rules.others;
    for (const Placed& rule : placed_) {
      if (rule.is_new) clear(rule.place);
      meters_.set_rates(rule.place, rule.metered ? rule.rates : kNoRates);
    }
  }

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    std::array<PacketState*, kBatchMax> packets;
    std::array<Key, kBatchMax> keys;
    std::array<std::uint32_t, kBatchMax> entries;
    unsigned count = 0;
    for (PacketState& p : pass) {
      if (p.drop_reason) continue;
      packets[count] = &p;
      read_key(p, keys[count++]);
    }
    access.lookup_bulk({packets.data(), count}, table_, {keys.data(), count}, {entries.data(), count});
    for (unsigned i = 0; i < count; i++)
      act(access, pass, *packets[i], entries[i] == kMiss ? others_ : table_.value(entries[i]));
  }

  void report(Report& report) const {
    report.table("rules", placed_.size() + 1, [&](Report& row, std::size_t i) {
      const bool is_rule = i < placed_.size();
      const CounterArray::Count hits = hits_.read(is_rule ? placed_[i].place : others_.rule);
      row.text("rule", is_rule ? placed_[i].name : "default");
      row.count("packets", static_cast<std::int64_t>(hits.packets));
      row.count("bytes", static_cast<std::int64_t>(hits.bytes));
      for (const auto& [color, name] : {std::pair(Color::kYellow, "yellow_packets"), {Color::kRed, "red_packets"}})
        row.count(name,
                  is_rule ? static_cast<std::int64_t>(colors_.read(color_of(placed_[i].place, color)).packets) : 0);
    });
  }
  void stimuli(std::vector<Stimulus>& all) const { all.insert(all.end(), stimuli_.begin(), stimuli_.end()); }

 private:
  static std::uint64_t places(const Config& config) { return static_cast<std::uint64_t>(config.rule_entries); }
  static std::uint64_t color_of(std::uint64_t place, Color color) {
    return kColors * place + static_cast<std::uint64_t>(color);
  }
  void clear(std::uint64_t place) {
    hits_.clear(place);
    meters_.clear(place);
    for (std::uint64_t color = 0; color < kColors; color++) colors_.clear(kColors * place + color);
  }

  template <class Access>
  void act(Access& access, Pass& pass, PacketState& p, const Action& action) {
    std::int8_t dscp = action.dscp;
    // What goes round in the switch has been counted, metered and mirrored.
    const bool again = p.instance == Instance::kRecirculated;
    if (action.metered && !again) {
      const Color color = access.meter(p, meters_, action.rule, pass.now());
      if (color == Color::kYellow && action.yellow_dscp >= 0) dscp = action.yellow_dscp;
      if (color == Color::kRed && action.red_dscp >= 0) dscp = action.red_dscp;
      if (color == Color::kRed && action.drop_red) pass.drop(p, drop_meter_);
      access.count(p, hits_, action.rule);
      access.count(p, colors_, color_of(action.rule, color));
    } else if (!again) {
      access.count(p, hits_, action.rule);
    }
    if (action.drop) pass.drop(p, drop_acl_);
    if (action.mirror_port != kNoPort && !again) pass.mirror(p, action.mirror_port, action.mirror_bytes);
    if (action.traffic_class >= 0) p.traffic_class = static_cast<std::uint8_t>(action.traffic_class);
    if (dscp >= 0 && p.packet.meta().ip_version != 0)
      roce::set_tos(p.packet, static_cast<std::uint8_t>(dscp << 2 | (roce::tos(p.packet) & roce::kEcnMask)));
    if (action.egress_port != kNoPort) redirect(p, action.egress_port);
  }

  // Of a packet that was forwarded before, no program behind chooses another member of its group; what was routed keeps
  // its next hop's MAC addresses.
  void redirect(PacketState& p, Port port) {
    p.egress_port = port;
    p.multicast_group = 0;
    if (next_hops_.filled) p.metadata[next_hops_.group_word] = 0;
  }

  const SwitchInfo& info_;
  const NextHops& next_hops_;
  Table table_;
  MeterArray meters_;
  CounterArray hits_, colors_;
  Action others_;
  std::vector<Placed> placed_;
  std::vector<Stimulus> stimuli_;
  Counter &drop_acl_, &drop_meter_;
};

constexpr Example kExamples[] = {{"an access list in front of a learning switch, with every action",
                                  R"(strict: true
pipes: 2
programs: [acl, forward]
mirror_sessions: [{session: 1, port: p3, bytes: 128B}]
acl:
  rule_entries: 16
  rules:
    - {name: naks, match: {opcodes: [rc_acknowledge, cnp]}, traffic_class: 6, mirror: 1}
    - {name: writes, match: {opcodes: 0x06/0xfe, ports: [p0, p1]}, dscp: 26, meter: {committed: 100Mbps, committed_burst: 4KB, peak: 200Mbps, yellow_dscp: 8}}
    - {name: arp, match: {ethertype: arp}}
    - {name: services, match: {protocol: tcp, destination_port: 1-1023}, action: drop}
    - {name: six, match: {destination: '2001:db8::/32'}, egress_port: p2}
    - {name: marked, match: {ecn: 3, source: 10.0.0.0/8}, traffic_class: 5, meter: {committed: 10Mbps, red: pass, red_dscp: 1}}
)"},
                                 {"behind forwarding, what is not named is dropped",
                                  R"(strict: true
programs: [forward, acl]
forward: {learning: false}
acl:
  default: drop
  rules:
    - {match: {destination_qp: 0x10/0xfffff0}, egress_port: p1}
    - {match: {vlan: 0, protocol: udp}}
)"},
                                 {nullptr, nullptr}};

}  // namespace
}  // namespace acl

Component acl_component() {
  return program<acl::Acl>("acl", "access list: permit, drop, count, meter, mark, mirror and redirect by rules",
                           acl::kExamples);
}

}  // namespace rocebox::switch_model
