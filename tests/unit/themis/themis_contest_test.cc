// SPDX-License-Identifier: BSD-3-Clause
// Handshakes that contest a pair of the connection manager which is alive: who answers keeps it. Without learning, so
// that nothing but the handshakes tells what is a pair.
#include "tests/unit/themis/themis_cm_kit.h"

namespace rocebox::themis::contest_test {
namespace {

constexpr std::uint32_t kOther = 0x66;

struct ThemisContest : testing::Test {
  Tor tor{"learning: false, qps: 4, qp_timeout: 10s"};
  std::uint32_t psn = 0;

  void SetUp() override {
    connect(tor, 7, kLocalQpn, kRemoteQpn);
    for (int i = 0; i < 5; i++) exchange(kRemoteQpn);
    ASSERT_EQ(tor.count("qps_made"), 1u);
  }
  // A request to the rack's QP, and its ACK to this one.
  void exchange(std::uint32_t answered_to) {
    tor.data(psn);
    tor.give(0, to(response(false, psn++, kAckSyndrome), answered_to));
  }
  template <class Each>
  void each_second(int seconds, Each&& each) {
    const Nanos begun = tor.now;
    for (int second = 1; second <= seconds; second++) {
      tor.run_until(tor.now = begun + second * kSecond);
      each();
    }
  }
  bool sprays(std::uint32_t remote_qpn) {
    const std::uint64_t before = tor.count("sprayed");
    tor.give(0, to(write(false, psn++), remote_qpn));
    return tor.count("sprayed") != before;
  }
  void expect_judged(std::uint32_t answered_to) {
    tor.data(psn + 1);
    EXPECT_EQ(tor.give(0, to(response(false, psn, kNackSyndrome), answered_to)), Ports{}) << "undetermined";
    EXPECT_EQ(tor.data(psn + 2).size(), 2u) << "valid";
    psn += 3;
  }
};

// The host was started anew, without a DREQ: its QP has the number that it had, and another partner.
TEST_F(ThemisContest, WhoIsSilentLosesThePairToTheHandshake) {
  connect(tor, 8, kLocalQpn, kOther);
  ASSERT_EQ(tor.count("cm_refused"), 1u);
  each_second(8, [&] { exchange(kOther); });
  EXPECT_EQ(tor.count("pairs_undone"), 0u) << "not for qp_timeout yet";
  each_second(6, [&] { exchange(kOther); });
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  expect_judged(kOther);
  EXPECT_TRUE(sprays(kOther));
  EXPECT_FALSE(sprays(kRemoteQpn));
  give_mad(tor, 2, true, dreq(kRemoteId + 8, 7, kLocalQpn));
  EXPECT_EQ(tor.count("qps_ended"), 0u) << "the identifiers are the handshake's";
  give_mad(tor, 2, true, dreq(kRemoteId + 8, 8, kLocalQpn));
  EXPECT_EQ(tor.count("qps_ended"), 1u);
}

TEST_F(ThemisContest, AnAnswerThatFitsNoRequestIsNone) {
  connect(tor, 8, kLocalQpn, kOther);
  each_second(14, [&] {
    exchange(kOther);
    tor.give(0, to(response(false, 5'000'000 + psn, kAckSyndrome), kRemoteQpn));
  });
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_TRUE(sprays(kOther));
}

// From then on it is one as before: its packets are not looked at, nor others' answers taken for its own.
TEST_F(ThemisContest, WhoAnswersKeepsThePairAndIsBelievedAgain) {
  const auto learning =
      test::prepare_change(tor, tor_yaml("learning: true, qps: 4, qp_timeout: 10s"));  // to see whose answers count
  learning->apply(*tor.kernel, tor.now);
  connect(tor, 8, kLocalQpn, kOther);
  ASSERT_EQ(tor.count("cm_refused"), 1u);
  each_second(14, [&] { exchange(kRemoteQpn); });
  for (int i = 0; i < 40; i++) exchange(kOther);
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  tor.give(0, to(response(false, psn - 1, kAckSyndrome), kRemoteQpn));
  expect_judged(kRemoteQpn);
}

TEST_F(ThemisContest, AnswersEitherWayKeepThePair) {
  connect(tor, 8, kLocalQpn, kOther);
  each_second(14, [&] {
    EXPECT_TRUE(sprays(kRemoteQpn));
    tor.give(2, response(true, psn - 1, kAckSyndrome));
  });
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
}

TEST_F(ThemisContest, APairThatIsIdleAgesAndIsNobodys) {
  connect(tor, 8, kLocalQpn, kOther);
  each_second(14, [] {});
  EXPECT_EQ(tor.count("qps_aged"), 1u);
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  EXPECT_EQ(tor.count("qps_made"), 1u);
  connect(tor, 9, kLocalQpn, kOther);
  EXPECT_EQ(tor.count("qps_made"), 2u);
}

TEST_F(ThemisContest, AHandshakeTakesNoPairThatAnswers) {
  connect(tor, 9, 0x21, 0x22);
  connect(tor, 8, kLocalQpn, 0x22);  // half of each
  EXPECT_EQ(tor.count("cm_refused"), 1u);
  each_second(14, [&] {
    tor.data(psn);  // which its partner does not answer
    tor.give(2, to(write(true, psn), 0x21));
    tor.give(0, to(response(false, psn++, kAckSyndrome), 0x22));
  });
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 2u) << "none is made";
  EXPECT_FALSE(sprays(kRemoteQpn));
  EXPECT_TRUE(sprays(0x22));
}

}  // namespace
}  // namespace rocebox::themis::contest_test
