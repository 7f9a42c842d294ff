// SPDX-License-Identifier: BSD-3-Clause
// What a rule of an access list matches: each condition alone, and rows of the ternary table against a scan.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/roce/ipv4_checksum.h"
#include "switch_model/acl/rules.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::acl {
namespace {

roce::PacketSpec data_packet() {
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 2)};
  spec.underlay.tos = 26 << 2 | 2;
  spec.underlay.vlans = {7, 0};
  spec.underlay.udp_source_port = 50000;
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_FIRST;
  spec.destination_qp = 0x123456;
  return spec;
}

// One rule that counts, over everything else permitted.
bool matches(const std::string& match, const std::vector<std::uint8_t>& frame, Port in = 1) {
  const std::string yaml = "strict: true\nprograms: [acl]\nacl: {rules: [{match: {" + match + "}, action: drop}]}\n";
  test::SwitchBox box(yaml.c_str());
  box.send(0, in, frame);
  EXPECT_EQ(box.stats.read("strict_violations"), 0u);
  EXPECT_EQ(box.stats.read("drop_acl") + box.stats.read("drop_no_port"), 1u);
  return box.stats.read("drop_acl") == 1;
}

TEST(AclMatch, EachConditionIsHeldOrNot) {
  const auto frame = test::frame(data_packet());
  const std::vector<std::string> held = {"",
                                         "ports: p1",
                                         "ports: [p0, p1]",
                                         "source_mac: 02:00:00:00:00:01",
                                         "destination_mac: 02:00:00:00:00:02",
                                         "source_mac: 02:00:00:00:ff:ff/ff:ff:ff:ff:00:00",
                                         "ethertype: ipv4",
                                         "ethertype: 0x0800",
                                         "vlan: 7",
                                         "source: 10.0.0.1",
                                         "source: 10.0.0.0/24",
                                         "destination: 10.0.1.2/32",
                                         "destination: 10.0.0.0/8",
                                         "source: 0.0.0.0/0",
                                         "protocol: udp",
                                         "protocol: 17",
                                         "source_port: 50000",
                                         "source_port: 49999-50001",
                                         "destination_port: 4791",
                                         "destination_port: 1-65535",
                                         "dscp: 26",
                                         "ecn: 2",
                                         "opcodes: rc_rdma_write_first",
                                         "opcodes: 6",
                                         "opcodes: [cnp, 0x06/0xfe]",
                                         "opcodes: 0/0xe0",
                                         "destination_qp: 0x123456",
                                         "destination_qp: 0x120000/0xff0000",
                                         "source: 10.0.0.0/24, destination: 10.0.1.0/24, vlan: 7, dscp: 26, ecn: 2"};
  for (const std::string& match : held) EXPECT_TRUE(matches(match, frame)) << match;
  const std::vector<std::string> broken = {"ports: p0",
                                           "ports: [p0, p2, p3]",
                                           "source_mac: 02:00:00:00:00:02",
                                           "destination_mac: 02:00:00:00:00:03",
                                           "ethertype: arp",
                                           "vlan: 0",
                                           "vlan: 8",
                                           "source: 10.0.0.2",
                                           "source: 10.0.1.0/24",
                                           "destination: 11.0.0.0/8",
                                           "source: '2001:db8::/32'",
                                           "source: '::/0'",
                                           "protocol: tcp",
                                           "source_port: 50001",
                                           "source_port: 1-49999",
                                           "destination_port: 4790",
                                           "dscp: 27",
                                           "dscp: 0",
                                           "ecn: 3",
                                           "ecn: 0",
                                           "opcodes: rc_rdma_write_middle",
                                           "opcodes: 0x20/0xe0",
                                           "destination_qp: 0x123457",
                                           "destination_qp: 0x110000/0xff0000",
                                           "source: 10.0.0.0/24, destination: 10.0.2.0/24"};
  for (const std::string& match : broken) EXPECT_FALSE(matches(match, frame)) << match;
}

TEST(AclMatch, Ipv6AndUntaggedPackets) {
  roce::PacketSpec spec = data_packet();
  spec.underlay.vlans = {};
  spec.underlay.ip_version = 6;
  spec.underlay.addresses.source = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  spec.underlay.addresses.destination = {0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  const auto frame = test::frame(spec);
  for (const char* match : {"vlan: 0", "ethertype: ipv6", "source: '2001:db8::1'", "destination: '2001:db8:1::/48'",
                            "source: '::/0'", "protocol: udp", "dscp: 26", "destination_port: 4791"})
    EXPECT_TRUE(matches(match, frame)) << match;
  for (const char* match : {"vlan: 7", "source: '2001:db8::2'", "destination: '2001:db8:2::/48'", "source: 0.0.0.0/0"})
    EXPECT_FALSE(matches(match, frame)) << match;
}

// What is not there matches nothing, 0 neither.
TEST(AclMatch, WhatAPacketHasNotIsNoZero) {
  std::vector<std::uint8_t> arp(64);
  const std::uint8_t head[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 8, 6};
  std::copy(std::begin(head), std::end(head), arp.begin());
  EXPECT_TRUE(matches("ethertype: arp", arp));
  EXPECT_TRUE(matches("destination_mac: ff:ff:ff:ff:ff:ff", arp));
  for (const char* match : {"dscp: 0", "ecn: 0", "protocol: 0", "source_port: 0", "source_port: 0-65535", "opcodes: 0",
                            "opcodes: 0/0", "destination_qp: 0", "destination_qp: 0/0", "source: 0.0.0.0/0"})
    EXPECT_FALSE(matches(match, arp)) << match;
  const std::vector<std::uint8_t> runt(9);
  EXPECT_TRUE(matches("ports: p1", runt));
  EXPECT_FALSE(matches("ethertype: ipv4", runt));
}

// A fragment behind the first has no ports where its payload stands.
TEST(AclMatch, PortsAreThoseOfUnfragmentedPacketsAndFirstFragments) {
  roce::PacketSpec spec = data_packet();
  spec.underlay.vlans = {};
  for (const auto& [flags, has_ports] : {std::pair(0x2000, true), {0x2001, false}, {0x0001, false}}) {
    auto frame = test::frame(spec);
    auto& ip = *reinterpret_cast<roce::Ipv4*>(frame.data() + sizeof(roce::Ethernet));
    ip.flags_fragment = static_cast<std::uint64_t>(flags);
    roce::store_ipv4_checksum(ip);
    EXPECT_EQ(matches("destination_port: 4791", frame), has_ports) << flags;
    EXPECT_TRUE(matches("protocol: udp, source: 10.0.0.1", frame)) << flags;
    EXPECT_FALSE(matches("destination_qp: 0x123456", frame)) << flags;
  }
}

// TCP to port 22 behind extension headers, and as fragments: IPv6 hides no more than IPv4.
TEST(AclMatch, Ipv6ExtensionsHideNothing) {
  using Bytes = std::vector<std::uint8_t>;
  const Bytes hop{43, 0, 1, 4, 0, 0, 0, 0}, routing{60, 0, 0, 0, 0, 0, 0, 0},
      options{6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const Bytes tcp{0xC0, 0, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0};
  const auto frame = [](std::uint8_t first, std::initializer_list<Bytes> parts) {
    Bytes all{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xDD, 0x60, 0, 0, 0, 0, 0, first, 64};
    all.resize(14 + 40);
    all[14 + 8] = all[14 + 24] = 0x20;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    all[14 + 5] = static_cast<std::uint8_t>(all.size() - 54);
    return all;
  };
  const char* ssh = "protocol: tcp, destination_port: 22";
  EXPECT_TRUE(matches(ssh, frame(6, {tcp})));
  EXPECT_TRUE(matches(ssh, frame(0, {hop, routing, options, tcp})));
  EXPECT_TRUE(matches(ssh, frame(44, {{6, 0, 0, 1, 0, 0, 0, 9}, tcp}))) << "the first fragment";
  const Bytes later = frame(44, {{6, 0, 0, 8, 0, 0, 0, 9}, tcp});
  EXPECT_TRUE(matches("protocol: tcp", later)) << "of a later one the protocol is known";
  EXPECT_FALSE(matches(ssh, later));
  EXPECT_FALSE(matches("protocol: tcp", frame(0, {{43, 9, 0, 0, 0, 0, 0, 0}}))) << "cut short";
  const Bytes optioned = frame(44, {{60, 0, 0, 8, 0, 0, 0, 9}, {6, 0, 0, 0, 0, 0, 0, 0}, tcp});
  EXPECT_TRUE(matches("protocol: 60", optioned)) << "the bytes of a later fragment are no header";
  EXPECT_FALSE(matches("protocol: tcp", optioned));
}

bool covers(const Row& row, std::uint32_t port) {
  const auto value = static_cast<std::uint32_t>(row.value.source_port[0] << 8 | row.value.source_port[1]);
  const auto mask = static_cast<std::uint32_t>(row.mask.source_port[0] << 8 | row.mask.source_port[1]);
  return (port & mask) == value;
}

TEST(AclMatch, ARangeBecomesRowsThatCoverItOnce) {
  const SwitchInfo info{{"p0"}};
  std::mt19937 random(5);
  std::vector<std::pair<unsigned, unsigned>> ranges = {{0, 65535}, {1, 65534}, {0, 0}, {65535, 65535}, {1024, 65535}};
  for (int i = 0; i < 40; i++) {
    const auto a = static_cast<unsigned>(random() % 65536), b = static_cast<unsigned>(random() % 65536);
    ranges.emplace_back(std::min(a, b), std::max(a, b));
  }
  for (const auto& [low, high] : ranges) {
    Match match;
    match.source_port = std::to_string(low) + "-" + std::to_string(high);
    const std::vector<Row> rows = match.rows(info);
    EXPECT_EQ(rows.size(), match.row_count());
    EXPECT_LE(rows.size(), 30u);
    for (std::uint32_t port = 0; port < 65536; port++) {
      const auto times = std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return covers(row, port); });
      ASSERT_EQ(times, port >= low && port <= high) << match.source_port << " " << port;
    }
  }
  Match many;
  many.ports = {"p0", "p0"};
  many.opcodes = {"1", "2", "3"};
  many.source_port = "1-6";
  EXPECT_EQ(many.rows(info).size(), many.row_count());
  EXPECT_EQ(many.row_count(), 2u * 3 * 4);
}

// Rules as people write them, hundreds of them, against a scan in their order.
TEST(AclMatch, TheFirstRuleThatMatchesCounts) {
  const SwitchInfo info{{"p0", "p1"}};
  std::mt19937 random(11);
  Config config;
  config.rule_entries = 500;
  config.tcam_entries = 4096;
  for (std::size_t i = 0; i < 500; i++) {
    RuleConfig& rule = config.rules.emplace_back();
    rule.name = std::to_string(i);
    const auto subnet = static_cast<std::uint8_t>(random() % 5);
    rule.match.source = roce::Prefix{roce::ipv4(10, 0, subnet, 0), true, random() % 2 ? 24u : 30u};
    const auto other = static_cast<std::uint8_t>(random() % 5);
    rule.match.destination = roce::Prefix{roce::ipv4(10, 1, other, static_cast<std::uint8_t>(random() % 8)), true, 32};
    if (random() % 3 == 0) rule.match.dscp = static_cast<std::int64_t>(random() % 3);
    if (random() % 4 == 0)
      rule.match.source_port = std::to_string(random() % 3) + "-" + std::to_string(3 + random() % 3);
    if (random() % 4 == 0) rule.match.opcodes = {std::to_string(random() % 4) + "/3"};
    if (random() % 4 == 0) rule.match.ports = {random() % 2 ? "p0" : "p1"};
  }
  const Rules rules = make_rules(config, info, {});
  std::vector<std::vector<Row>> rows;
  for (const RuleConfig& rule : config.rules) rows.push_back(rule.match.rows(info));
  std::set<std::size_t> hit;
  for (int round = 0; round < 4000; round++) {
    Key key{};
    key.ingress_port = static_cast<std::uint8_t>(random() % 2);
    key.ip_version = 4;
    key.flags = kIsIp | kHasPorts | (random() % 2 ? kHasBth : 0);
    key.tos = static_cast<std::uint8_t>(random() % 4 << 2);
    key.source = {0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  10,
                  0,
                  static_cast<std::uint8_t>(random() % 5),
                  static_cast<std::uint8_t>(random() % 8)};
    key.destination = {0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       0,
                       10,
                       1,
                       static_cast<std::uint8_t>(random() % 5),
                       static_cast<std::uint8_t>(random() % 8)};
    key.source_port[1] = static_cast<std::uint8_t>(random() % 7);
    key.opcode = key.flags & kHasBth ? static_cast<std::uint8_t>(random() % 8) : 0;
    std::size_t wanted = 0;
    const auto matched = [&](const Row& row) {
      const auto *k = reinterpret_cast<const std::uint8_t*>(&key),
                 *v = reinterpret_cast<const std::uint8_t*>(&row.value),
                 *m = reinterpret_cast<const std::uint8_t*>(&row.mask);
      for (std::size_t b = 0; b < sizeof key; b++)
        if ((k[b] ^ v[b]) & m[b]) return false;
      return true;
    };
    while (wanted < rows.size() && std::none_of(rows[wanted].begin(), rows[wanted].end(), matched)) wanted++;
    const std::uint32_t entry = rules.table.lookup(key);
    ASSERT_EQ(entry == kMiss ? rows.size() : rules.table.value(entry).rule, wanted);
    hit.insert(wanted);
  }
  EXPECT_GT(hit.size(), 50u);
}

}  // namespace
}  // namespace rocebox::switch_model::acl
