// SPDX-License-Identifier: BSD-3-Clause
// Bursts at the ends of blocks, and retransmissions from any place of a message, with losses.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_patterns.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

std::string words(int r, int c, std::size_t start, std::size_t length) {
  return "(" + std::to_string(r) + "," + std::to_string(c) + ") lost " + std::to_string(length) + " from " +
         std::to_string(start);
}

// Two messages whose blocks have k packets beyond a multiple of c, behind and before whole ones.
std::vector<Frame> ragged(Sender& sender, unsigned r, unsigned k) {
  std::vector<Frame> frames = sender.write(r + k, 64);
  append(frames, sender.write(k, 64));
  append(frames, sender.write(r, 64));
  return frames;
}

// Where a block has k packets beyond a multiple of c, its last packet is of share k - 1, and the repair packets behind
// it begin with share 0: so k in a row are repaired there, and more than k, up to c, that reach from the data into the
// repair packets hit a share twice. Where c divides the packets, c in a row are repaired wherever they are.
TEST(LowarBursts, AcrossTheEndOfABlockOfAnyLength) {
  for (const auto& rc : {std::pair{8u, 4u}, {9u, 4u}, {10u, 4u}, {11u, 4u}, {7u, 3u}, {8u, 3u}, {5u, 5u}}) {
    const unsigned r = rc.first, c = rc.second;
    for (unsigned k = 1; k <= c; k++) {
      Patterns patterns(coding(r, c));
      const unsigned safe = r % c ? std::min(r % c, k) : k;  // k == c is none beyond
      const auto send = [r, k](Sender& sender) { return ragged(sender, r, k); };
      const std::size_t crossings = patterns.coded(send).crossings.size();
      unsigned beyond = 0;
      for (unsigned length = 1; length <= c + 1; length++) {
        for (std::size_t start = 1; start + length <= crossings; start++) {
          const Coded coded = patterns.coded(send);
          const bool whole = patterns.check(coded, burst(start, length), words(r, c, start, length));
          if (length <= safe) {
            EXPECT_TRUE(whole) << words(r, c, start, length) << " k " << k;
          }
          beyond += length <= c && !whole;
          if (testing::Test::HasFailure()) return;
        }
      }
      EXPECT_EQ(beyond == 0, safe == c) << r << "," << c << " k " << k;
    }
  }
}

// The example of the README: of 9 packets with c = 4 the last is of share 0, as the first repair packet is.
TEST(LowarBursts, OfNinePacketsWithFourRepairPacketsTheLastMustNotBeLostWithTheFirstRepairPacket) {
  Patterns patterns(coding(9, 4));
  const auto send = [](Sender& sender) { return sender.write(9, 64); };
  const auto repaired = [&](std::set<std::size_t> lost) { return patterns.check(patterns.coded(send), lost, "nine"); };
  // Crossings: 0 the announcement, 1 to 9 the data packets, 10 to 13 the repair packets.
  EXPECT_FALSE(repaired({9, 10}));
  EXPECT_TRUE(repaired({9, 11}));
  EXPECT_TRUE(repaired({8, 9}));
  EXPECT_FALSE(repaired({8, 9, 10}));
  EXPECT_TRUE(repaired({6, 7, 8, 9})) << "shares 1, 2, 3, 0";
  EXPECT_TRUE(repaired({10, 11, 12, 13}));
}

// A message of which `came` packets are sent, and then all from `again` on, in other datagrams; behind it another
// message.
std::vector<Frame> going_back(Sender& sender, unsigned packets, unsigned came, unsigned again) {
  Sender twin = sender;
  twin.identification = 1000;
  const std::vector<Frame> first = sender.write(packets, 40), second = twin.write(packets, 40);
  std::vector<Frame> frames(first.begin(), first.begin() + came);
  frames.insert(frames.end(), second.begin() + again, second.end());
  append(frames, sender.write(2, 40));
  return frames;
}

TEST(LowarBursts, ARetransmissionFromAnyPlaceIsRepairedFromItsFirstPacketOn) {
  for (auto [r, c] : {std::pair{4, 1}, {4, 2}}) {
    Patterns patterns(coding(r, c));
    unsigned repaired = 0, patterns_tried = 0;
    for (unsigned came = 1; came <= 10; came++) {
      for (unsigned again = 0; again < came; again++) {
        const auto send = [=](Sender& sender) { return going_back(sender, 10, came, again); };
        const std::size_t crossings = patterns.coded(send).crossings.size();
        for (std::size_t lost = 0; lost < crossings; lost++, patterns_tried++)
          repaired += patterns.check(
              patterns.coded(send), {lost},
              words(r, c, lost, 1) + " of " + std::to_string(came) + " then from " + std::to_string(again));
        if (testing::Test::HasFailure()) return;
      }
    }
    EXPECT_EQ(repaired, patterns_tried) << "one loss always";
  }
}

TEST(LowarBursts, ARetransmissionFromAnyPlaceWithTwoLosses) {
  Patterns patterns(coding(4, 2));
  unsigned repaired = 0;
  for (unsigned came = 1; came <= 6; came++) {
    for (unsigned again = 0; again < came; again++) {
      const auto send = [=](Sender& sender) { return going_back(sender, 6, came, again); };
      const std::size_t crossings = patterns.coded(send).crossings.size();
      for (std::size_t i = 0; i < crossings; i++)
        for (std::size_t j = i + 1; j < crossings; j++)
          repaired += patterns.check(patterns.coded(send), {i, j},
                                     "lost " + std::to_string(i) + " and " + std::to_string(j) + " of " +
                                         std::to_string(came) + " then from " + std::to_string(again));
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(repaired, 1000u);
  EXPECT_GT(patterns.recovered(), repaired);
}

}  // namespace
}  // namespace rocebox::lowar
