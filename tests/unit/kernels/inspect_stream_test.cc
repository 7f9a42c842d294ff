// SPDX-License-Identifier: BSD-3-Clause
// The PSN tracker on streams by hand: what tells the classes without IDs, restarts, messages, answers, limits.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/inspect/psn_tracker.h"

namespace rocebox::inspect {
namespace {

// One stream without IDs, by hand.
struct Plain {
  explicit Plain(std::uint32_t window = 64) : tracker(window, 1'000'000, false), ring(window) {}
  PsnClass add(std::uint32_t psn, Nanos at, std::uint32_t width = 1) {
    PsnPacket p;
    p.now = at, p.psn = psn & roce::kPsnMask, p.width = width, p.read = width > 1, p.ends = true;
    p.starts = starts, p.trimmed = trimmed, p.payload = p.size = trimmed ? 0 : payload;
    return tracker.add(stream, ring.data(), evidence, p);
  }
  PsnTracker tracker;
  std::vector<PsnTracker::Entry> ring;
  PsnStream stream;
  IdEvidence evidence;
  bool starts = false, trimmed = false;
  std::uint32_t payload = 0;
};

TEST(InspectTracker, WithoutIdsAgeAndRunsTell) {
  Plain s;
  EXPECT_EQ(s.add(roce::kPsnMask, 0), PsnClass::kFirst);
  EXPECT_EQ(s.add(0, 10), PsnClass::kInOrder);
  EXPECT_EQ(s.add(5, 20), PsnClass::kInOrder);
  EXPECT_EQ(s.add(5, 30), PsnClass::kDuplicate);
  EXPECT_EQ(s.add(2, 40), PsnClass::kOutOfOrder) << "its hole is young";
  EXPECT_EQ(s.stream.lost(), 3u);
  EXPECT_EQ(s.add(1, 1'000'020), PsnClass::kRetransmission) << "its hole is 1 ms old";
  EXPECT_EQ(s.add(2, 1'000'030), PsnClass::kRetransmission) << "goes on from a retransmission";
  EXPECT_EQ(s.add(roce::kPsnMask - 3, 1'000'040), PsnClass::kRetransmission) << "as old as the stream";
  EXPECT_EQ(s.tracker.missing(s.stream), 4u) << "two below the first, and 3 and 4";
}

TEST(InspectTracker, WithoutIdsTheAskedForWasSentAgainOnce) {
  Plain s;
  for (std::uint32_t psn = 0; psn < 10; psn++) s.add(psn, psn);
  s.stream.asked_first = 5, s.stream.asked_count = 1;
  EXPECT_EQ(s.add(5, 20), PsnClass::kRetransmission);
  EXPECT_EQ(s.add(5, 21), PsnClass::kDuplicate);
}

TEST(InspectTracker, WithoutIdsAReadOfTheRestWasSentAgain) {
  Plain s;
  s.add(0, 0, 5);
  EXPECT_EQ(s.add(0, 10, 5), PsnClass::kDuplicate);
  EXPECT_EQ(s.add(2, 20, 3), PsnClass::kRetransmission) << "inside an earlier READ";
  EXPECT_EQ(s.stream.messages, 1u);
  EXPECT_EQ(s.stream.unique, 5u);
}

TEST(InspectTracker, OlderThanTheWindowAndBeyondIt) {
  Plain s;
  s.add(0, 0);
  EXPECT_EQ(s.add(65, 1), PsnClass::kInOrder) << "a gap of the window";
  EXPECT_EQ(s.stream.holes, 64u);
  EXPECT_EQ(s.add(1, 2), PsnClass::kBeyondWindow);
  EXPECT_EQ(s.add(2, 2), PsnClass::kOutOfOrder);
  EXPECT_EQ(s.add(65 + 66, 3), PsnClass::kRestart) << "a gap of the window and one";
  EXPECT_EQ(s.add(65, 4), PsnClass::kBeyondWindow);
  EXPECT_EQ(s.add(130, 5), PsnClass::kOutOfOrder);
  EXPECT_EQ(s.stream.restarts, 1u);
  EXPECT_EQ(s.stream.beyond_window, 2u);
  EXPECT_EQ(s.stream.unique_total(), 5u);
  EXPECT_EQ(s.tracker.missing(s.stream), 63u) << "before the reset; the jump itself is no loss";
}

TEST(InspectTracker, ARunBelowTheWindowIsARestart) {
  const auto begin = [](Plain& s) {
    s.starts = true;
    for (std::uint32_t psn = 1000; psn < 1200; psn++) s.add(psn, psn);
  };
  Plain s;
  begin(s);
  EXPECT_EQ(s.add(500, 1'000'000), PsnClass::kBeyondWindow);
  EXPECT_EQ(s.add(501, 1'000'010), PsnClass::kBeyondWindow);
  EXPECT_EQ(s.add(502, 1'000'020), PsnClass::kRestart);
  EXPECT_EQ(s.add(503, 1'000'030), PsnClass::kInOrder);
  EXPECT_EQ(s.stream.restarts, 1u);
  EXPECT_EQ(s.stream.beyond_window_total(), 0u);
  EXPECT_EQ(s.stream.unique_total(), 204u);
  EXPECT_EQ(s.stream.messages, 204u);
  EXPECT_EQ(s.tracker.missing(s.stream), 0u);
  EXPECT_EQ(s.stream.first, 500);

  struct {
    const char* title;
    std::vector<std::uint32_t> psns;
    std::uint64_t restarts;
  } const cases[] = {{"too short a run", {500, 501}, 0},
                     {"no run", {500, 502, 504}, 0},
                     {"the stream goes on between", {500, 501, 1200, 502}, 0},
                     {"a run after strays", {700, 500, 501, 502}, 1}};
  for (const auto& c : cases) {
    Plain t;
    begin(t);
    for (const std::uint32_t psn : c.psns) t.add(psn, 1'000'000 + psn);
    EXPECT_EQ(t.stream.restarts, c.restarts) << c.title;
    EXPECT_EQ(t.stream.unique_total() + t.stream.beyond_window_total(), 200 + c.psns.size()) << c.title;
  }

  Plain middle;
  begin(middle);
  middle.starts = false;
  for (const std::uint32_t psn : {500u, 501u, 502u}) middle.add(psn, 1'000'000);
  EXPECT_EQ(middle.stream.restarts, 0u) << "no message begins there";

  Plain waiting;
  begin(waiting);
  Histogram completion;
  waiting.tracker.acknowledge(waiting.stream, waiting.ring.data(), 1010, 2000, completion);
  for (const std::uint32_t psn : {1011u, 1012u, 1013u}) waiting.add(psn, 1'000'000);
  EXPECT_EQ(waiting.stream.restarts, 0u) << "a go-back-N over more than the window";
  EXPECT_EQ(waiting.stream.beyond_window_total(), 3u);
}

TEST(InspectTracker, WhatAResponderHereWouldCount) {
  Plain s;
  for (const std::uint32_t psn : {5u, 6u, 8u, 9u, 7u, 8u, 9u, 10u, 6u}) s.add(psn, psn);
  EXPECT_EQ(s.stream.out_of_sequence, 2u) << "8 and 9 before 7";
  EXPECT_EQ(s.stream.duplicate_requests, 1u) << "6; 8 and 9 were not accepted before";
  EXPECT_EQ(s.stream.expected, 11);
}

TEST(InspectTracker, ATrimmedPacketIsSeenButBringsNothing) {
  Plain s;
  s.starts = true, s.payload = 100;
  s.add(1, 0);
  s.trimmed = true;
  EXPECT_EQ(s.add(2, 10), PsnClass::kInOrder);
  s.trimmed = false;
  s.add(3, 20);
  EXPECT_EQ(s.tracker.missing(s.stream), 0u);
  EXPECT_EQ(s.stream.only_trimmed, 1u);
  EXPECT_EQ(s.stream.messages, 2u);
  EXPECT_EQ(s.stream.unique_payload, 200u);
  EXPECT_EQ(s.stream.sizes.count, 1u) << "the one behind it waits";
  s.add(2, 2'000'000);
  EXPECT_EQ(s.stream.retransmissions, 1u);
  EXPECT_EQ(s.stream.only_trimmed, 0u);
  EXPECT_EQ(s.stream.unique_payload, 300u);
  EXPECT_EQ(s.stream.messages, 3u);
  EXPECT_EQ(s.stream.sizes.sum, 300u);
}

TEST(InspectTracker, TimeoutsAreRetransmissionsAfterSilenceThatNothingElseExplains) {
  Plain s;
  for (std::uint32_t psn = 1; psn < 5; psn++) s.add(psn, psn);
  s.add(3, 5'000'000);
  s.add(4, 5'000'001);
  EXPECT_EQ(s.stream.timeouts_suspected, 1u) << "a run is one";
  s.stream.repeat_explained = true;
  s.add(3, 15'000'000);
  EXPECT_EQ(s.stream.timeouts_suspected, 1u) << "a NAK asked for it";
  s.add(5, 15'000'010);
  s.add(3, 15'000'020);
  EXPECT_EQ(s.stream.retransmissions, 4u);
  EXPECT_EQ(s.stream.timeouts_suspected, 1u) << "the sender was not silent";
}

TEST(InspectTracker, CompletionIsFromTheFirstPacketToTheAnswerOfTheLast) {
  Plain s;
  s.starts = true;
  Histogram completion;
  const auto acknowledge = [&](std::uint32_t psn, Nanos now) {
    s.tracker.acknowledge(s.stream, s.ring.data(), psn, now, completion);
  };
  s.add(1, 100), s.add(2, 200), s.add(3, 300, 4);
  acknowledge(2, 1000);
  EXPECT_EQ(completion.count(), 2u) << "cumulative";
  EXPECT_EQ(completion.max(), 900);
  EXPECT_EQ(completion.min(), 800);
  acknowledge(1, 1500), acknowledge(5, 2000), acknowledge(7, 2000);
  EXPECT_EQ(completion.count(), 2u) << "old; inside a READ; never sent";
  acknowledge(6, 2300);
  EXPECT_EQ(completion.count(), 3u);
  EXPECT_EQ(completion.max(), 2000);
}

TEST(InspectTracker, AReadLongerThanTheWindow) {
  Plain s;
  s.add(0, 0, 1000);
  EXPECT_EQ(s.add(1000, 1), PsnClass::kInOrder);
  EXPECT_EQ(s.stream.unique, 1001u);
  EXPECT_EQ(s.add(999, 2), PsnClass::kDuplicate);
  EXPECT_EQ(s.add(0, 3, 1000), PsnClass::kBeyondWindow);
  EXPECT_EQ(s.tracker.missing(s.stream), 0u);
}

TEST(InspectTracker, AWidenedReadKeepsItsMessage) {
  Plain s;
  s.add(7, 0);
  s.tracker.widen(s.stream, s.ring.data(), 5);
  EXPECT_EQ(s.stream.high, 11);
  EXPECT_EQ(s.stream.unique, 5u);
  EXPECT_EQ(s.add(7, 1, 5), PsnClass::kDuplicate);
  EXPECT_EQ(s.stream.messages, 1u);
}

TEST(InspectTracker, RoundTripsOnlyOfPacketsSeenOnce) {
  Plain s;
  Nanos rtt = 0;
  const auto answered = [&](std::uint32_t psn, Nanos now) {
    return s.tracker.responded(s.stream, s.ring.data(), psn, now, rtt);
  };
  EXPECT_FALSE(answered(3, 0)) << "nothing was sent";
  s.add(3, 100);
  s.add(4, 200);
  s.add(4, 300);
  EXPECT_TRUE(answered(3, 150));
  EXPECT_EQ(rtt, 50);
  EXPECT_FALSE(answered(3, 160)) << "the second answer";
  EXPECT_FALSE(answered(4, 400)) << "seen twice (Karn)";
  EXPECT_FALSE(answered(5, 400)) << "never sent";
  EXPECT_FALSE(answered(2, 400)) << "never seen";
}

}  // namespace
}  // namespace rocebox::inspect
