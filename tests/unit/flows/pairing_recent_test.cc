// SPDX-License-Identifier: BSD-3-Clause
// Learning among hundreds of flows between two hosts, and QPs that come again.
#include <gtest/gtest.h>

#include "runtime/flows/pairing.h"
#include "runtime/roce/build.h"
#include "runtime/roce/psn.h"

namespace rocebox::flows::recent {
using namespace roce;

namespace {

constexpr std::uint32_t kNone = Pairing::kNone;
constexpr auto kReceived = ResponseKind::kReceived;
const auto kA = ipv4(10, 0, 0, 1), kB = ipv4(10, 0, 0, 2);

// As Themis has it.
struct PairingRecent : testing::Test {
  static constexpr std::uint32_t kQps = 512;
  Pairing pairing{{.directions = 4096, .candidates = kQps, .window = 512, .keep_recent = true}};
  std::uint32_t data(std::uint32_t qpn) { return pairing.add({{kA, kB}, 0x1000 + qpn}); }
  std::uint32_t acks(std::uint32_t qpn) { return pairing.add({{kB, kA}, 0x2000 + qpn}); }
};

TEST_F(PairingRecent, HundredsOfQueuePairsBetweenTwoHosts) {
  for (const std::uint32_t qps : {64u, 65u, kQps}) {
    Pairing many({.directions = 4096, .candidates = kQps, .window = 512, .keep_recent = true});
    const auto psn = [](std::uint32_t qp, std::uint32_t i) { return (qp * 2'654'435'761u + i) & kPsnMask; };
    for (std::uint32_t i = 0; i < 64; i++)
      for (std::uint32_t qp = 0; qp < qps; qp++) {
        many.request(many.add({{kA, kB}, 0x1000 + qp}), psn(qp, i), psn(qp, i));
        if (i >= 8) many.response(many.add({{kB, kA}, 0x2000 + qp}), psn(qp, i - 8), kReceived);
      }
    std::uint32_t right = 0;
    for (std::uint32_t qp = 0; qp < qps; qp++) {
      const auto direction = many.add({{kA, kB}, 0x1000 + qp});
      right += many.confirmed(direction) && many.partner(direction) == many.add({{kB, kA}, 0x2000 + qp});
    }
    EXPECT_EQ(right, qps);
    EXPECT_EQ(many.counts().undone, 0u);
  }
}

TEST_F(PairingRecent, OfMoreThanItLooksAtThoseThatSendRemain) {
  pairing.request(data(0), 7'000'000, 7'000'000);
  for (std::uint32_t flood = 1; flood < 2 * kQps; flood++) {
    pairing.request(data(flood), 1000 * flood, 1000 * flood);
    if (flood % 100 == 0) pairing.request(data(0), 7'000'000 + flood, 7'000'000 + flood);
  }
  EXPECT_GT(pairing.counts().displaced, 0u);
  EXPECT_EQ(pairing.response(acks(0), 7'001'000, kReceived), data(0));
  EXPECT_EQ(pairing.response(acks(1), 1000, kReceived), kNone) << "silent for longest";
  pairing.request(data(1), 1001, 1001);
  EXPECT_EQ(pairing.response(acks(1), 1001, kReceived), data(1)) << "it sends again";
}

TEST_F(PairingRecent, AnAnswerFarBehindTheLastRequestIsNoCandidates) {
  for (std::uint32_t psn = 0; psn < 2000; psn++) pairing.request(data(0), psn, psn);
  EXPECT_EQ(pairing.response(acks(0), 1999 - 512, kReceived), kNone) << "no sender has so many under way";
  EXPECT_EQ(pairing.response(acks(0), 1999 - 511, kReceived), data(0));
  pairing.request(data(1), 1'000'000, 1'003'000);  // a READ: its responses' PSNs
  EXPECT_EQ(pairing.response(acks(1), 1'000'000, kReceived), data(1));
}

TEST_F(PairingRecent, AQueuePairWhoseResponderIsAnothersGetsItsPair) {
  std::uint32_t psn = 100;
  const auto send = [&](std::uint32_t count) {
    for (; count > 0; count--, psn++) pairing.request(data(0), psn, psn);
  };
  for (int i = 0; i < 5; i++) {
    send(4);
    EXPECT_EQ(pairing.response(acks(0), psn - 1, kReceived), data(0));
  }
  ASSERT_TRUE(pairing.confirmed(data(0)));
  send(8);
  EXPECT_EQ(pairing.response(acks(1), psn - 1, kReceived), kNone) << "the partner may answer yet";
  EXPECT_EQ(pairing.response(acks(0), psn - 1, kReceived), data(0));
  send(15);
  EXPECT_EQ(pairing.response(acks(1), psn - 1, kReceived), kNone) << "silence begins with its last answer";
  send(1);
  EXPECT_EQ(pairing.response(acks(1), psn - 1, kReceived), data(0));
  EXPECT_EQ(pairing.partner(acks(0)), kNone);
  EXPECT_EQ(pairing.counts().undone, 1u);
  EXPECT_FALSE(pairing.confirmed(data(0)));
  for (int i = 0; i < 2; i++) {
    send(4);
    pairing.response(acks(1), psn - 1, kReceived);
  }
  EXPECT_TRUE(pairing.confirmed(data(0)));
}

// One ACK that fits, of a QP that is another's.
TEST_F(PairingRecent, AForeignAckDoesNotEndAPairThatAnswers) {
  pairing.request(data(0), 99, 99);
  ASSERT_EQ(pairing.response(acks(0), 99, kReceived), data(0));
  for (std::uint32_t psn = 100; psn < 200; psn++) {
    pairing.request(data(0), psn, psn);
    EXPECT_EQ(pairing.response(acks(1), psn, kReceived), kNone) << psn;
    if (psn % 8 == 7) {
      EXPECT_EQ(pairing.response(acks(0), psn, kReceived), data(0)) << psn;
    }
  }
  EXPECT_EQ(pairing.counts().undone, 0u);
}

TEST_F(PairingRecent, ASilentPartnerYieldsToNoOneWhoHasAFlowOfItsOwn) {
  for (std::uint32_t psn = 100; psn < 120; psn++) {
    pairing.request(data(0), psn, psn);
    if (psn < 104) pairing.response(acks(0), psn, kReceived);
  }
  pairing.request(data(1), 110, 110);
  EXPECT_EQ(pairing.response(acks(1), 110, kReceived), data(1));
  EXPECT_EQ(pairing.partner(data(0)), acks(0));
}

}  // namespace
}  // namespace rocebox::flows::recent
