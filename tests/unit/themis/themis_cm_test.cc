// SPDX-License-Identifier: BSD-3-Clause
// Handshakes of the connection manager through a ToR: pairs, what is forged or does not fit, and where there is no
// room.
#include "tests/unit/themis/themis_cm_kit.h"

namespace rocebox::themis {
namespace {

TEST(ThemisCm, AHandshakeMakesState) {
  Tor tor("learning: false, qps: 4");
  req(tor, 7, kLocalQpn);
  rep(tor, 7, kRemoteQpn);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  EXPECT_EQ(tor.give(0, write(false, 1)).size(), 1u);
  EXPECT_EQ(tor.count("sprayed"), 1u);
}

TEST(ThemisCm, FlowsThatAreSilentGiveAHandshakeRoom) {
  constexpr std::uint32_t kHalves = 4;  // of one QP
  for (std::uint32_t filled = kHalves - 1; filled <= 10 * kHalves; filled++) {
    Tor tor("learning: false, qps: 1, qp_timeout: 10s");
    for (std::uint32_t qpn = 0x100; qpn < 0x100 + filled; qpn++) tor.give(0, to(write(false, 0), qpn));
    req(tor, 7, kLocalQpn);
    rep(tor, 7, kRemoteQpn);
    EXPECT_EQ(tor.count("qps_made"), 1u) << filled;
    EXPECT_EQ(tor.count("pairing_full"), 0u);
  }
}

// More than there is room for in one instant: a direction is not given to another while it may be asked about.
TEST(ThemisCm, FlowsOfThisInstantAreNotForgotten) {
  Tor tor("learning: false, qps: 1, qp_timeout: 10s");
  for (std::uint32_t qpn = 0x100; qpn < 0x110; qpn++) tor.send(tor.now + 100, 0, to(write(false, 0), qpn));
  EXPECT_EQ(tor.count("pairing_full"), 12u);
  EXPECT_EQ(tor.count("pairing_displaced"), 0u);
}

TEST(ThemisCm, MessagesThatPairNothingTakeNobodysPlace) {
  Tor tor("learning: false, qps: 1, qp_timeout: 10s");
  const auto fill = [&tor](std::uint32_t directions) {
    for (std::uint32_t qpn = 0x100; qpn < 0x100 + directions; qpn++) tor.give(0, to(write(false, 0), qpn));
  };
  fill(4);
  for (int i = 0; i < 2; i++) req(tor, 7, kLocalQpn);
  rep(tor, 8, kRemoteQpn);  // whose REQ nobody has seen
  roce::CmRej no{};
  no.remote_communication_id = 8;
  give_mad(tor, 2, true, no);
  give_mad(tor, 2, true, dreq(kRemoteId + 8, 8, 0x77));
  EXPECT_EQ(tor.count("pairing_displaced"), 0u);
  rep(tor, 7, kRemoteQpn);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  EXPECT_EQ(tor.count("pairing_displaced"), 2u) << "its halves are new";
  rep(tor, 7, kRemoteQpn);
  EXPECT_EQ(tor.count("pairing_displaced"), 2u) << "repeated";
}

TEST(ThemisCm, AHandshakeTakesThePlaceOfOthersOnly) {
  Tor tor("learning: false, qps: 1, qp_timeout: 10s");
  tor.give(0, to(write(false, 0), kRemoteQpn));  // of all the one that was silent longest
  for (std::uint32_t qpn = 0x100; qpn < 0x103; qpn++) tor.give(0, to(write(false, 0), qpn));
  connect(tor, 7, kLocalQpn, kRemoteQpn);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  EXPECT_EQ(tor.count("pairing_displaced"), 1u) << "its other half is new";
}

TEST(ThemisCm, AReplyWithoutRoomChangesNothingAndMayComeAgain) {
  Tor tor("learning: false, qps: 1, qp_timeout: 10s");
  req(tor, 7, kLocalQpn);
  for (std::uint32_t qpn = 0x100; qpn < 0x104; qpn++) tor.send(tor.now + 100, 0, to(write(false, 0), qpn));
  tor.ports();
  rep(tor, 7, kRemoteQpn);  // in the same instant
  EXPECT_EQ(tor.count("qps_made"), 0u);
  EXPECT_EQ(tor.count("pairing_full"), 1u);
  rep(tor, 7, kRemoteQpn);
  EXPECT_EQ(tor.count("qps_made"), 1u);
}

TEST(ThemisCm, ASecondReplyWithAnotherQpIsNotBelieved) {
  Tor tor("learning: false, qps: 4, qp_timeout: 1ms");
  req(tor, 7, kLocalQpn);
  rep(tor, 7, 0x21);
  rep(tor, 7, 0x22);
  for (const std::uint32_t qpn : {0x22, 0x21}) EXPECT_EQ(tor.give(0, to(write(false, 1), qpn)).size(), 1u);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  EXPECT_EQ(tor.count("sprayed"), 1u) << "0x21";
  tor.drain();  // until all has aged
  EXPECT_EQ(tor.count("qps_aged"), 1u);
}

TEST(ThemisCm, RepliesWithoutEndTakeNoRoom) {
  Tor tor("qps: 4");
  req(tor, 7, kLocalQpn);
  for (std::uint32_t qpn = 0x100; qpn < 0x200; qpn++) rep(tor, 7, qpn);
  req(tor, 8, 0x31);
  rep(tor, 8, 0x41);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  EXPECT_EQ(tor.count("pairing_full"), 0u);
}

TEST(ThemisAgeing, AStashThatNobodyWatchesKeepsNoQp) {
  Tor tor(std::string("learning: false, stash_timeout: 0ns, qp_timeout: 10ms, ") + kConnection);
  tor.meet();
  for (const std::uint32_t psn : {0, 1, 3}) tor.data(psn);
  EXPECT_TRUE(tor.nack(2).empty()) << "stashed";
  const auto change = test::prepare_change(
      tor, tor_yaml(std::string("learning: false, stash_timeout: 1ms, qp_timeout: 10ms, ") + kConnection));
  change->apply(*tor.kernel, tor.now);
  tor.drain();
  EXPECT_EQ(tor.count("qps_aged"), 1u);
}

TEST(ThemisConfigured, SprayingByPortNumberNeedsForwardBeforeItToo) {
  std::string yaml = tor_yaml("spray: udp_source_port, path_map: ['0', '1']");
  const std::string order = "[forward, themis]";
  yaml.replace(yaml.find(order), order.size(), "[themis, forward]");
  EXPECT_THROW(test::SwitchBox box(yaml.c_str()), ConfigError);
}

}  // namespace
}  // namespace rocebox::themis
