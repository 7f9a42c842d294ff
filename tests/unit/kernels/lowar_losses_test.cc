// SPDX-License-Identifier: BSD-3-Clause
// What the decoder takes for lost, and what only for late.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

class LowarLosses : public testing::Test {
 protected:
  Gateway near{coding(8, 1)}, far{coding(8, 1)};
  Sender sender{10};
};

TEST_F(LowarLosses, ALostLastResponseIsOneLossHoweverFarTheNextMessageIs) {
  std::vector<Frame> frames = sender.read_response(8, 256);
  sender.psn = 1000;
  append(frames, sender.read_response(8, 256));
  const std::vector<Crossing> all = near.encode(frames);
  const std::vector<Crossing> came = without(all, {at_psn(all, 17), repair_of(all, 10)});
  EXPECT_EQ(far.decode(came), data_frames(came));
  EXPECT_EQ(far.count("decode_released"), 1u);
}

TEST_F(LowarLosses, PacketsThatComeAfterTheyWereGivenUpAreNoRetransmission) {
  const std::vector<Crossing> all = near.encode(sender.write(400, 256));
  const std::set<std::size_t> late = {at_psn(all, 15), at_psn(all, 16), at_psn(all, 17)};
  EXPECT_EQ(far.decode(overtaken(all, late, at_psn(all, 310))), data_frames(overtaken(all, late, at_psn(all, 310))));
  EXPECT_EQ(far.count("decode_released"), 3u);
  EXPECT_EQ(far.count("decode_old"), 3u);
  EXPECT_EQ(far.count("decode_restarts"), 0u);
}

// Nor where they were given up in parts: the end of a block, and later the beginning of the next, of which no repair
// packet has come.
TEST_F(LowarLosses, AGapThatIsGivenUpInPartsIsOneGap) {
  const std::vector<Crossing> all = near.encode(sender.write(400, 256));
  const std::vector<Crossing> came = without(all, {repair_of(all, 18), repair_of(all, 26)});
  std::set<std::size_t> late;
  for (std::uint32_t psn = 15; psn < 21; psn++) late.insert(at_psn(came, psn));
  std::vector<Crossing> link = overtaken(came, late, at_psn(came, 310));
  const auto end_of_34 = link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, 34) + 1);
  std::vector<Frame> got = far.decode({link.begin(), end_of_34}, false);
  EXPECT_EQ(far.count("decode_released"), 3u) << "the next block may be repaired yet";
  append(got, far.decode({end_of_34, link.end()}));
  EXPECT_EQ(got, data_frames(link));
  EXPECT_EQ(far.count("decode_released"), 6u);
  EXPECT_EQ(far.count("decode_old"), 6u);
  EXPECT_EQ(far.count("decode_restarts"), 0u);
}

// Nor where more was given up since then: the sequence goes on behind them, where it was.
TEST_F(LowarLosses, OldPacketsBehindWhichTheSequenceGoesOnAreNoRetransmission) {
  const std::vector<Crossing> all = near.encode(sender.write(400, 256));
  const std::set<std::size_t> late = {at_psn(all, 15), at_psn(all, 16), at_psn(all, 17)};
  for (const std::set<std::uint32_t>& lost : {std::set<std::uint32_t>{202, 204}, {202, 204, 311}}) {
    Gateway receives(coding(8, 1));
    std::vector<Crossing> link = overtaken(all, late, at_psn(all, 310));
    for (const std::uint32_t psn : lost) link.erase(link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, psn)));
    const std::vector<Frame> got = receives.decode(link);
    EXPECT_EQ(receives.count("decode_released"), 3u + lost.size()) << "311 is lost to the mistake";
    EXPECT_EQ(got, data_frames(link));
    EXPECT_EQ(receives.count("decode_restarts"), 1u);
  }
}

// What waits goes first where what is sent again is announced. Else each repetition stands beside its first one.
TEST_F(LowarLosses, WhatIsSentAgainWhileTheFirstOnesWaitGoesBehindThemWhereItIsAnnounced) {
  const std::vector<Frame> message = sender.write(120, 256);
  const std::vector<Crossing> first = near.encode({message.begin(), message.begin() + 40});
  const std::vector<Crossing> second = near.encode({message.begin() + 26, message.end()});  // from 36 on
  ASSERT_FALSE(second[0].data || second[0].repair);
  for (const bool announced : {true, false}) {
    Gateway receives(coding(8, 1));
    std::vector<Crossing> link = without(first, {at_psn(first, 36), at_psn(first, 37), repair_of(first, 34)});
    const std::vector<Crossing> again = without(second, {at_psn(second, 36), repair_of(second, 36)});
    link.insert(link.end(), again.begin() + (announced ? 0 : 1), again.end());
    std::vector<Crossing> wanted = link;
    if (!announced)
      std::stable_sort(wanted.begin(), wanted.end(),
                       [](const Crossing& a, const Crossing& b) { return a.psn < b.psn; });
    EXPECT_EQ(receives.decode(link), data_frames(wanted)) << announced;
  }
}

// What waits is not of the retransmission, whose packets may differ: in their IP identification, which is coded, too.
TEST_F(LowarLosses, ARetransmissionFromAmidWhatWaitsIsProtected) {
  for (const std::uint32_t back_to : {36u, 37u, 39u, 40u, 45u})  // 36 and 39 are missing
    for (std::uint32_t lost = back_to; lost < back_to + 8; lost++) {
      Gateway sends(coding(8, 1)), receives(coding(8, 1));
      Sender once{10}, again{10};
      again.identification = 1000;
      const std::vector<Frame> one = once.write(40, 256), other = again.write(80, 256);
      const std::vector<Crossing> first = sends.encode({one.begin(), one.begin() + 36});
      const std::vector<Crossing> second = sends.encode({other.begin() + back_to - 10, other.end()});
      const std::vector<Crossing> came = without(first, {at_psn(first, 36), at_psn(first, 39)});
      std::vector<Frame> wanted = data_frames(came), got = receives.decode(came, false);
      append(wanted, data_frames(second));
      append(got, receives.decode(without(second, {at_psn(second, lost)})));
      EXPECT_EQ(got, wanted) << back_to << ", " << lost;
    }
}

TEST_F(LowarLosses, ARetransmissionBeginsWithWhatWasGivenUp) {
  // Its announcement is lost, and then one packet more.
  const std::vector<Frame> message = sender.write(80, 256);
  const std::vector<Crossing> first = near.encode({message.begin(), message.begin() + 48});
  const std::vector<Crossing> second = near.encode({message.begin() + 2, message.end()});
  const std::vector<Crossing> came = without(first, {at_psn(first, 12), at_psn(first, 13), at_psn(first, 14)});
  EXPECT_EQ(far.decode(came), data_frames(came));
  const std::vector<Crossing> again = without(second, {0, at_psn(second, 40)});
  ASSERT_FALSE(second[0].data || second[0].repair) << "the announcement";
  EXPECT_EQ(far.decode(again), data_frames(second));
  EXPECT_EQ(far.count("decode_restarts"), 1u);
  EXPECT_EQ(far.count("decode_recovered"), 1u);
}

// The host goes back from PSN 50 to 30, and the announcement of that is overtaken by some packets.
TEST_F(LowarLosses, ALateAnnouncementDoesNotRewindWhatHasRestarted) {
  for (const std::uint32_t packets : {1u, 2u, 3u, 4u, 10u, 16u}) {
    Gateway sends(coding(8, 1)), receives(coding(8, 1));
    Sender from{10};
    const std::vector<Frame> message = from.write(80, 256);
    const std::vector<Crossing> first = sends.encode({message.begin(), message.begin() + 40});
    const std::vector<Crossing> second = sends.encode({message.begin() + 20, message.end()});
    EXPECT_EQ(receives.decode(first), data_frames(first));
    ASSERT_FALSE(second[0].data || second[0].repair);
    const std::vector<Crossing> link = overtaken(second, {0}, at_psn(second, 29 + packets));
    EXPECT_EQ(receives.decode(without(link, {at_psn(link, 50)})), data_frames(second)) << packets;
    EXPECT_EQ(receives.count("decode_released"), 0u) << packets;
    EXPECT_EQ(receives.count("decode_restarts"), 1u) << packets;
  }
}

TEST_F(LowarLosses, ALateAnnouncementDoesNotRewindANewStream) {
  const std::vector<Crossing> all = near.encode(sender.write(40, 256));
  EXPECT_EQ(far.decode(without(overtaken(all, {0}, 4), {at_psn(all, 30)})), data_frames(all));
  EXPECT_EQ(far.count("decode_released"), 0u);
  EXPECT_EQ(far.count("decode_restarts"), 0u);
}

TEST_F(LowarLosses, WhatNeverCameToTheNearGatewayIsAnnouncedBetweenMessagesToo) {
  std::vector<Frame> frames = sender.write(4, 256);
  (void)sender.write(4, 256);
  for (unsigned i = 0; i < 8; i++) append(frames, sender.write(4, 256));
  const std::vector<Crossing> all = near.encode(frames);
  EXPECT_EQ(near.count("encode_announcements"), 2u);
  EXPECT_EQ(far.decode(all), frames);
  EXPECT_EQ(far.count("decode_held"), 0u);
  EXPECT_EQ(far.count("decode_released"), 0u) << "not lost on this link";
}

TEST_F(LowarLosses, PsnsThatAReadTakesAreNotAnnounced) {
  std::vector<Frame> frames = sender.write(4, 256);
  frames.push_back(sender.one(IBV_OPCODE_RC_RDMA_READ_REQUEST, 0, 1000));
  sender.psn += 3;
  append(frames, sender.write(4, 256));
  append(frames, sender.read_response(2));  // a stream of its own
  sender.psn += 20;
  append(frames, sender.read_response(2));
  const std::vector<Crossing> all = near.encode(frames);
  EXPECT_EQ(near.count("encode_announcements"), 2u) << "where the two streams begin";
  for (const Crossing& crossing : all)
    EXPECT_TRUE(!crossing.repair || crossing.repair->block.base_psn != 18 || !crossing.repair->block.anew);
  EXPECT_EQ(far.decode(all), frames);
}

// The same QPN, another path MTU: what a READ took by the old one says nothing of this one's.
TEST_F(LowarLosses, ThePathMtuEndsWithItsConnection) {
  for (const bool far_away : {true, false}) {
    Gateway sends(coding(8, 1)), receives(coding(8, 1));
    Sender first{100};
    std::vector<Frame> frames = first.write(3, 256);
    Sender second{far_away ? 0x800000u : 103u};
    second.mtu = 1024;
    if (!far_away) append(frames, second.write(1, 1000));  // more than the old one allowed
    frames.push_back(second.one(IBV_OPCODE_RC_RDMA_READ_REQUEST, 0, 3000));
    second.psn += 2;
    for (unsigned i = 0; i < 6; i++) append(frames, second.write(1));
    const std::vector<Crossing> all = sends.encode(frames);
    EXPECT_EQ(receives.decode(all), frames);
    EXPECT_EQ(receives.count("decode_old"), 0u) << far_away;
    EXPECT_EQ(receives.count("decode_held"), 0u) << far_away;
    EXPECT_EQ(sends.count("encode_announcements"), far_away ? 2u : 1u);
  }
}

}  // namespace
}  // namespace rocebox::lowar
