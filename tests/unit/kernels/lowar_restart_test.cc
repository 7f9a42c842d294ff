// SPDX-License-Identifier: BSD-3-Clause
// The decoder where a sequence begins anew: restarts of either end, other (r, c), retransmissions.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using LowarRestart = TwentyPackets;

TEST_F(LowarRestart, ADecoderStartedInMidStreamRepairsFromTheNextBlockOn) {
  for (std::size_t start = 1; start < crossings.size(); start++) {
    for (std::uint32_t psn = 109; psn < 120; psn++) {
      const std::size_t lost = at_psn(crossings, psn);
      if (lost < start + 10) continue;
      Gateway fresh(coding(8, 1));
      std::vector<Crossing> link(crossings.begin() + static_cast<std::ptrdiff_t>(start), crossings.end());
      const std::vector<Frame> wanted = data_frames(link);
      link.erase(link.begin() + static_cast<std::ptrdiff_t>(lost - start));
      ASSERT_EQ(fresh.decode(link), wanted) << "from " << start << " without " << psn;
    }
  }
}

TEST_F(LowarRestart, AnEncoderStartedInMidStreamIsFollowed) {
  const std::vector<Frame> message = sender.write(40, 256);
  const std::vector<Frame> before(message.begin(), message.begin() + 13), after(message.begin() + 13, message.end());
  for (std::size_t lost = 0; lost < after.size(); lost++) {
    Gateway first(coding(8, 1)), second(coding(8, 1)), fresh(coding(8, 1));
    std::vector<Crossing> link = first.encode(before);
    const std::vector<Crossing> rest = second.encode(after);
    const auto places = data_of(rest);
    for (std::size_t i = 0; i < rest.size(); i++)
      if (i != places[lost]) link.push_back(rest[i]);
    ASSERT_EQ(fresh.decode(link), message) << lost;
  }
}

TEST_F(LowarRestart, ADifferentCodingIsLearnedFromTheFirstRepairPacket) {
  for (auto [r, c] : {std::pair{4, 1}, {16, 1}, {8, 4}, {12, 3}}) {
    for (std::uint32_t psn = 140; psn < 172; psn++) {
      Gateway sends(coding(r, c)), receives(coding(8, 1));
      Sender from{120};
      std::vector<Frame> frames = from.write(16, 256);
      append(frames, from.write(36, 256));
      std::vector<Crossing> link = sends.encode(frames);
      link.erase(link.begin());  // nor is it announced
      link.erase(link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, psn)));
      ASSERT_EQ(receives.decode(link), frames) << r << "," << c << " without " << psn;
    }
  }
}

TEST_F(LowarRestart, ARetransmissionIsProtectedAgain) {
  // Two losses in a block; the host goes back to the first of them, and then one more is lost.
  const std::vector<Frame> message = sender.write(60, 256);
  std::vector<Frame> again(message.begin() + 20, message.end());
  std::vector<Crossing> first = near.encode(std::vector<Frame>(message.begin(), message.begin() + 40));
  std::set<std::size_t> lost = {at_psn(first, 140), at_psn(first, 142)};
  (void)far.decode(without(crossings, {}));
  const std::vector<Frame> got = far.decode(without(first, lost));
  EXPECT_EQ(got.size(), 38u);
  std::vector<Crossing> second = near.encode(again);
  const std::size_t once_more = at_psn(second, 120 + 20 + 25);
  std::vector<Frame> rest = far.decode(without(second, {once_more}));
  EXPECT_EQ(rest, again);
  EXPECT_EQ(far.count("decode_recovered"), 1u);
  EXPECT_EQ(far.count("decode_restarts"), 1u);
}

TEST_F(LowarRestart, WithoutAGatewayAtTheFarEndOneLossIsWaitedForOnce) {
  Sender from{0};
  std::vector<Crossing> link;
  for (const Frame& frame : from.write(100, 256)) link.push_back({frame, true, {}, 0});
  link.erase(link.begin() + 50);
  link.erase(link.begin() + 20);
  std::vector<Frame> wanted;
  for (const Crossing& crossing : link) wanted.push_back(crossing.bytes);
  EXPECT_EQ(far.decode(link), wanted);
  EXPECT_EQ(far.count("decode_released"), 1u);
}

TEST(LowarSequence, WhoseFirstPacketIsOvertakenByItsBlockHasAllItsShares) {
  Gateway near(coding(8, 4)), far(coding(8, 4));
  Sender sender{100};
  const std::vector<Frame> message = sender.write(20, 256), again(message.begin() + 3, message.end());
  far.decode(near.encode({message.begin(), message.begin() + 12}), false);
  const std::vector<Crossing> second = near.encode(again);
  const std::vector<Crossing> link = overtaken(second, {at_psn(second, 103)}, repair_of(second, 103, 0));
  EXPECT_EQ(far.decode(without(link, {at_psn(link, 107)})), again);
}

TEST(LowarSequence, WhoseAnnouncementAndFirstPacketAreLostHasAllItsShares) {
  for (const std::uint32_t other : {111, 112, 113, 115, 116, 117}) {  // 114 is of the first packet's share
    Gateway near(coding(8, 4)), far(coding(8, 4));
    Sender sender{100};
    const std::vector<Frame> message = sender.write(20, 256), rest(message.begin() + 10, message.end());
    far.decode(near.encode({message.begin(), message.begin() + 5}), false);
    const std::vector<Crossing> link = near.encode(rest);  // five packets never came to the gateway
    EXPECT_EQ(far.decode(without(link, {0, at_psn(link, 110), at_psn(link, other)})), rest) << other;
  }
}

}  // namespace
}  // namespace rocebox::lowar
