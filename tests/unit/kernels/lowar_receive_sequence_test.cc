// SPDX-License-Identifier: BSD-3-Clause
// The receiver's sequence of PSNs alone: what a packet is by its PSN, and the count beside the sender's.
#include <gtest/gtest.h>

#include "kernels/lowar/receive_sequence.h"
#include "tests/unit/kernels/lowar_packets.h"

namespace rocebox::lowar {
namespace lowar_receive_sequence_test {
namespace {

using Duplicate = ReceiveSequence::Duplicate;
constexpr std::uint32_t kReorder = 4;

class LowarReceiveSequence : public testing::Test {
 protected:
  LowarReceiveSequence() { sequence.begin(100, false); }
  // Packets of a WRITE from the expected PSN on.
  void advance(unsigned packets) {
    for (; packets > 0; packets--) {
      sequence.count_arrival();
      const std::uint32_t psn = sequence.expected();
      sequence.advance(*made.middle(psn), psn);
    }
  }
  Duplicate duplicate(std::uint32_t psn) {
    sequence.count_arrival();
    return sequence.note_duplicate(psn, kReorder);
  }
  static NegotiationHeader negotiation(std::uint32_t psn, std::uint16_t sent) {
    NegotiationHeader header;
    header.base_psn = psn, header.sent = sent;
    return header;
  }
  kit::Packets made;
  ReceiveSequence sequence;
};

TEST_F(LowarReceiveSequence, AGapIsAllItsPsnsButBetweenReadResponses) {
  advance(3);
  EXPECT_EQ(sequence.lost_before(*made.middle(110), 110), 7u);
  EXPECT_FALSE(sequence.is_next(*made.middle(110), 110));
  ReceiveSequence responses;
  responses.begin(100, true);
  responses.advance(*made.one(IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, 100), 100);
  const PacketPtr first = made.one(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, 110);
  EXPECT_TRUE(responses.is_next(*first, 110)) << "between lie PSNs of requests";
  const PacketPtr middle = made.one(IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, 111);
  EXPECT_FALSE(responses.is_next(*middle, 111));
  EXPECT_EQ(responses.lost_before(*middle, 111), 1u);
  responses.advance(*first, 110);
  EXPECT_EQ(responses.lost_before(*made.one(IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, 115), 115), 4u) << "in a message";
}

TEST_F(LowarReceiveSequence, ThreeDuplicatesInARowAreARun) {
  sequence.restart(0xFFFFF0, kNoPsn);
  advance(0x20);  // across the wrap
  EXPECT_EQ(duplicate(0xFFFFFE), Duplicate::kSingle);
  EXPECT_EQ(duplicate(0xFFFFFF), Duplicate::kSingle);
  advance(kReorder);
  EXPECT_EQ(duplicate(0), Duplicate::kRun) << "so many packets may lie between";
  EXPECT_EQ(sequence.run_began(), 0xFFFFFEu);
  EXPECT_EQ(sequence.behind_run(0), 1u);
  EXPECT_FALSE(sequence.behind_run(1)) << "it has not come so far";
  advance(kReorder + 1);
  EXPECT_EQ(duplicate(1), Duplicate::kSingle) << "one too many";
  EXPECT_EQ(duplicate(2), Duplicate::kSingle);
  EXPECT_EQ(duplicate(2), Duplicate::kSingle) << "not the next";
}

TEST_F(LowarReceiveSequence, WhatComesOfTheLastGapWasNotLost) {
  sequence.give_up_to(110);
  sequence.give_up_to(120);  // of the same gap
  EXPECT_EQ(sequence.expected(), 120u);
  advance(5);
  for (const std::uint32_t psn : {100, 101, 102, 103, 119}) EXPECT_EQ(duplicate(psn), Duplicate::kGivenUp) << psn;
  EXPECT_EQ(duplicate(120), Duplicate::kSingle);
  sequence.give_up_to(130);  // another one
  EXPECT_EQ(duplicate(100), Duplicate::kSingle);
  EXPECT_EQ(duplicate(126), Duplicate::kGivenUp);
  sequence.restart(110, kNoPsn);
  advance(30);
  EXPECT_EQ(duplicate(126), Duplicate::kSingle) << "the host has sent it since";
}

TEST_F(LowarReceiveSequence, ARunIsNoRetransmissionWhereTheNextPacketIsTheOneExpectedBefore) {
  for (const std::uint32_t next : {50u, 54u, 55u, 49u, 13u}) {
    sequence.restart(10, kNoPsn);
    sequence.may_resume_at(50);
    sequence.resolve_run(next, kReorder);
    EXPECT_EQ(sequence.expected(), next >= 50 && next <= 50 + kReorder ? 50u : 10u) << next;
    const std::uint32_t expected = sequence.expected();
    sequence.resolve_run(50, kReorder);
    EXPECT_EQ(sequence.expected(), expected) << "only the next packet tells";
  }
}

TEST_F(LowarReceiveSequence, AnAnnouncementIsOldByTheSendersCount) {
  EXPECT_FALSE(sequence.repeats_announcement(0, 0, true)) << "the first";
  sequence.note_announcement(100, 40);
  EXPECT_TRUE(sequence.repeats_announcement(100, 40, true));
  EXPECT_TRUE(sequence.repeats_announcement(70, 39, true)) << "overtaken by that";
  EXPECT_FALSE(sequence.repeats_announcement(100, 41, true)) << "the host went back there once more";
  EXPECT_FALSE(sequence.repeats_announcement(100, 0, true)) << "an encoder that was restarted";
  EXPECT_FALSE(sequence.repeats_announcement(100, 40, false));
  sequence.note_announcement(100, 0xFFF0);
  EXPECT_FALSE(sequence.repeats_announcement(100, 3, true)) << "counts go round";
}

TEST_F(LowarReceiveSequence, AnAnnouncementIsOvertakenByAFewPacketsOnly) {
  advance(1);
  for (unsigned packets = 1; packets < 12; packets++, advance(1)) {
    const bool few = packets <= kReorder + kRetransmissionRun;
    EXPECT_EQ(sequence.has_overtaken(0, kReorder), few);
    EXPECT_EQ(sequence.was_taken_up_at(100, kReorder), few);
  }
  EXPECT_FALSE(sequence.has_overtaken(12, kReorder)) << "none came behind it";
  EXPECT_FALSE(sequence.was_taken_up_at(101, kReorder)) << "it began at another PSN";
}

TEST_F(LowarReceiveSequence, TheSendersCountTellsOfPacketsLostUnseen) {
  advance(10);
  EXPECT_EQ(sequence.reconcile(negotiation(110, 300)), 0u) << "its count is not known before";
  EXPECT_EQ(sequence.reconcile(negotiation(110, 303)), 3u);
  EXPECT_EQ(sequence.reconcile(negotiation(110, 303)), 0u) << "told already";
  EXPECT_EQ(sequence.reconcile(negotiation(109, 310)), 0u) << "it was overtaken";
  sequence.count_lost(2);
  EXPECT_EQ(sequence.reconcile(negotiation(110, 304)), 0u) << "the link has doubled one";
  RepairHeader repair;
  repair.block.base_psn = 102, repair.block.packets = 8, repair.sent = static_cast<std::uint8_t>(300);
  EXPECT_EQ(sequence.reconcile(repair), 4u) << "308 are sent, modulo 256";
  repair.sent = static_cast<std::uint8_t>(304), repair.block.packets = 7;
  EXPECT_EQ(sequence.reconcile(repair), 0u) << "the block's last packet is not the last that came";
  sequence.forget_sender_count();
  EXPECT_EQ(sequence.reconcile(negotiation(110, 400)), 0u) << "another sender";
}

}  // namespace
}  // namespace lowar_receive_sequence_test
}  // namespace rocebox::lowar
