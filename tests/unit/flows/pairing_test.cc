// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/flows/pairing.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/roce/build.h"
#include "runtime/roce/mad.h"
#include "runtime/roce/psn.h"
#include "tests/unit/harness.h"

namespace rocebox::flows {
using namespace roce;
namespace {

constexpr std::uint32_t kNone = Pairing::kNone;
constexpr auto kReceived = ResponseKind::kReceived;
const auto kA = ipv4(10, 0, 0, 1), kB = ipv4(10, 0, 0, 2);

class PairingTest : public testing::Test {
 protected:
  std::uint32_t to_b(std::uint32_t qpn) { return pairing.add({{kA, kB}, qpn}, next_flow++); }
  std::uint32_t to_a(std::uint32_t qpn) { return pairing.add({{kB, kA}, qpn}, next_flow++); }
  Pairing pairing{{.directions = 64, .handshakes = 8, .candidates = 4}};
  std::uint32_t next_flow = 0;
};
using PairingStatic = PairingTest;
using PairingLearned = PairingTest;
using PairingCm = PairingTest;

TEST_F(PairingStatic, IsKnownBeforeAnyPacketAndNeverUndone) {
  ASSERT_TRUE(pairing.connect(kA, 0x11, kB, 0x12, PairSource::kConfig));
  const auto data = to_b(0x12), acks = to_a(0x11);
  EXPECT_EQ(pairing.partner(data), acks);
  EXPECT_EQ(pairing.partner(acks), data);
  EXPECT_EQ(pairing.flow(acks), 1u);
  EXPECT_TRUE(pairing.confirmed(data));
  pairing.request(data, 100, 100);
  EXPECT_EQ(pairing.response(acks, 7'000'000, kReceived), data) << "contradicts nothing that was told";
  EXPECT_FALSE(pairing.connect(kA, 0x11, kB, 0x13, PairSource::kCm)) << "a weaker source";
}

TEST_F(PairingStatic, ForgottenHalvesMakeRoomForOthers) {
  for (std::uint32_t qpn = 0x100; qpn < 0x200; qpn++) {
    ASSERT_TRUE(pairing.connect(kA, qpn, kB, qpn + 0x1000, PairSource::kConfig)) << qpn;
    const auto data = to_b(qpn + 0x1000), acks = to_a(qpn);
    pairing.request(data, 5, 9);
    EXPECT_EQ(pairing.partner(data), acks);
    pairing.forget(data);
    EXPECT_EQ(pairing.partner(acks), kNone);
    pairing.forget(acks);
    EXPECT_EQ(pairing.find({{kA, kB}, qpn + 0x1000}), kNone);
  }
  const auto anew = to_b(0x1300), acks = to_a(0x300);
  EXPECT_FALSE(pairing.requested(anew)) << "nothing of those before it";
  pairing.request(anew, 100, 103);
  EXPECT_EQ(pairing.response(acks, 101, kReceived), anew);
}

TEST_F(PairingLearned, AddressPairsThatAreForgottenMakeRoom) {
  for (std::uint32_t host = 0; host < 5000; host++) {
    const auto far = ipv4(10, 1, static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host));
    const auto data = pairing.add({{kA, far}, 0x12}), acks = pairing.add({{far, kA}, 0x11});
    ASSERT_NE(acks, kNone);
    pairing.request(data, 100, 103);
    ASSERT_EQ(pairing.response(acks, 101, kReceived), data) << host;
    pairing.forget(data);
    pairing.forget(acks);
  }
}

TEST_F(PairingStatic, WhatCannotBePairedTakesNoRoom) {
  for (std::uint32_t qpn = 0; qpn < 63; qpn++) ASSERT_NE(to_b(qpn), kNone);
  EXPECT_FALSE(pairing.connect(kA, 0x1000, kB, 0x2000, PairSource::kCm)) << "there is room for one half only";
  EXPECT_EQ(pairing.size(), 63u);
  EXPECT_TRUE(pairing.connect(kA, 0x1000, kB, 5, PairSource::kConfig)) << "of which one is known";
  EXPECT_FALSE(pairing.connect(kA, 0x1001, kB, 5, PairSource::kCm)) << "a weaker source";
  EXPECT_EQ(pairing.size(), 64u);
}

TEST_F(PairingLearned, AQpThatBeginsAnewFarBehindIsLearntAsOneFarAhead) {
  for (const std::uint32_t anew : {8'000'000u, 9'000'000u}) {  // less and more than half a round from the first
    const auto data = to_b(anew), acks = to_a(anew + 1);
    pairing.request(data, 100, 100);
    pairing.request(data, anew, anew);
    EXPECT_EQ(pairing.response(acks, anew, kReceived), data) << anew;
  }
}

TEST_F(PairingLearned, TheOnlyWindowWithThePsnTentativeThenConfirmed) {
  const auto one = to_b(0x12), two = to_b(0x22), acks = to_a(0x11);
  pairing.request(one, 100, 109);
  pairing.request(two, 5000, 5009);
  EXPECT_EQ(pairing.response(acks, 300, kReceived), kNone);
  EXPECT_EQ(pairing.response(acks, 104, kReceived), one);
  EXPECT_EQ(pairing.source(one), PairSource::kLearned);
  EXPECT_FALSE(pairing.confirmed(acks));
  pairing.response(acks, 104, kReceived);
  EXPECT_FALSE(pairing.confirmed(acks)) << "an old duplicate says nothing";
  pairing.response(acks, 106, kReceived);
  pairing.response(acks, 107, ResponseKind::kNotReceived);
  EXPECT_TRUE(pairing.confirmed(acks));
  EXPECT_TRUE(pairing.confirmed(one));
  EXPECT_EQ(pairing.response(acks, 107, kReceived), one) << "a NAK leaves its PSN open";
  EXPECT_EQ(pairing.partner(two), kNone);
}

TEST_F(PairingLearned, AcrossTheWrap) {
  const auto data = to_b(0x12), acks = to_a(0x11);
  for (std::uint32_t i = 0; i < 20; i++) pairing.request(data, psn_add(kPsnMask - 9, i), psn_add(kPsnMask - 9, i));
  EXPECT_EQ(pairing.response(acks, 10, kReceived), kNone) << "one too high";
  EXPECT_EQ(pairing.response(acks, kPsnMask, kReceived), data);
  EXPECT_EQ(pairing.response(acks, 9, kReceived), data);
}

TEST_F(PairingLearned, SeveralWindowsThatFitAreNoAnswer) {
  const auto one = to_b(0x12), two = to_b(0x22), acks = to_a(0x11), other_acks = to_a(0x21);
  pairing.request(one, 100, 109);
  pairing.request(two, 105, 120);
  EXPECT_EQ(pairing.response(acks, 107, kReceived), kNone);
  EXPECT_EQ(pairing.counts().ambiguous, 1u);
  EXPECT_EQ(pairing.response(acks, 102, kReceived), one);
  EXPECT_EQ(pairing.response(other_acks, 107, kReceived), two) << "a paired flow is no candidate any more";
}

TEST_F(PairingLearned, IsUndoneWhenContradictedAndLearnedAnew) {
  const auto one = to_b(0x12), two = to_b(0x22), acks = to_a(0x11);
  pairing.request(one, 100, 109);
  EXPECT_EQ(pairing.response(acks, 107, kReceived), one);
  pairing.request(two, 900'000, 900'009);
  EXPECT_EQ(pairing.response(acks, 900'001, kReceived), two);
  EXPECT_EQ(pairing.partner(one), kNone);
  EXPECT_EQ(pairing.counts().undone, 1u);
  EXPECT_EQ(pairing.response(acks, 300'000, kReceived), kNone) << "far before the window, and fits nobody";
  EXPECT_EQ(pairing.counts().undone, 2u);
}

TEST_F(PairingLearned, AnswersFromBeforeTheCaptureDoNotPair) {
  const auto data = to_b(0x12), acks = to_a(0x11);
  EXPECT_EQ(pairing.response(acks, 99, kReceived), kNone);
  pairing.request(data, 100, 100);
  EXPECT_EQ(pairing.response(acks, 99, kReceived), kNone);
  EXPECT_EQ(pairing.response(acks, 100, kReceived), data);
}

TEST_F(PairingLearned, LooksAtAFewCandidatesOnly) {
  for (std::uint32_t i = 0; i < 5; i++) pairing.request(to_b(0x20 + i), 1000 * i, 1000 * i + 9);
  const auto acks = to_a(0x11);
  EXPECT_EQ(pairing.response(acks, 1001, kReceived), kNone) << "five are more than four";
  EXPECT_EQ(pairing.counts().crowded, 1u);
}

TEST_F(PairingLearned, AQueuePairThatTalksToItselfIsNotItsOwnPartner) {
  const auto self = pairing.add({{kA, kA}, 5}, 0);
  pairing.request(self, 10, 20);
  EXPECT_EQ(pairing.response(self, 12, kReceived), kNone);
}

TEST_F(PairingLearned, FullMeansNotPaired) {
  for (std::uint32_t i = 0; i < 64; i++) EXPECT_NE(to_b(i), kNone);
  EXPECT_EQ(to_b(1000), kNone);
  EXPECT_EQ(pairing.counts().refused, 1u);
  EXPECT_FALSE(pairing.connect(kA, 0x11, kB, 2000, PairSource::kConfig));
}

// A handshake message as a packet.
class Handshake {
 public:
  template <class T>
  Pairing::ConnectionEvent send(Pairing& pairing, const T& message, bool from_a, std::uint32_t place = 0) {
    return pairing.observe_mad(*packet_of(message, from_a), place);
  }
  template <class T>
  PacketPtr packet_of(const T& message, bool from_a) {
    std::vector<std::uint8_t> bytes(kMadBytes);
    MadHeader header{};
    header.base_version = kMadBaseVersion;
    header.management_class = 7, header.class_version = 2, header.method = 3;
    header.attribute_id = static_cast<std::uint16_t>(T::kAttribute);
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), &message, sizeof(message));
    PacketSpec spec;
    spec.opcode = IBV_OPCODE_UD_SEND_ONLY;
    spec.destination_qp = kGsiQpn;
    spec.underlay.addresses = from_a ? Addresses{kA, kB} : Addresses{kB, kA};
    spec.payload = bytes;
    PacketPtr packet = pool_.allocate(built_bytes(spec));
    build(*packet, spec);
    return packet;
  }
  void req(Pairing& pairing, std::uint32_t id, std::uint32_t qpn, std::uint8_t service = 0, std::uint32_t psn = 0,
           std::uint32_t place = 0) {
    CmReq req{};
    req.local_communication_id = id, req.local_qpn = qpn, req.starting_psn = psn;
    req.timeout_service_flow = static_cast<std::uint8_t>(service << 1);
    send(pairing, req, true, place);
  }
  static CmRep reply(std::uint32_t id, std::uint32_t qpn, std::uint32_t psn = 0) {
    CmRep rep{};
    rep.remote_communication_id = id, rep.local_qpn = qpn, rep.starting_psn = psn;
    return rep;
  }
  Pairing::ConnectionEvent rep(Pairing& pairing, std::uint32_t id, std::uint32_t qpn, std::uint32_t psn = 0,
                               std::uint32_t place = 0) {
    return send(pairing, reply(id, qpn, psn), false, place);
  }
  Pairing::Told would_pair(Pairing& pairing, std::uint32_t id, std::uint32_t qpn) {
    return pairing.would_pair(*packet_of(reply(id, qpn), false));
  }

 private:
  Pool pool_{test::kPoolSizes};
};

TEST_F(PairingCm, HandshakesTellWhereRequestsBegin) {
  Handshake cm;
  const auto data = to_b(0x12), back = to_a(0x11);
  cm.req(pairing, 77, 0x11, 0, 1000);
  const Pairing::ConnectionEvent event = cm.rep(pairing, 77, 0x12, 2000);
  EXPECT_TRUE(event.begins);
  EXPECT_EQ(event.directions[0], back);
  EXPECT_EQ(event.psns[0], 1000u) << "the REQ names the PSN of requests to its sender";
  EXPECT_EQ(event.directions[1], data);
  EXPECT_EQ(event.psns[1], 2000u);
  EXPECT_FALSE(cm.rep(pairing, 77, 0x12, 2000).begins) << "repeated";
  cm.req(pairing, 77, 0x11, 0, 1000);
  EXPECT_FALSE(cm.rep(pairing, 77, 0x12, 2000).begins) << "both repeated";
  cm.req(pairing, 78, 0x11, 0, 1100);
  EXPECT_TRUE(cm.rep(pairing, 78, 0x12, 2100).begins) << "the same QPs again";
  CmDreq dreq{};
  dreq.remote_qpn = 0x12;
  dreq.local_communication_id = 77;
  EXPECT_FALSE(cm.send(pairing, dreq, true).ends) << "of the connection before";
  dreq.local_communication_id = 78, dreq.remote_communication_id = 5;
  EXPECT_FALSE(cm.send(pairing, dreq, true).ends) << "the other end calls it otherwise";
  EXPECT_EQ(pairing.counts().disbelieved, 2u);
  dreq.remote_communication_id = 0;
  const Pairing::ConnectionEvent end = cm.send(pairing, dreq, true);
  EXPECT_TRUE(end.ends);
  EXPECT_EQ(end.directions[0], data);
  EXPECT_EQ(end.directions[1], back);
}

TEST_F(PairingCm, RequestAndReplyPair) {
  Handshake cm;
  const auto data = to_b(0x12);
  cm.req(pairing, 77, 0x11);
  cm.rep(pairing, 78, 0x12);
  EXPECT_EQ(pairing.partner(data), kNone) << "another handshake's reply";
  cm.rep(pairing, 77, 0x12);
  const auto acks = to_a(0x11);
  EXPECT_EQ(pairing.partner(data), acks);
  EXPECT_EQ(pairing.source(acks), PairSource::kCm);
  EXPECT_TRUE(pairing.confirmed(acks));
  // The same QP with a new peer, and a REJ.
  cm.req(pairing, 79, 0x31);
  cm.rep(pairing, 79, 0x12);
  EXPECT_EQ(pairing.key(pairing.partner(data)).destination_qp, 0x31u);
  EXPECT_EQ(pairing.partner(acks), kNone);
  cm.req(pairing, 80, 0x41);
  CmRej rej{};
  rej.remote_communication_id = 80;
  cm.send(pairing, rej, false);
  cm.rep(pairing, 80, 0x12);
  EXPECT_EQ(pairing.key(pairing.partner(data)).destination_qp, 0x31u) << "rejected";
  cm.req(pairing, 81, 0x51, 1);
  cm.rep(pairing, 81, 0x12);
  EXPECT_EQ(pairing.key(pairing.partner(data)).destination_qp, 0x31u) << "UC";
}

TEST_F(PairingCm, ReplacesAGuess) {
  Handshake cm;
  const auto wrong = to_b(0x22), right = to_b(0x12), acks = to_a(0x11);
  pairing.request(wrong, 10, 20);
  EXPECT_EQ(pairing.response(acks, 12, kReceived), wrong);
  cm.req(pairing, 1, 0x11);
  cm.rep(pairing, 1, 0x12);
  EXPECT_EQ(pairing.partner(acks), right);
  EXPECT_EQ(pairing.partner(wrong), kNone);
}

TEST_F(PairingCm, ARequestAndAReplyAreOfOnePlace) {
  Handshake cm;
  cm.req(pairing, 77, 0x11, 0, 0, 5);
  EXPECT_FALSE(cm.rep(pairing, 77, 0x66, 0, 6).begins) << "as if it were B's, from elsewhere";
  EXPECT_EQ(pairing.counts().disbelieved, 1u);
  cm.req(pairing, 77, 0x99, 0, 0, 6);
  EXPECT_TRUE(cm.rep(pairing, 77, 0x12, 0, 5).begins);
  EXPECT_EQ(pairing.partner(to_b(0x12)), to_a(0x11));
}

TEST_F(PairingCm, TellsBeforehandWhatAReplyWouldPair) {
  Handshake cm;
  const auto data = to_b(0x12), back = to_a(0x11);
  EXPECT_FALSE(cm.would_pair(pairing, 77, 0x12).any) << "no REQ";
  cm.req(pairing, 77, 0x11);
  const Pairing::Told told = cm.would_pair(pairing, 77, 0x12);
  EXPECT_TRUE(told.any);
  EXPECT_EQ(pairing.directions_of(told), (std::array{back, data}));
  EXPECT_EQ(pairing.directions_of(cm.would_pair(pairing, 77, 0x13)), (std::array{back, kNone}));
  EXPECT_EQ(pairing.partner(data), kNone) << "nothing is done";
  EXPECT_TRUE(pairing.pair(told).begins);
  EXPECT_EQ(pairing.partner(data), back);
  EXPECT_EQ(pairing.source(back), PairSource::kCm);
  cm.rep(pairing, 77, 0x12);
  EXPECT_FALSE(cm.would_pair(pairing, 77, 0x12).any) << "a REP that is repeated";
}

TEST_F(PairingCm, AContestedPairIsSilentUntilItAnswers) {
  ASSERT_TRUE(pairing.connect(kA, 0x11, kB, 0x12, PairSource::kCm));
  const auto data = to_b(0x12), acks = to_a(0x11);
  pairing.contest(data);
  pairing.request(data, 100, 103);
  EXPECT_TRUE(pairing.is_silent(data));
  pairing.watch_silence(data);
  pairing.response(acks, 500, kReceived);
  EXPECT_TRUE(pairing.is_silent(data)) << "nothing that it sent";
  pairing.response(acks, 101, kReceived);
  EXPECT_FALSE(pairing.is_silent(acks)) << "of either direction";
  pairing.watch_silence(acks);
  EXPECT_TRUE(pairing.is_silent(data)) << "since then";
}

TEST_F(PairingCm, AsManyHandshakesAreOpenAsIsSaid) {
  Pairing many({.directions = 1 << 15, .handshakes = 1024});
  Handshake cm;
  constexpr std::uint32_t kOpened = 10'000;
  for (std::uint32_t id = 1; id <= kOpened; id++) cm.req(many, id, 0x100'000 + id);
  std::uint32_t kept = 0;
  for (std::uint32_t id = 1; id <= kOpened; id++) kept += cm.rep(many, id, 0x200'000 + id).begins;
  EXPECT_EQ(kept, 2048u);
  std::uint32_t lost = 0;
  for (std::uint32_t id = 1; id <= 1024; id++) cm.req(many, kOpened + id, 0x300'000 + id);
  for (std::uint32_t id = 1; id <= 1024; id++) lost += !cm.rep(many, kOpened + id, 0x400'000 + id).begins;
  EXPECT_LT(lost, 103u) << "of 1024 nine in ten find room";
}

TEST_F(PairingCm, AFloodOfRequestsFromOnePlaceEndsNoHandshakeOfAnother) {
  Handshake cm;
  cm.req(pairing, 77, 0x11, 0, 0, 1);
  for (std::uint32_t id = 1000; id < 9000; id++) cm.req(pairing, id, id, 0, 0, 2);
  EXPECT_TRUE(cm.rep(pairing, 77, 0x12, 0, 1).begins);
  EXPECT_TRUE(cm.rep(pairing, 8999, 0x13, 0, 2).begins) << "the last of the flood is there, too";
}

TEST_F(PairingCm, ManyOpenRequestsForgetTheOldest) {
  Handshake cm;
  for (std::uint32_t id = 1; id <= 1000; id++) cm.req(pairing, id, id);
  cm.rep(pairing, 1000, 0x12);
  EXPECT_NE(pairing.partner(to_b(0x12)), kNone);
  cm.rep(pairing, 1, 0x13);
  EXPECT_EQ(pairing.partner(to_b(0x13)), kNone);
}

}  // namespace
}  // namespace rocebox::flows
