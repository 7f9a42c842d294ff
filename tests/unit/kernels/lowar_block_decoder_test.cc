// SPDX-License-Identifier: BSD-3-Clause
// The receiver's block and its coding units alone; which recovered packets are remembered; what the sender is asked.
#include <gtest/gtest.h>

#include "kernels/lowar/adaptation.h"
#include "kernels/lowar/block_decoder.h"
#include "kernels/lowar/recovered_packets.h"
#include "tests/unit/kernels/lowar_packets.h"

namespace rocebox::lowar {
namespace lowar_block_decoder_test {
namespace {

class LowarBlockDecoder : public testing::Test {
 protected:
  LowarBlockDecoder() { block.set_next_coding({4, 2}, 0); }
  bool hand_over(std::uint32_t psn, bool starts = false, bool ends = false, bool usable = true) {
    block.enter(units, psn, starts);
    const bool had_unit = block.add(units, *made.middle(psn), psn, usable);
    block.leave(units, psn, ends);
    return had_unit;
  }
  // How many packets of a share are in a unit.
  bool has(std::uint32_t base, unsigned isn, unsigned packets) const {
    RepairHeader header;
    header.block.coding = {4, 2}, header.block.base_psn = base, header.block.packets = 4;
    header.isn = static_cast<std::uint8_t>(isn);
    return block.unit_of(units, header, packets) != CodingUnits::kNone;
  }
  kit::Packets made;
  CodingUnits units{3, 512};
  BlockDecoder block;
};

TEST_F(LowarBlockDecoder, BeginsWithAMessageAndEndsAfterRPackets) {
  hand_over(10);
  EXPECT_FALSE(block.aligned()) << "amid a message, and no LoWAR packet has come";
  EXPECT_EQ(units.bound(), 0u);
  hand_over(11, true);
  EXPECT_TRUE(block.aligned());
  EXPECT_TRUE(block.needs_unit(12));
  hand_over(12), hand_over(13);
  EXPECT_FALSE(block.needs_unit(14));
  EXPECT_TRUE(has(11, 0, 2));
  EXPECT_TRUE(has(11, 1, 1));
  EXPECT_FALSE(has(11, 1, 2)) << "exactly these packets";
  EXPECT_FALSE(has(10, 0, 2)) << "another block";
  hand_over(14);
  EXPECT_EQ(units.bound(), 0u) << "complete";
  hand_over(15);
  EXPECT_TRUE(has(15, 0, 1)) << "the next one";
  hand_over(16, false, true);
  EXPECT_EQ(units.bound(), 0u) << "the message ends";
}

TEST_F(LowarBlockDecoder, BeginsWhereALowarPacketSaid) {
  block.set_boundary(20);
  EXPECT_EQ(block.end_of_block(18), 20u);
  EXPECT_EQ(block.end_of_block(20), 24u);
  EXPECT_EQ(block.end_of_block(15), 19u) << "it is farther away than a block";
  hand_over(19);
  EXPECT_FALSE(block.aligned());
  hand_over(20);
  EXPECT_TRUE(has(20, 0, 1));
  block.lose_alignment(units);
  EXPECT_FALSE(block.aligned());
  EXPECT_EQ(units.bound(), 0u);
}

TEST_F(LowarBlockDecoder, WhatCannotBeXoredLeavesTheBlockWithoutUnits) {
  hand_over(10, true);
  EXPECT_TRUE(hand_over(11, false, false, false)) << "no unit was to be had for it";
  EXPECT_EQ(units.bound(), 0u);
  hand_over(12);
  EXPECT_EQ(units.bound(), 0u) << "the block is lost";
  hand_over(14);
  EXPECT_TRUE(has(14, 0, 1)) << "and the next one is not";
  units.bind(), units.bind();
  EXPECT_TRUE(units.all_bound());
  EXPECT_FALSE(hand_over(15));
  EXPECT_EQ(units.bound(), 2u) << "its own one is free again";
}

TEST_F(LowarBlockDecoder, ALateRepairPacketDoesNotSwitchCodingOn) {
  block.set_next_coding({}, 100);
  Block late;
  late.coding = {8, 1}, late.base_psn = 99;
  EXPECT_FALSE(block.follow_coding(late));
  EXPECT_TRUE(block.next_coding().off());
  late.base_psn = 100;
  EXPECT_TRUE(block.follow_coding(late));
  EXPECT_EQ(block.next_coding(), (Coding{8, 1}));
  late.coding = {4, 1}, late.base_psn = 50;
  EXPECT_TRUE(block.follow_coding(late)) << "it is coded";
}

TEST(LowarRecoveredPackets, AnOriginalIsKnownOnceAndForSoLong) {
  kit::Packets made;
  RecoveredPackets recovered;
  const PacketPtr reliable = made.middle(5);
  recovered.add(*reliable, kSecond, kMillisecond);
  EXPECT_FALSE(recovered.take(*made.middle(6), kSecond));
  EXPECT_FALSE(recovered.take(*reliable, kSecond + 2 * kMillisecond)) << "nobody would have waited for it";
  EXPECT_TRUE(recovered.take(*reliable, kSecond + kMillisecond));
  EXPECT_FALSE(recovered.take(*reliable, kSecond)) << "sent again";
  recovered.await_at_any_psn();
  EXPECT_FALSE(recovered.at_any_psn()) << "RC sends again";
  recovered.add(*reliable, kSecond, kMillisecond);
  recovered.sequence_jumps(-1, 16);
  EXPECT_FALSE(recovered.take(*reliable, kSecond));
}

TEST(LowarRecoveredPackets, OfUcForASecondWhereverTheSequenceIs) {
  kit::Packets made;
  RecoveredPackets recovered;
  const PacketPtr unreliable = made.one(IBV_OPCODE_UC_SEND_MIDDLE, 5);
  recovered.add(*unreliable, kSecond, kMillisecond);
  recovered.await_at_any_psn();
  recovered.expire(kSecond + kSecond / 2);
  EXPECT_TRUE(recovered.at_any_psn());
  recovered.sequence_jumps(-16, 16);
  EXPECT_TRUE(recovered.take(*unreliable, kSecond + kSecond / 2));
  recovered.expire(kSecond + kSecond / 2);
  EXPECT_FALSE(recovered.at_any_psn()) << "none is left";
  recovered.add(*unreliable, kSecond, kMillisecond);
  recovered.sequence_jumps(-17, 16);
  EXPECT_FALSE(recovered.take(*unreliable, kSecond)) << "the connection has begun anew";
}

class LowarAdaptation : public testing::Test {
 protected:
  void say(std::uint32_t token, std::uint16_t serial = 0) {
    NegotiationHeader header;
    header.token = token, header.serial = serial;
    adaptation.learn(header);
  }
  // One packet of a hundred is lost. Whether another setting is asked for in the end.
  bool lossy(unsigned packets) {
    bool asked = false;
    for (unsigned i = 0; i < packets; i++) {
      if (i % 100)
        adaptation.came();
      else
        adaptation.lost(1);
      if (adaptation.due()) asked |= adaptation.decide(now, {256, 1}, i, aim, kMillisecond);
    }
    return asked;
  }
  Adaptation adaptation;
  Aim aim{1e-3, 0.5, 32};
  Nanos now = kSecond;
};

TEST_F(LowarAdaptation, AsksOnlyASenderThatHeedsRequestsAndEverMoreSeldom) {
  EXPECT_FALSE(lossy(20'000)) << "no token has come";
  say(0xABCD);
  EXPECT_FALSE(adaptation.request_due(now));
  ASSERT_TRUE(lossy(40'000));
  Nanos pause = kRequestInterval;
  for (unsigned i = 0; i < kRequestsMax; i++, now += pause, pause *= 2) {
    ASSERT_TRUE(adaptation.request_due(now));
    const auto request = adaptation.next_request(now);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->token, 0xABCDu);
    EXPECT_EQ(request->serial, 1u);
    EXPECT_LT(request->coding.r, 256u);
    EXPECT_FALSE(adaptation.request_due(now + pause - 1));
  }
  ASSERT_TRUE(adaptation.request_due(now));
  EXPECT_FALSE(adaptation.next_request(now)) << "not for ever";
  EXPECT_FALSE(adaptation.request_due(now + kSecond));
}

TEST_F(LowarAdaptation, ARequestEndsWhenTheSenderHasHeededItOrIsAnotherOne) {
  say(0xABCD);
  ASSERT_TRUE(lossy(40'000));
  say(0xABCD, 0);
  EXPECT_TRUE(adaptation.request_due(now)) << "sent before the request came";
  say(0xABCD, 1);
  EXPECT_FALSE(adaptation.request_due(now));
  now += kSecond;
  ASSERT_TRUE(lossy(80'000));
  EXPECT_EQ(adaptation.next_request(now)->serial, 2u);
  say(0x1234, 7);
  EXPECT_FALSE(adaptation.request_due(now + kSecond)) << "it has been restarted";
  NegotiationHeader old;
  old.token = 0x1234, old.serial = 6;
  EXPECT_FALSE(adaptation.learn(old)) << "says nothing of the setting";
}

}  // namespace
}  // namespace lowar_block_decoder_test
}  // namespace rocebox::lowar
