// SPDX-License-Identifier: BSD-3-Clause
// Who may say which QPs are a pair, and who gets the state that there is: forged handshakes, floods, QPs that come
// again.
#include "runtime/roce/psn.h"
#include "tests/unit/themis/themis_cm_kit.h"

namespace rocebox::themis {
namespace {

// Whether requests of the NIC to this QP are sprayed.
bool sprays(Tor& tor, std::uint32_t remote_qpn, std::uint32_t psn) {
  const std::uint64_t before = tor.count("sprayed");
  tor.give(0, to(write(false, psn), remote_qpn));
  return tor.count("sprayed") != before;
}

TEST(ThemisClaims, ADisconnectMustNameTheConnection) {
  Tor tor("learning: false, qps: 4");
  connect(tor, 7, kLocalQpn, kRemoteQpn);
  give_mad(tor, 2, true, dreq(kRemoteId + 7, 8, kLocalQpn));
  give_mad(tor, 2, true, dreq(0, 7, kLocalQpn));
  give_mad(tor, 0, false, dreq(7, 0, kRemoteQpn));
  EXPECT_EQ(tor.count("qps_ended"), 0u);
  give_mad(tor, 1, false, dreq(7, kRemoteId + 7, kRemoteQpn));
  EXPECT_EQ(tor.count("cm_refused"), 1u) << "by another NIC's port";
  EXPECT_TRUE(sprays(tor, kRemoteQpn, 1));
  EXPECT_EQ(tor.count("qps_ended"), 0u);
  give_mad(tor, 2, true, dreq(kRemoteId + 7, 7, kLocalQpn));
  EXPECT_EQ(tor.count("qps_ended"), 1u);
}

TEST(ThemisClaims, AReplyThatAnotherNicOfTheRackForgesIsNotBelieved) {
  Tor tor("learning: false, qps: 4");
  req(tor, 7, kLocalQpn);
  rep(tor, 7, 0x66, 1);  // "from the other rack", but by p1
  EXPECT_EQ(tor.count("qps_made"), 0u);
  rep(tor, 7, kRemoteQpn);
  EXPECT_TRUE(sprays(tor, kRemoteQpn, 1));
  // The other way round: the REQ comes from the other rack, and p1 answers as if it were p0.
  roce::CmReq request{};
  request.local_communication_id = 50, request.local_qpn = 0x51;
  EXPECT_EQ(give_mad(tor, 2, true, request), Ports{0});
  roce::CmRep reply{};
  reply.remote_communication_id = 50, reply.local_qpn = 0x66;
  give_mad(tor, 1, false, reply);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  reply.local_qpn = 0x52;
  give_mad(tor, 0, false, reply);
  EXPECT_EQ(tor.count("qps_made"), 2u);
}

TEST(ThemisClaims, AHandshakeDoesNotReplaceAPairThatIsAlive) {
  Tor tor("learning: false, qps: 4, qp_timeout: 10s");
  connect(tor, 7, kLocalQpn, kRemoteQpn);
  EXPECT_TRUE(sprays(tor, kRemoteQpn, 1));
  connect(tor, 8, kLocalQpn, 0x66);
  connect(tor, 9, 0x66, kRemoteQpn);
  connect(tor, 10, kLocalQpn, kRemoteQpn);
  EXPECT_EQ(tor.count("cm_refused"), 3u);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  EXPECT_TRUE(sprays(tor, kRemoteQpn, 2));
  EXPECT_FALSE(sprays(tor, 0x66, 2));
  tor.run_until(tor.now = 6 * kSecond);
  connect(tor, 11, kLocalQpn, 0x67);
  EXPECT_EQ(tor.count("qps_made"), 2u) << "it was silent for longer than a quarter of qp_timeout";
  EXPECT_TRUE(sprays(tor, 0x67, 1));
}

// The QPs of a host that was started anew, without a DREQ.
TEST(ThemisClaims, APairThatAHandshakeContestsEndsWhenItsQpIsSilent) {
  Tor tor("qps: 4, qp_timeout: 10s");
  connect(tor, 7, kLocalQpn, kRemoteQpn);
  const auto exchange = [&](std::uint32_t psn, std::uint32_t remote_qpn) {
    tor.data(psn);
    tor.give(0, to(response(false, psn, kAckSyndrome), remote_qpn));
  };
  for (std::uint32_t psn = 0; psn < 5; psn++) exchange(psn, kRemoteQpn);
  connect(tor, 8, kLocalQpn, 0x66);
  for (std::uint32_t psn = 5; psn < 45; psn++) exchange(psn, kRemoteQpn);
  EXPECT_EQ(tor.count("pairs_undone"), 0u) << "it answers";
  for (std::uint32_t psn = 45; psn < 85; psn++) exchange(psn, 0x66);
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  tor.data(86);
  EXPECT_EQ(tor.give(0, to(response(false, 85, kNackSyndrome), 0x66)), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(87).size(), 2u) << "valid";
}

// The responder's QP is used again, by another requester.
TEST(ThemisClaims, ALearntPairEndsWhenAnotherQpAnswers) {
  Tor tor("qp_timeout: 10s");
  for (std::uint32_t psn = 100; psn < 110; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  ASSERT_EQ(tor.count("qps_made"), 1u);
  for (std::uint32_t psn = 110; psn < 150; psn++) {
    tor.data(psn);
    tor.give(0, to(response(false, psn, kAckSyndrome), 0x77));
  }
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  tor.data(151);
  EXPECT_EQ(tor.give(0, to(response(false, 150, kNackSyndrome), 0x77)), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(152).size(), 2u) << "valid";
}

// So many requests without an answer as a sender may have under way are no silence.
TEST(ThemisClaims, ASenderWithAFullWindowIsNotSilent) {
  std::string yaml = tor_yaml("qp_timeout: 10s");
  yaml.replace(yaml.find("window: 8"), 9, "window: 64");
  Tor tor = Tor::with(yaml);
  std::uint32_t psn = 100;
  for (; psn < 110; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  ASSERT_EQ(tor.count("qps_made"), 1u);
  const auto request = [&] {
    tor.data(psn);
    tor.give(0, to(response(false, psn++, kAckSyndrome), 0x77));  // another QP's, that fits
  };
  for (int i = 1; i < 64; i++) request();
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  for (int i = 0; i < 2; i++) request();  // the one whose answer is taken, and one that shows it
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
}

TEST(ThemisClaims, AnAckOfAnotherQpEndsNoPairThatAnswers) {
  Tor tor("qp_timeout: 10s");
  std::uint32_t psn = 100;
  for (; psn < 110; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  for (; psn < 200; psn++) {
    tor.data(psn);
    tor.give(0, to(response(false, psn, kAckSyndrome), 0x77));  // before its own
    tor.ack(psn);
  }
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  tor.data(psn + 1);
  EXPECT_EQ(tor.nack(psn), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(psn + 2).size(), 2u) << "valid";
}

TEST(ThemisClaims, HundredsOfPairsBetweenTwoHostsAreLearnt) {
  Tor tor("qps: 1024, qp_timeout: 10s");
  constexpr std::uint32_t kPairs = 512;
  const auto psn = [](std::uint32_t pair, std::uint32_t i) { return (pair * 2'654'435'761u + i) & roce::kPsnMask; };
  for (std::uint32_t i = 0; i < 10; i++)
    for (std::uint32_t pair = 0; pair < kPairs; pair++) {
      tor.give(2, to(write(true, psn(pair, i)), 0x1000 + pair));
      if (i >= 4) tor.give(0, to(response(false, psn(pair, i - 4), kAckSyndrome), 0x2000 + pair));
    }
  EXPECT_EQ(tor.count("qps_made"), kPairs);
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
}

// Flows of one packet each, by another NIC's port and from the fabric, many times as many as pairing has room for.
class ThemisFlood : public testing::TestWithParam<int> {
 protected:
  void flood(Tor& tor, std::uint32_t flows) {
    for (; flows > 0; flows--, next++) {
      roce::PacketSpec spec = to(write(GetParam() == 2, next), 0x10000 + next);
      auto& addresses = spec.underlay.addresses;
      (GetParam() == 2 ? addresses.source : addresses.destination)[13] = static_cast<std::uint8_t>(2 + next % 200);
      tor.give(static_cast<Port>(GetParam()), spec);
    }
  }
  std::uint32_t next = 0;
};

TEST_P(ThemisFlood, BlocksNoPair) {
  Tor tor(
      "qps: 64, qp_timeout: 10s, connections: [{local: 10.0.0.1, local_qpn: 0x31, remote: 10.0.1.1, "
      "remote_qpn: 0x32}]");
  flood(tor, 1000);
  req(tor, 7, 0x21);
  flood(tor, 50);
  rep(tor, 7, 0x22);
  EXPECT_TRUE(sprays(tor, 0x22, 1)) << "by the connection manager";
  EXPECT_FALSE(sprays(tor, 0x32, 1)) << "the first tells where the NIC is";
  EXPECT_TRUE(sprays(tor, 0x32, 2)) << "configured";
  for (std::uint32_t psn = 100; psn < 108; psn++) {
    tor.data(psn);
    flood(tor, 50);
    tor.ack(psn);
    flood(tor, 50);
  }
  EXPECT_TRUE(sprays(tor, kRemoteQpn, 1)) << "learnt";
  EXPECT_EQ(tor.count("pairing_full"), 0u);
  EXPECT_GT(tor.count("pairing_displaced"), 1000u);
}

INSTANTIATE_TEST_SUITE_P(From, ThemisFlood, testing::Values(1, 2));

TEST(ThemisClaims, StateGoesToTheStrongerSource) {
  Tor tor("qps: 1, qp_timeout: 10s");
  for (std::uint32_t psn = 100; psn < 110; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  ASSERT_TRUE(sprays(tor, kRemoteQpn, 1)) << "learnt";
  connect(tor, 7, 0x21, 0x22);
  EXPECT_EQ(tor.count("qps_displaced"), 1u);
  EXPECT_TRUE(sprays(tor, 0x22, 1));
  EXPECT_FALSE(sprays(tor, kRemoteQpn, 2));
  connect(tor, 8, 0x23, 0x24);
  EXPECT_EQ(tor.count("qp_full"), 1u) << "of equal ones the first";
  const auto told = test::prepare_change(
      tor, tor_yaml("qps: 1, qp_timeout: 10s, connections: [{local: 10.0.0.1, local_qpn: 0x31, remote: 10.0.1.1, "
                    "remote_qpn: 0x32}]"));
  told->apply(*tor.kernel, tor.now);
  EXPECT_FALSE(sprays(tor, 0x32, 1));
  EXPECT_TRUE(sprays(tor, 0x32, 2));
  EXPECT_EQ(tor.count("qps_displaced"), 2u);
}

}  // namespace
}  // namespace rocebox::themis
