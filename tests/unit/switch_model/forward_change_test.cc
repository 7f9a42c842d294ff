// SPDX-License-Identifier: BSD-3-Clause
// Routes, next hops, static addresses and multicast groups that change while packets flow.
#include "runtime/telemetry/json_report.h"
#include "switch_model/forward/hop_tables.h"
#include "tests/unit/contracts/allocations.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr const char* kRouter = "02:00:00:00:ff:01";

std::string switch_yaml(const std::string& forward, const std::string& more = "") {
  return "strict: true\nprograms: [acl, forward]\n" + more +
         "forward: {mac_entries: 16, hop_entries: 16, router_mac: '" + kRouter + "', " + forward + "}\n";
}
std::string route(const std::string& prefix, const std::string& port, int host) {
  return "{prefix: '" + prefix + "', via: [{port: " + port + ", mac: '02:00:00:00:01:0" + std::to_string(host) + "'}]}";
}

struct ForwardBox : test::SwitchBox {
  explicit ForwardBox(const std::string& yaml) : SwitchBox(yaml.c_str()) {}
  ~ForwardBox() { EXPECT_EQ(stats.read("strict_violations"), 0u); }
  void reload(const std::string& yaml) {
    const std::unique_ptr<Change> change = test::prepare_change(*this, yaml);
    test::reset_allocations();
    test::count_allocations(true);
    change->apply(*kernel, now);
    EXPECT_EQ(test::count_allocations(false), 0u);
  }
  std::string refused(const std::string& yaml) {
    try {
      test::prepare_change(*this, yaml);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  std::vector<int> give(Port in, const roce::PacketSpec& spec) {
    send(now += 100, in, spec);
    return ports();
  }
  /// Last byte of the last packet's destination MAC address.
  int last_mac() const { return out.back().bytes[5]; }
  Nanos now = 0;
};

roce::PacketSpec to(std::array<std::uint8_t, 6> mac, std::uint8_t host = 1, std::uint8_t from = 9) {
  roce::PacketSpec spec;
  spec.underlay.destination_mac = mac;
  spec.underlay.source_mac = {2, 0, 0, 0, 0, from};
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, host)};
  return spec;
}
constexpr std::array<std::uint8_t, 6> kToRouter = {2, 0, 0, 0, 0xFF, 1};
std::array<std::uint8_t, 6> mac(std::uint8_t last) { return {2, 0, 0, 0, 0, last}; }
using Ports = std::vector<int>;

TEST(ForwardChange, RoutesAreTakenOverBetweenTwoPackets) {
  ForwardBox box(switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 1) + ", " + route("0.0.0.0/0", "p2", 2) + "]"));
  EXPECT_EQ(box.give(0, to(kToRouter)), Ports{1});
  box.reload(switch_yaml("routes: [" + route("10.0.1.0/24", "p3", 3) + "]"));
  EXPECT_EQ(box.give(0, to(kToRouter)), Ports{3});
  EXPECT_EQ(box.last_mac(), 3);
  roce::PacketSpec elsewhere = to(kToRouter);
  elsewhere.underlay.addresses.destination = roce::ipv4(192, 0, 2, 1);
  EXPECT_EQ(box.give(0, elsewhere), Ports{}) << "the default route is gone";
  EXPECT_EQ(box.stats.read("drop_no_route"), 1u);
  box.reload(switch_yaml("routes: []"));
  EXPECT_EQ(box.give(0, to(kToRouter)), Ports{});
  box.reload(switch_yaml("routes: [" + route("10.0.1.1/32", "p2", 2) + ", " + route("10.0.0.0/8", "p1", 1) + "]"));
  EXPECT_EQ(box.give(0, to(kToRouter, 1)), Ports{2});
  EXPECT_EQ(box.give(0, to(kToRouter, 2)), Ports{1});
}

TEST(ForwardChange, Ipv6RoutesToo) {
  ForwardBox box(switch_yaml("routes: [" + route("2001:db8::/32", "p1", 1) + "]"));
  roce::PacketSpec spec = to(kToRouter);
  spec.underlay.ip_version = 6;
  spec.underlay.addresses.destination = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(box.give(0, spec), Ports{1});
  box.reload(switch_yaml("routes: [" + route("2001:db8::/32", "p1", 1) + ", " + route("2001:db8::/64", "p2", 2) + "]"));
  EXPECT_EQ(box.give(0, spec), Ports{2});
  EXPECT_EQ(box.last_mac(), 2);
}

// A packet in a queue has chosen its next hop: it gets that one's address, though the route is another one now.
TEST(ForwardChange, PacketsThatWaitKeepTheirNextHop) {
  const std::string slow = "traffic_manager: {rate: 8Mbps}\n";
  ForwardBox box(switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 1) + "]", slow));
  box.send(0, 0, to(kToRouter));
  box.send(0, 0, to(kToRouter));
  box.reload(switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 5) + "]", slow));
  box.send(0, 0, to(kToRouter));
  box.drain();
  ASSERT_EQ(box.out.size(), 3u);
  EXPECT_EQ(box.out[0].bytes[5], 1);
  EXPECT_EQ(box.out[1].bytes[5], 1);
  EXPECT_EQ(box.out[2].bytes[5], 5);
}

TEST(ForwardChange, StateThatTheRoutesHaveNoPartInStays) {
  const std::string rules = "acl: {rules: [{name: all}]}\n";
  ForwardBox box(switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 1) + "]", rules));
  box.give(0, to(kToRouter));
  box.give(3, to(mac(9), 1, 8));  // to the first packet's source
  box.reload(switch_yaml("routes: [" + route("10.0.1.0/24", "p2", 1) + "]", rules));
  EXPECT_EQ(box.give(1, to(mac(9), 1, 7)), Ports{0}) << "still learnt";
  EXPECT_EQ(box.stats.read("macs_learnt"), 3u);
  Json json;
  JsonReport writer(json);
  box.kernel->report(writer);
  EXPECT_EQ(json["acl"]["rules"][0]["packets"], 3) << "the access list counts on";
}

TEST(ForwardChange, StaticAddressesComeAndGo) {
  ForwardBox box(switch_yaml("macs: [{mac: '02:00:00:00:00:01', ports: [p1]}]"));
  EXPECT_EQ(box.give(0, to(mac(1))), Ports{1});
  EXPECT_EQ(box.give(2, to(mac(9), 1, 5)), Ports{0}) << "5 is learnt at p2";
  box.reload(switch_yaml("macs: [{mac: '02:00:00:00:00:01', ports: [p3]}, {mac: '02:00:00:00:00:05', ports: [p1]}]"));
  EXPECT_EQ(box.give(0, to(mac(1))), Ports{3});
  EXPECT_EQ(box.give(0, to(mac(5))), Ports{1}) << "learnt before, static now";
  EXPECT_EQ(box.give(2, to(mac(9), 1, 5)), Ports{0});
  EXPECT_EQ(box.give(0, to(mac(5))), Ports{1}) << "and not learnt again";
  box.run_until(box.now += 400 * kSecond);
  EXPECT_EQ(box.give(0, to(mac(5))), Ports{1}) << "nor aged";
  box.reload(switch_yaml("learning: true"));
  EXPECT_EQ(box.give(0, to(mac(5))), (Ports{1, 2, 3})) << "unknown now";
  box.give(2, to(mac(9), 1, 5));
  EXPECT_EQ(box.give(0, to(mac(5))), Ports{2}) << "learnt again";
}

TEST(ForwardChange, AFullTableMakesRoomForStaticAddresses) {
  ForwardBox box(switch_yaml("learning: true"));
  for (std::uint8_t host = 0; host < 16; host++) box.give(host % 2, to(mac(200), 1, host));
  EXPECT_EQ(box.stats.read("macs_learnt"), 16u);
  box.give(0, to(mac(200), 1, 77));
  EXPECT_EQ(box.stats.read("mac_table_full"), 1u);
  box.reload(switch_yaml("macs: [{mac: '02:00:00:00:00:64', ports: [p3]}, {mac: '02:00:00:00:00:65', ports: [p2]}]"));
  EXPECT_EQ(box.stats.read("macs_displaced"), 2u);
  EXPECT_EQ(box.give(0, to(mac(0x64), 1, 0)), Ports{3});
  EXPECT_EQ(box.give(0, to(mac(0x65), 1, 0)), Ports{2});
  EXPECT_EQ(box.give(0, to(mac(3), 1, 0)), Ports{1}) << "others are known as before";
}

TEST(ForwardChange, EqualPathsAtL2) {
  ForwardBox box(switch_yaml("macs: [{mac: '02:00:00:00:00:01', ports: [p1, p2]}]"));
  box.give(0, to(mac(1)));
  box.reload(switch_yaml("macs: [{mac: '02:00:00:00:00:01', ports: [p3]}]"));
  EXPECT_EQ(box.give(0, to(mac(1))), Ports{3});
}

TEST(ForwardChange, MulticastGroups) {
  const auto groups = [](const std::string& ports) {
    return switch_yaml("macs: [{mac: '01:00:5e:00:00:01', group: 5}]",
                       "multicast_groups: [{group: 5, ports: [" + ports + "]}]\n");
  };
  ForwardBox box(groups("p0, p1, p3"));
  const auto packet = to({0x01, 0, 0x5E, 0, 0, 1});
  EXPECT_EQ(box.give(0, packet), (Ports{1, 3}));
  box.reload(groups("p0, p2"));
  EXPECT_EQ(box.give(0, packet), Ports{2});
  EXPECT_EQ(box.give(0, to(mac(77))), (Ports{1, 2, 3})) << "flooding is as before";
}

TEST(ForwardChange, WhatCannotChangeIsNamed) {
  ForwardBox box(switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 1) + "]"));
  EXPECT_EQ(box.refused(switch_yaml("routes: [], ecmp_seed: 3")),
            "switch: `forward.ecmp_seed` cannot be changed while it runs; only multicast_groups, traffic_manager.rate, "
            "traffic_manager.rates, acl.rules, acl.default, "
            "forward.macs, forward.routes can");
  std::string many = "routes: [";
  for (int i = 0; i < 12; i++) many += route("10." + std::to_string(i) + ".0.0/16", "p1", 1) + ", ";
  EXPECT_EQ(box.refused(switch_yaml(many + "]")), "") << "one list of next hops, whatever the number of prefixes";
  std::string paths = "routes: [{prefix: 10.0.0.0/8, via: [";
  for (int i = 0; i < 16; i++) paths += "{port: p2, mac: '02:00:00:00:02:" + std::to_string(10 + i) + "'}, ";
  EXPECT_EQ(box.refused(switch_yaml(paths + "]}]")),
            "forward: no room for 16 next hops beside those of the running configuration and of this one: "
            "`hop_entries: 16`");
}

TEST(Bridge, AStaticAddressWithAGroupIsNotLearntOver) {
  test::SwitchBox box(
      "strict: true\nmulticast_groups: [{group: 5, ports: [p1, p2]}]\n"
      "forward: {macs: [{mac: '02:00:00:00:00:01', group: 5}]}\n");
  box.send(0, 3, to(mac(7), 1, 1));  // from that address
  box.ports();
  box.send(10, 0, to(mac(1)));
  EXPECT_EQ(box.ports(), (Ports{1, 2}));
}

TEST(HopPlacer, OldPlacesAreFreeForTheSecondConfigurationBehind) {
  HopTables tables(4);
  const auto hop = [](Port port) { return NextHop{port, false, {}}; };
  const auto place = [&](std::initializer_list<std::vector<NextHop>> lists) {
    HopPlacer placer(tables);
    std::vector<std::uint32_t> numbers;
    for (const auto& list : lists) numbers.push_back(placer.place(list));
    tables = placer.take();
    return numbers;
  };
  EXPECT_EQ(place({{hop(1), hop(2)}, {hop(1), hop(2)}}), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(place({{hop(3)}, {hop(1), hop(2)}}), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(place({{hop(4)}}), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(tables.hops[tables.groups[0].first], hop(1)) << "what waits still finds it";
  EXPECT_EQ(tables.groups[2].first, 3);
  EXPECT_EQ(place({{hop(5), hop(6), hop(7)}}), (std::vector<std::uint32_t>{0})) << "the first configurations' places";
  EXPECT_EQ(tables.groups[0].first, 0);
  EXPECT_THROW(place({{hop(8), hop(9)}}), ConfigError);
}

TEST(Forward, RefusesTwoEntriesForOneAddress) {
  const std::string macs =
      switch_yaml("macs: [{mac: '02:00:00:00:00:0a', ports: [p1]}, {mac: '02:00:00:00:00:0A', ports: [p2]}]");
  EXPECT_NE(test::switch_mistakes(macs).find("`macs` has two entries for `02:00:00:00:00:0a`"), std::string::npos);
  const std::string vlans =
      switch_yaml("macs: [{mac: '02:00:00:00:00:0a', ports: [p1]}, {mac: '02:00:00:00:00:0a', vlan: 7, ports: [p2]}]");
  EXPECT_EQ(test::switch_mistakes(vlans), "");
  const std::string routes =
      switch_yaml("routes: [" + route("10.0.1.0/24", "p1", 1) + ", " + route("10.0.1.0/24", "p2", 2) + "]");
  EXPECT_NE(test::switch_mistakes(routes).find("`routes` has two entries for `10.0.1.0/24`"), std::string::npos);
}

TEST(Forward, EqualPortsAreOneWayThatNoPacketGoesBack) {
  ForwardBox box(switch_yaml("macs: [{mac: '02:00:00:00:00:02', ports: [p2, p3]}]"));
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  spec.opcode = IBV_OPCODE_RC_SEND_ONLY;
  for (std::uint16_t flow = 0; flow < 16; flow++) {
    spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + 977 * flow);
    for (const Port in : {Port{2}, Port{3}}) {
      box.send(0, in, spec);
      EXPECT_TRUE(box.ports().empty()) << flow;
    }
    box.send(0, 0, spec);
    EXPECT_EQ(box.ports().size(), 1u);
  }
  EXPECT_EQ(box.stats.read("drop_same_port"), 32u);
}

}  // namespace
}  // namespace rocebox::switch_model::forward
