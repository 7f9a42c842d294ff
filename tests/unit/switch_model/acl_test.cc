// SPDX-License-Identifier: BSD-3-Clause
// What an access list does to packets, what it refuses, and how its rules change while packets flow.
#include "runtime/kernel/stimulus.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/contracts/allocations.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::acl {
namespace {

roce::PacketSpec packet(std::uint8_t opcode, std::uint32_t qp = 0x11) {
  static const std::vector<std::uint8_t> kPayload(512, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  spec.underlay.tos = 0x02;
  spec.opcode = opcode;
  spec.destination_qp = qp;
  if (roce::opcode_info(opcode).has(roce::kHasPayload)) spec.payload = kPayload;
  return spec;
}
roce::PacketSpec data(std::uint32_t qp = 0x11) { return packet(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, qp); }

std::string with_rules(const std::string& rules, const std::string& more = "") {
  return "strict: true\nprograms: [acl, forward]\nmirror_sessions: [{session: 7, port: p3, bytes: 64}]\n" + more +
         "forward: {learning: false, unknown: drop, macs: [{mac: 02:00:00:00:00:02, ports: [p1]}]}\nacl:\n  rules:\n" +
         rules;
}

struct AclBox : test::SwitchBox {
  explicit AclBox(const std::string& yaml) : SwitchBox(yaml.c_str()) {}
  ~AclBox() { EXPECT_EQ(stats.read("strict_violations"), 0u); }
  /// The report's rows.
  Json rows() const {
    Json json;
    JsonReport writer(json);
    kernel->report(writer);
    return json["acl"]["rules"];
  }
  std::string told() const {
    std::string text;
    for (const Json& row : rows())
      text += row["rule"].get<std::string>() + " " + std::to_string(row["packets"].get<int>()) + "/" +
              std::to_string(row["bytes"].get<int>()) + "; ";
    return text;
  }
};

TEST(Acl, DropsMirrorsAndCounts) {
  AclBox box(
      with_rules("    - {name: naks, match: {opcodes: rc_acknowledge}, action: drop, mirror: 7}\n"
                 "    - {name: qp, match: {destination_qp: 0x12}, mirror: 7}\n"));
  box.send(0, 0, packet(IBV_OPCODE_RC_ACKNOWLEDGE));
  EXPECT_EQ(box.ports(), std::vector<int>{3}) << "the mirror of what was dropped";
  EXPECT_EQ(box.out.back().bytes.size(), 62u) << "shorter than the session's 64 bytes";
  box.send(0, 0, data(0x12));
  EXPECT_EQ(box.ports(), (std::vector<int>{1, 3}));
  EXPECT_EQ(box.out.back().bytes.size(), 64u);
  EXPECT_EQ(box.out.back().wire_bytes, 64u);
  box.send(0, 0, data(0x13));
  EXPECT_EQ(box.ports(), std::vector<int>{1});
  EXPECT_EQ(box.stats.read("drop_acl"), 1u);
  EXPECT_EQ(box.told(), "naks 1/62; qp 1/570; default 1/570; ");
}

TEST(Acl, DefaultDropsWhatNoRuleNames) {
  AclBox box(with_rules("    - {match: {destination_qp: 0x12}}\n  default: drop\n"));
  box.send(0, 0, data(0x12));
  box.send(0, 0, data(0x13));
  EXPECT_EQ(box.ports(), std::vector<int>{1});
  EXPECT_EQ(box.told(), "1 1/570; default 1/570; ");
}

TEST(Acl, SetsDscpAndKeepsEcnChecksumAndIcrc) {
  AclBox box(with_rules("    - {match: {vlan: 0}, dscp: 46}\n"));
  for (const std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
    roce::PacketSpec spec = data();
    spec.underlay.ip_version = version;
    box.send(0, 0, spec);
    spec.underlay.tos = 46 << 2 | 2;
    EXPECT_EQ(box.out.back().bytes, test::frame(spec)) << "as if it were made so: checksum and ICRC too";
  }
  auto bad = test::frame(data());
  bad[24] ^= 0x40;  // the IPv4 header's checksum
  box.send(0, 0, bad);
  const auto& ip = *reinterpret_cast<const roce::Ipv4*>(box.out.back().bytes.data() + 14);
  EXPECT_FALSE(roce::ipv4_checksum_holds(ip)) << "a wrong one stays wrong";
}

// 8 Mbps and 16 Mbps: a byte and two bytes in a microsecond.
constexpr const char* kMeter = "committed: 8Mbps, committed_burst: 1200B, peak: 16Mbps, peak_burst: 2400B";

TEST(Acl, MetersByRule) {
  AclBox box(with_rules("    - {name: a, match: {destination_qp: 0x12}, meter: {" + std::string(kMeter) +
                        ", yellow_dscp: 10}}\n    - {name: b, meter: {" + kMeter + ", red: pass, red_dscp: 12}}\n"));
  const auto dscp = [&] { return box.out.back().bytes[15] >> 2; };
  std::vector<int> marks;
  for (int i = 0; i < 5; i++) {
    const std::size_t before = box.out.size();
    box.send(0, 0, data(0x12));
    marks.push_back(box.out.size() > before ? dscp() : -1);
  }
  EXPECT_EQ(marks, (std::vector<int>{0, 0, 10, 10, -1})) << "570 bytes each: two green, two yellow, one red";
  for (int i = 0; i < 5; i++) box.send(0, 0, data(0x13));
  EXPECT_EQ(dscp(), 12) << "a meter of its own, whose red ones pass";
  EXPECT_EQ(box.stats.read("drop_meter"), 1u);
  box.send(1'000'000, 0, data(0x12));
  EXPECT_EQ(dscp(), 0) << "green again";
  const Json rows = box.rows();
  EXPECT_EQ(rows[0]["packets"], 6);
  EXPECT_EQ(rows[0]["yellow_packets"], 2);
  EXPECT_EQ(rows[0]["red_packets"], 1);
  EXPECT_EQ(rows[1]["red_packets"], 1);
}

TEST(Acl, RedirectsBeforeForwardingAndBehindIt) {
  for (const std::string order : {"[acl, forward]", "[forward, acl]"}) {
    std::string yaml = with_rules("    - {match: {destination_qp: 0x12}, egress_port: p2}\n");
    yaml.replace(yaml.find("[acl, forward]"), 14, order);
    AclBox box(yaml);
    box.send(0, 0, data(0x12));
    box.send(0, 0, data(0x13));
    EXPECT_EQ(box.ports(), (std::vector<int>{2, 1})) << order;
  }
  AclBox flooded("strict: true\nprograms: [forward, acl]\nacl: {rules: [{egress_port: p2}]}\n");
  flooded.send(0, 0, data());
  EXPECT_EQ(flooded.ports(), std::vector<int>{2}) << "forwarding would flood it";
}

TEST(Acl, GivesATrafficClass) {
  const std::string slow = "traffic_manager: {rate: 8Mbps, scheduler: strict}\n";
  AclBox box(with_rules("    - {match: {destination_qp: 0x12}, traffic_class: 5}\n", slow));
  box.send(0, 0, data(0x13));
  box.send(0, 0, data(0x14));
  box.send(0, 0, data(0x12));
  box.drain();
  ASSERT_EQ(box.out.size(), 3u);
  const auto qp = [&](std::size_t i) { return box.out[i].bytes[box.out[i].meta.bth_offset + 7]; };
  EXPECT_EQ((std::vector<int>{qp(0), qp(1), qp(2)}), (std::vector<int>{0x13, 0x12, 0x14})) << "the higher class first";
}

// `rocebox check --strict` is to reach every action.
TEST(Acl, EveryRuleIsReachedByItsStimulus) {
  AclBox box(with_rules(R"(    - {name: naks, match: {opcodes: rc_acknowledge, source: 10.0.0.0/8}}
    - {name: qps, match: {destination_qp: 0x1200/0xff00, vlan: 9, source_mac: 02:aa:00:00:00:00/ff:ff:00:00:00:00}}
    - {name: arp, match: {ethertype: arp, ports: p2}}
    - {name: web, match: {protocol: tcp, destination_port: 80-90, vlan: 7}}
    - {name: six, match: {destination: '2001:db8::/32', dscp: 5, source_port: 53}}
    - {name: icmp, match: {protocol: icmp, source: 10.1.0.0/16, ecn: 1}}
    - {name: type, match: {ethertype: 0x1234, destination_mac: 02:00:00:00:00:09}}
    - {name: cnp, match: {opcodes: [cnp, uc_send_only]}}
)"));
  std::vector<Stimulus> all;
  box.kernel->stimuli(all);
  for (const Stimulus& stimulus : all)
    for (Port in = 0; in < 4; in++) {
      if (!stimulus.frame.empty()) {
        box.send(0, in, stimulus.frame);
        continue;
      }
      for (const std::uint8_t opcode : {std::uint8_t{IBV_OPCODE_RC_ACKNOWLEDGE}, roce::kOpcodeCnp}) {
        roce::PacketSpec spec = packet(opcode, stimulus.destination_qp);
        spec.underlay = stimulus.underlay;
        box.send(0, in, spec);
      }
    }
  for (const Json& row : box.rows())
    if (row["rule"] != "default") {
      EXPECT_GT(row["packets"], 0) << row["rule"];
    }
}

TEST(Acl, ReloadKeepsWhatIsNamedTheSame) {
  const std::string before = "    - {name: a, match: {destination_qp: 0x12}, action: drop}\n    - {name: b, meter: {" +
                             std::string(kMeter) + "}}\n";
  AclBox box(with_rules(before));
  for (int i = 0; i < 5; i++) box.send(0, 0, data(0x13));  // the last is red
  box.send(0, 0, data(0x12));
  EXPECT_EQ(box.told(), "a 1/570; b 5/2850; default 0/0; ");
  box.ports();
  const std::string after =
      "    - {name: new, match: {destination_qp: 0x12}}\n    - {name: b, meter: {" + std::string(kMeter) + "}}\n";
  auto change = test::prepare_change(box, with_rules(after));
  test::reset_allocations();
  test::count_allocations(true);
  change->apply(*box.kernel, 0);
  EXPECT_EQ(test::count_allocations(false), 0u);
  change.reset();
  EXPECT_EQ(box.told(), "new 0/0; b 5/2850; default 0/0; ") << "the place of `a` begins anew";
  box.send(0, 0, data(0x12));
  box.send(0, 0, data(0x13));
  EXPECT_EQ(box.ports(), std::vector<int>{1}) << "QP 0x12 passes now; the meter of `b` is still red";
  EXPECT_EQ(box.told(), "new 1/570; b 6/3420; default 0/0; ");
}

TEST(Acl, ReloadKeepsBothRatesOfAMeter) {
  const std::string rules =
      "    - {name: b, meter: {committed: 8kbps, committed_burst: 600B, peak: 8Mbps, peak_burst: 1200B}}\n";
  AclBox box(with_rules(rules));
  box.send(0, 0, data(0x13));
  EXPECT_EQ(box.ports(), std::vector<int>{1}) << "green";
  for (const Nanos at : {kMillisecond, 2 * kMillisecond}) {
    test::prepare_change(box, with_rules(rules))->apply(*box.kernel, at);
    box.send(at, 0, data(0x13));
    EXPECT_EQ(box.ports(), std::vector<int>{1}) << "yellow";
  }
}

TEST(Acl, ReloadRefusesWhatArraysAreSizedBy) {
  const std::string rules = "    - {name: a}\n";
  AclBox box(with_rules(rules));
  const auto refused = [&](const std::string& yaml) {
    try {
      test::prepare_change(box, yaml);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused(with_rules(rules + "  tcam_entries: 4000\n")).find("`acl.tcam_entries` cannot be changed"),
            std::string::npos);
  EXPECT_EQ(refused(with_rules(rules + "  default: drop\n")), "");
}

std::string mistakes_of(const std::string& rule) { return test::switch_mistakes(with_rules("    - {" + rule + "}\n")); }

TEST(Acl, NamesMistakesInRules) {
  EXPECT_EQ(mistakes_of("match: {opcodes: rc_acknowledge}"), "");
  const std::pair<const char*, const char*> wrong[] = {
      {"match: {opcodes: rc_aknowledge}",
       "switch:7:25: `opcodes` must hold names such as rc_rdma_write_first, numbers "
       "from 0 to 0xff or 0x60/0xe0, found `rc_aknowledge`; did you mean "
       "`rc_acknowledge`?"},
      {"match: {ports: [p9]}", "`ports` names no port of the switch: `p9`"},
      {"match: {source: 10.0.0.1/24}", "`source` has address bits behind its length"},
      {"match: {source: 10.0.0}", "`source` must be an address or a prefix"},
      {"match: {source: 10.0.0.1, destination: '2001:db8::1'}", "`destination` is of another address family"},
      {"match: {source_port: 9-1}", "`source_port` must be a port, such as 4791, or a range"},
      {"match: {protocol: icmp, source_port: 1}", "`protocol` has no ports"},
      {"match: {protocol: 256}", "`protocol` must be a number from 0 to 255 or one of icmp, tcp, udp, icmpv6"},
      {"match: {ethertype: ipv5}", "`ethertype` must be a number"},
      {"match: {destination_qp: 0x1000000}", "`destination_qp` must be a number from 0 to 0xffffff"},
      {"match: {source_mac: 02:00}", "`source_mac` must be a MAC address"},
      {"mirror: 8", "`mirror` names no mirror session: 8 is not in `mirror_sessions:`"},
      {"egress_port: p9", "`egress_port` names no port of the switch"},
      {"action: drop, dscp: 3", "`dscp` is of no use where packets are dropped"},
      {"meter: {committed: 2Mbps, peak: 1Mbps}", "`peak` must not be below `committed`"},
      {"meter: {committed: 1Mbps, peak: unlimited}", "`peak` must be a rate"},
      {"meter: {peak: 1Mbps}", "`peak` needs `committed`"},
      {"meter: {committed: 1Mbps, red_dscp: 3}", "`red_dscp` is used with `red: pass` only"},
      {"name: a}\n    - {name: a", "`rules` has two named `a`"}};
  for (const auto& [rule, text] : wrong)
    EXPECT_NE(mistakes_of(rule).find(text), std::string::npos) << mistakes_of(rule);
  std::string many;
  for (int i = 0; i < 70; i++) many += "match: {source_port: 1-65534, destination_port: 1-65534}}\n    - {";
  EXPECT_NE(mistakes_of(many + "name: last").find("rows of the ternary table, more than `tcam_entries: 1024`"),
            std::string::npos);
}

}  // namespace
}  // namespace rocebox::switch_model::acl
