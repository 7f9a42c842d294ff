// SPDX-License-Identifier: BSD-3-Clause
// Themis-S in a switch: which path each packet takes.
#include <set>

#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

constexpr const char* kLasting =
    "connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12}]";

class ThemisS : public InPipes {
 protected:
  static int path(Tor& tor, std::uint32_t psn) {
    const Ports left = tor.give(0, write(false, psn));
    EXPECT_EQ(left.size(), 1u);
    return left.empty() ? -1 : left[0];
  }
  static void nack(Tor& tor, std::uint32_t epsn, bool avoid = false) {
    roce::PacketSpec spec = response(true, epsn, kNackSyndrome);
    auto bytes = test::frame(spec);
    if (avoid) bytes[14 + 20 + 8 + 4] |= 1;
    tor.send(tor.now += 100, 2, bytes);
    tor.run_until(tor.now += 2 * kMicrosecond);
    EXPECT_EQ(tor.ports(), Ports{0});
    EXPECT_EQ(tor.out.back().bytes, test::frame(spec)) << "the signal is taken away";
  }
};

TEST_P(ThemisS, PacketsOfAConnectionAreDealtOut) {
  Tor tor(kLasting, pipes());
  path(tor, 4);  // the first tells that the connection lives: it has no state yet
  const int even = path(tor, 6), odd = path(tor, 7);
  EXPECT_EQ(even + odd, 2 + 3);
  for (std::uint32_t psn = 8; psn < 32; psn++) EXPECT_EQ(path(tor, psn), psn % 2 ? odd : even) << psn;
  EXPECT_EQ(tor.count("sprayed"), 26u);
  EXPECT_EQ(tor.out.back().bytes, test::frame(write(false, 31))) << "the bytes are not touched";
}

TEST_P(ThemisS, OtherOperationsKeepTheirPath) {
  Tor tor(kLasting, pipes());
  path(tor, 4);
  std::set<int> seen;
  for (std::uint32_t psn = 5; psn < 15; psn++)
    seen.insert(tor.give(0, packet(false, IBV_OPCODE_RC_SEND_ONLY, psn)).at(0));
  EXPECT_EQ(seen.size(), 1u);
  Tor sends(std::string(kLasting) + ", operations: [write, send]", pipes());
  sends.give(0, packet(false, IBV_OPCODE_RC_SEND_ONLY, 4));
  for (std::uint32_t psn = 5; psn < 15; psn++)
    seen.insert(sends.give(0, packet(false, IBV_OPCODE_RC_SEND_ONLY, psn)).at(0));
  EXPECT_EQ(seen.size(), 2u);
}

TEST_P(ThemisS, ANackedPacketTakesTheOtherPath) {
  Tor tor(kLasting, pipes());
  path(tor, 4);
  const int even = path(tor, 6), odd = path(tor, 7);
  nack(tor, 6);
  EXPECT_EQ(path(tor, 6), odd);
  EXPECT_EQ(path(tor, 7), odd) << "which the NIC repeats with it";
  EXPECT_EQ(path(tor, 8), even);
  EXPECT_EQ(tor.count("rerouted_nacked"), 1u);
}

TEST_P(ThemisS, AvoidedPathsGetNothingForAWhile) {
  Tor tor(std::string(kLasting) + ", avoidance_window: 3", pipes());
  path(tor, 4);
  const int even = path(tor, 6), odd = path(tor, 7);
  nack(tor, 6, true);
  EXPECT_EQ(tor.count("avoidance_signals"), 1u);
  for (std::uint32_t psn : {8, 10, 12}) EXPECT_EQ(path(tor, psn), odd);
  EXPECT_EQ(path(tor, 14), even);
  EXPECT_EQ(tor.count("rerouted_avoided"), 3u);
}

TEST_P(ThemisS, AForgedSignalAvoidsNothing) {
  Tor tor(kLasting, pipes());
  path(tor, 4);
  const int even = path(tor, 6);
  for (const std::uint32_t epsn : {20u, 9'000'000u, 16'000'000u}) nack(tor, epsn, true);
  EXPECT_EQ(tor.count("avoidance_refused"), 3u);
  EXPECT_EQ(path(tor, 8), even);
  EXPECT_EQ(tor.count("rerouted_avoided"), 0u);
}

TEST_P(ThemisS, OnePacketFarAheadDoesNotMakeAllOthersSentAgain) {
  Tor tor(kLasting, pipes());
  for (std::uint32_t psn = 4; psn < 8; psn++) path(tor, psn);
  path(tor, 8 + (1 << 22));
  for (std::uint32_t psn = 8; psn < 40; psn++) path(tor, psn);
  path(tor, 5'000'000);  // the QP begins anew, and again behind
  for (std::uint32_t psn = 1000; psn < 1040; psn++) path(tor, psn);
  EXPECT_EQ(tor.count("rerouted_again"), 0u);
}

// An option, which a reload changes.
TEST_P(ThemisS, WhatATimeoutSendsAgainMayKeepItsPath) {
  const std::string keep = std::string(kLasting) + ", reroute_timeouts: false";
  Tor tor(keep, pipes());
  path(tor, 4);
  const int even = path(tor, 6), odd = path(tor, 7);
  for (int i = 0; i < 20; i++) EXPECT_EQ(path(tor, 6), even);
  nack(tor, 6);
  for (int i = 0; i < 3; i++) EXPECT_EQ(path(tor, 6), odd) << "each, as in the paper";
  EXPECT_EQ(tor.count("rerouted_again"), 0u);
  const auto to_any = test::prepare_change(tor, tor_yaml(kLasting, pipes()));
  to_any->apply(*tor.kernel, tor.now);
  std::set<int> seen;
  for (int i = 0; i < 20; i++) seen.insert(path(tor, 6));
  EXPECT_EQ(seen.size(), 2u);
}

TEST_P(ThemisS, RequestsByAnotherPortAreNotTheNics) {
  Tor tor(kLasting, pipes());
  path(tor, 4);
  const std::uint64_t sprayed = tor.count("sprayed");
  tor.give(1, write(false, 6));
  EXPECT_EQ(tor.count("request_wrong_port"), 1u);
  EXPECT_EQ(tor.count("sprayed"), sprayed);
}

TEST_P(ThemisS, TheUdpSourcePortChangesWithItsIcrc) {
  Tor tor(std::string(kLasting) + ", spray: udp_source_port, path_map: ['0', '0x0102']", pipes());
  path(tor, 4);
  roce::PacketSpec odd = write(false, 7);
  tor.give(0, odd);
  odd.underlay.udp_source_port ^= 0x0102;
  EXPECT_EQ(tor.out.back().bytes, test::frame(odd)) << "with the ICRC that it then must have";
  tor.give(0, write(false, 8));
  EXPECT_EQ(tor.out.back().bytes, test::frame(write(false, 8)));
}

TEST_P(ThemisS, ThePathMapSpreadsOverThisSwitchsPortsToo) {
  const char* map =
      ", spray: udp_source_port, paths_max: 8, path_map: ['0', '0x8001', '0x4002', '0x2003', '0x1004', '0x0805', "
      "'0x0406', '0x0207']";
  std::string yaml = tor_yaml(std::string(kLasting) + map, pipes());
  const std::string old = "paths: 2";
  yaml.replace(yaml.find(old), old.size(), "paths: 8");
  Tor tor = Tor::with(yaml);
  path(tor, 0);
  std::set<int> seen;
  std::array<int, 8> ports;
  for (std::uint32_t psn = 1; psn <= 8; psn++) seen.insert(ports[psn % 8] = path(tor, psn));
  EXPECT_EQ(seen, (std::set<int>{2, 3}));
  for (std::uint32_t psn = 9; psn < 40; psn++) EXPECT_EQ(path(tor, psn), ports[psn % 8]) << "a path has one port";
  // ECMP would send a flow with that source port the same way.
  Tor plain = Tor::with(tor_yaml("spray: off", pipes()));
  for (std::uint32_t psn = 0; psn < 8; psn++) {
    roce::PacketSpec changed = write(false, psn);
    changed.underlay.udp_source_port ^= static_cast<std::uint16_t>(psn ? 0x10000u >> psn | psn : 0);
    EXPECT_EQ(plain.give(0, changed), Ports{ports[psn]}) << psn;
  }
}

TEST_P(ThemisS, ADestinationWithOtherPathsIsLeftAlone) {
  Tor tor(std::string(kLasting) + ", spray: egress_port", pipes());
  roce::PacketSpec elsewhere = write(false, 5);
  path(tor, 4);
  elsewhere.underlay.destination_mac = elsewhere.underlay.source_mac;
  elsewhere.underlay.destination_mac[5] = 0x77;
  tor.give(0, elsewhere);
  EXPECT_EQ(tor.count("not_sprayed_group"), 1u);
}

TEST(ThemisConfig, SprayingByPortNeedsForward) {
  CounterSet stats;
  EXPECT_THROW(test::make_switch("programs: [themis]\nthemis: {hosts: [p0]}\n", stats), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Pipes, ThemisS, testing::Values(1, 2));

}  // namespace
}  // namespace rocebox::themis
