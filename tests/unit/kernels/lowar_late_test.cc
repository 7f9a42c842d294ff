// SPDX-License-Identifier: BSD-3-Clause
// What a packet that comes late or twice costs those behind it, and whether the host gets anything twice of it.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

std::vector<Frame> part(const std::vector<Frame>& frames, std::size_t from, std::size_t to) {
  return {frames.begin() + static_cast<std::ptrdiff_t>(from), frames.begin() + static_cast<std::ptrdiff_t>(to)};
}
// The place of the announcement, which goes ahead of the first data packet.
std::size_t announcement(const std::vector<Crossing>& crossings) {
  for (std::size_t i = 0; i < crossings.size() && !crossings[i].data; i++)
    if (!crossings[i].repair) return i;
  ADD_FAILURE() << "nothing is announced";
  return 0;
}

// One packet comes 15 ms late, after it was rebuilt, or twice; 25 ms later the host goes back, and one packet more is
// lost of the first block. `between`: packets that come meanwhile.
void go_back_behind(bool doubled, unsigned between) {
  constexpr std::uint32_t kOld = 50;
  for (const std::uint32_t back_to : {40u, 49u, 50u}) {
    for (std::uint32_t lost = back_to; lost < back_to + 32; lost++) {
      // Nothing tells the packet that came late from the one with which the host begins anew.
      if (back_to == kOld && lost == kOld && !between) continue;
      Gateway near(coding(32, 8)), far(coding(32, 8));
      Sender sender;
      const std::vector<Frame> message = sender.write(300, 256);
      const std::vector<Crossing> first = near.encode(part(message, 0, 150));
      const std::vector<Crossing> more = near.encode(part(message, 150, 150 + between));
      const std::vector<Crossing> again = near.encode(part(message, back_to, 300));
      (void)announcement(again);
      const Crossing& old = first[at_psn(first, kOld)];
      ASSERT_EQ(far.decode(doubled ? first : without(first, {at_psn(first, kOld)}), false), part(message, 0, 150));
      far.clock += 15 * kMillisecond;
      ASSERT_EQ(far.decode({old}, false), (std::vector<Frame>{old.bytes}));
      ASSERT_EQ(far.decode(more, false), part(message, 150, 150 + between));
      far.clock += 25 * kMillisecond;
      ASSERT_EQ(far.decode(without(again, {at_psn(again, lost)})), part(message, back_to, 300))
          << "back to " << back_to << ", without " << lost;
      ASSERT_EQ(far.count("decode_recovered"), doubled ? 1u : 2u);
    }
  }
}

TEST(LowarLate, AnOldPacketDoesNotCostTheNextRetransmission) {
  for (const bool doubled : {false, true})
    for (const unsigned between : {0u, 1u, 40u}) {
      go_back_behind(doubled, between);
      if (testing::Test::HasFatalFailure()) FAIL() << doubled << ", " << between << " between";
    }
}

// Old packets that are far apart are none, though their PSNs follow each other.
TEST(LowarLate, OldPacketsWithManyOthersBetweenThemAreNoRetransmission) {
  Gateway near(coding(8, 1)), far(coding(8, 1));
  Sender sender;
  const std::vector<Crossing> all = near.encode(sender.write(400, 256));
  std::vector<Crossing> link = all;
  for (const unsigned number : {2u, 1u, 0u}) {  // 20, 21 and 22 come again, behind 100, 200 and 300
    const std::size_t behind = at_psn(all, 100 + 100 * number) + 1;
    link.insert(link.begin() + static_cast<std::ptrdiff_t>(behind), all[at_psn(all, 20 + number)]);
  }
  EXPECT_EQ(far.decode(link), data_frames(link));
  EXPECT_EQ(far.count("decode_old"), 3u);
  EXPECT_EQ(far.count("decode_restarts"), 0u);
}

// The host goes back to the same PSN once more, a few packets later. The first time was not announced: that is lost.
TEST(LowarLate, ASecondRetransmissionFromTheSamePsnIsProtected) {
  for (const std::uint32_t packets : {3u, 4u, 8u, 12u, 18u, 19u, 20u})
    for (std::uint32_t lost = 20; lost < 28; lost++) {
      Gateway near(coding(8, 1)), far(coding(8, 1));
      Sender sender;
      const std::vector<Frame> message = sender.write(80, 256);
      (void)far.decode(near.encode(part(message, 0, 40)));
      const std::vector<Crossing> first = near.encode(part(message, 20, 20 + packets));
      const std::vector<Crossing> second = near.encode(part(message, 20, 80));
      (void)far.decode(without(first, {announcement(first)}));
      (void)announcement(second);
      ASSERT_EQ(far.decode(without(second, {at_psn(second, lost)})), part(message, 20, 80)) << packets << ", " << lost;
      ASSERT_EQ(far.count("decode_recovered"), 1u);
    }
}

// The same at a stream's beginning.
TEST(LowarLate, ASecondBeginningOfAStreamIsProtected) {
  for (const std::uint32_t packets : {1u, 2u, 7u, 18u})
    for (std::uint32_t lost = 0; lost < 8; lost++) {
      Gateway near(coding(8, 1)), far(coding(8, 1));
      Sender sender;
      const std::vector<Frame> message = sender.write(60, 256);
      const std::vector<Crossing> first = near.encode(part(message, 0, packets));
      const std::vector<Crossing> second = near.encode(message);
      (void)far.decode(without(first, {announcement(first)}));
      (void)announcement(second);
      ASSERT_EQ(far.decode(without(second, {at_psn(second, lost)})), message) << packets << ", " << lost;
    }
}

// UC sends nothing again: what comes again is the original of a rebuilt packet.
TEST(LowarLate, UcGetsNothingTwiceHoweverLateTheOriginalIs) {
  for (const Nanos late : {50 * kMicrosecond, 15 * kMillisecond, 900 * kMillisecond})
    for (const bool uc : {true, false}) {
      Gateway near(coding(8, 1)), far(coding(8, 1));
      Sender sender;
      const std::vector<Frame> frames = uc ? sender.uc_send_imm(80, 256) : sender.write(80, 256);
      const std::vector<Crossing> all = near.encode(frames);
      const Crossing& original = all[at_psn(all, 53)];  // the distances before it say how long to wait
      ASSERT_EQ(far.decode(without(all, {at_psn(all, 53)}), false), frames);
      far.clock += late;
      ASSERT_EQ(far.decode({original}, false).size(), uc ? 0u : 1u) << "RC: it may be sent again";
      EXPECT_EQ(far.count("drop_late"), uc ? 1u : 0u);
      ASSERT_EQ(far.decode({original}).size(), 1u) << "the link has doubled it";
    }
}

// Nor where the sequence went back meanwhile: packets have overtaken each other before they came to the near gateway.
TEST(LowarLate, UcGetsNothingTwiceWhereItsSequenceWentBack) {
  Sender sender;
  std::vector<Frame> frames;
  for (unsigned i = 0; i < 16; i++) append(frames, sender.uc_send_imm(1, 100));
  std::swap(frames[6], frames[7]);
  Gateway near(coding(8, 1));
  const std::vector<Crossing> all = near.encode(frames);
  EXPECT_EQ(near.count("encode_announcements"), 4u);
  for (std::uint32_t late = 4; late < 9; late++)
    for (std::uint32_t behind = late == 7 ? 6 : late + 1; behind < 16; behind++) {
      if (behind == 7 && late == 6) continue;
      Gateway far(coding(8, 1));
      const std::vector<Frame> got = far.decode(overtaken(all, {at_psn(all, late)}, at_psn(all, behind)));
      ASSERT_EQ(got.size(), frames.size()) << late << " behind " << behind;
      ASSERT_EQ(without_copies(got).size(), frames.size()) << late << " behind " << behind;
    }
}

// Nor where it is not coded any more.
TEST(LowarLate, UcGetsNothingTwiceWhereCodingHasEnded) {
  Config config = coding(8, 1);
  config.adapt = true;
  Gateway near(config), far(config);
  Sender sender{100};
  const std::vector<Crossing> all = near.encode(sender.uc_send_imm(32, 256));
  const std::size_t late = at_psn(all, 113);
  (void)far.decode(without(all, {late}), false);
  ASSERT_EQ(far.count("decode_recovered"), 1u);
  const Crossing status = forged(all[0], [](Frame& frame) {
    frame[kHeader + 6] = frame[kHeader + 7] = frame[kHeader + 8] = 0;
    frame[kHeader + 11] = 132;
    frame[kHeader + 12] = static_cast<std::uint8_t>(NegotiationKind::kStatus);
    frame[kHeader + 15] = 1;   // serial number
    frame[kHeader + 17] = 32;  // sent
  });
  const std::vector<Frame> next = sender.uc_send_imm(3, 256);
  const std::vector<Crossing> link = {status, {next[0], true, {}, 0}, all[late], {next[1], true, {}, 0}};
  EXPECT_EQ(far.decode(link), part(next, 0, 2));
  EXPECT_EQ(far.count("drop_late"), 1u);
}

// Nor where the packet that it waited behind was given up by time, long before the original comes.
TEST(LowarLate, UcGetsNothingTwiceAfterTheTimeWasUp) {
  for (const bool uc : {true, false}) {
    Gateway near(coding(8, 2)), far(coding(8, 2));
    Sender sender;
    const std::vector<Frame> frames = uc ? sender.uc_send_imm(16, 256) : sender.write(16, 256);
    const std::vector<Crossing> all = near.encode(frames);
    const Crossing& original = all[at_psn(all, 5)];
    const std::vector<Crossing> link = without(all, {at_psn(all, 2), repair_of(all, 0, 0), at_psn(all, 5)});
    ASSERT_EQ(far.decode(link, false), part(frames, 0, 2));
    far.clock += 20 * kMillisecond;
    std::vector<Frame> wanted = part(frames, 3, 16);
    if (!uc) wanted.push_back(original.bytes);  // it may be sent again
    ASSERT_EQ(far.decode({original}), wanted);
    EXPECT_EQ(far.count("decode_recovered"), 1u);
    EXPECT_EQ(far.count("decode_released_timeout"), 1u);
    EXPECT_EQ(far.count("drop_late"), uc ? 1u : 0u);
    EXPECT_EQ(far.count("decode_restarts"), 0u);
  }
}

// A UC connection begins anew within a second, with the same packets: these are not late, and another one of the block
// may be lost. A way back that overtaking before the near gateway may have made is none of that.
TEST(LowarLate, WhatAUcConnectionSendsWhenItBeginsAnewIsNotLate) {
  for (const std::uint32_t back_to : {0u, 8u, 23u, 24u}) {
    const bool anew = back_to < 24;
    for (std::uint32_t lost = 24; lost < 32; lost++) {
      Gateway near(coding(8, 1)), far(coding(8, 1));
      Sender sender;
      const std::vector<Frame> frames = sender.uc_send_imm(80, 256), again = part(frames, back_to, 80);
      const std::vector<Crossing> first = near.encode(part(frames, 0, 40));
      ASSERT_EQ(far.decode(without(first, {at_psn(first, 29)}), false), part(frames, 0, 40));
      const std::vector<Crossing> second = near.encode(again);
      const std::vector<Frame> got = far.decode(without(second, {at_psn(second, lost)}));
      const bool all_came = anew || lost == 29;
      ASSERT_EQ(got.size(), again.size() - (all_came ? 0 : 2)) << "back to " << back_to << ", without " << lost;
      ASSERT_EQ(got == again, all_came) << "back to " << back_to << ", without " << lost;
      ASSERT_EQ(far.count("drop_late"), all_came ? 0u : 1u) << "back to " << back_to << ", without " << lost;
    }
  }
}

// The first packets of a stream are lost, and its announcement comes behind the first that is not: what was handed over
// is not rebuilt behind that.
TEST(LowarLate, AFirstAnnouncementThatIsOvertakenBringsNothingBack) {
  for (const bool responses : {false, true})
    for (std::uint32_t first = 0; first < 9; first++)
      for (const std::uint32_t reorder : {0u, 16u}) {
        Config config = coding(1, 1);
        config.reorder = reorder;
        Gateway near(config), far(config);
        Sender sender;
        const std::vector<Crossing> all = near.encode(responses ? sender.read_response(10) : sender.write(10));
        ASSERT_FALSE(all[0].data) << "it is announced";
        std::vector<Crossing> link = {all[at_psn(all, first)], all[0], all[repair_of(all, first)]};
        for (std::size_t i = at_psn(all, first + 1); i < all.size(); i++) link.push_back(all[i]);
        link.push_back(all[repair_of(all, 0)]);
        ASSERT_EQ(far.decode(link), data_frames(link)) << first << ", " << responses << ", " << reorder;
      }
}

}  // namespace
}  // namespace rocebox::lowar
