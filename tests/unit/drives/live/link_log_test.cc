// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/link_log.h"

#include <gtest/gtest.h>

namespace rocebox {
namespace {

std::string after(LinkLog& log, LinkState state, Nanos now) {
  log.see(state);
  return log.line(now);
}

TEST(LinkLog, SaysEachChangeOnce) {
  LinkLog log(WhenGone::kTakenUp);
  EXPECT_EQ(after(log, LinkState::kUp, 0), "") << "as it should be";
  EXPECT_EQ(after(log, LinkState::kDown, 1), "its link is down");
  EXPECT_EQ(after(log, LinkState::kDown, 2), "");
  EXPECT_EQ(after(log, LinkState::kUp, 3), "its link is up");
  EXPECT_EQ(after(log, LinkState::kUp, 100 * kSecond), "");
  EXPECT_EQ(log.down_events(), 1u);
}

TEST(LinkLog, SaysThatALinkIsDownFromTheStartAndCountsNoChange) {
  LinkLog log(WhenGone::kTakenUp);
  EXPECT_EQ(after(log, LinkState::kDown, 0), "its link is down");
  EXPECT_EQ(after(log, LinkState::kUp, 1), "its link is up");
  EXPECT_EQ(log.down_events(), 0u);
}

TEST(LinkLog, AnInterfaceGoesAndComes) {
  LinkLog log(WhenGone::kTakenUp);
  log.see(LinkState::kUp);
  EXPECT_EQ(after(log, LinkState::kGone, 1),
            "its interface is gone; it is taken up again when one of that name is there");
  EXPECT_EQ(after(log, LinkState::kDown, 2), "its interface is there again, and its link is down");
  EXPECT_EQ(after(log, LinkState::kUp, 3), "its link is up");
  EXPECT_EQ(log.down_events(), 1u);
  log.see(LinkState::kGone);
  EXPECT_EQ(after(log, LinkState::kUp, 4),
            "its interface is there again, and its link is up; it went down 1 time meanwhile")
      << "between two looks";
}

TEST(LinkLog, WhatWasMadeForTheRunDoesNotComeBack) {
  LinkLog log(WhenGone::kStays);
  EXPECT_NE(after(log, LinkState::kGone, 0).find("start the run again"), std::string::npos);
}

TEST(LinkLog, WhereTheRunEndsNothingIsTakenUpAgain) {
  LinkLog log(WhenGone::kRunEnds);
  EXPECT_EQ(after(log, LinkState::kDown, 0), "its link is down") << "that is no end";
  EXPECT_EQ(after(log, LinkState::kGone, 1), "its interface is gone: what is held leaves, and the run ends");
}

TEST(LinkLog, ALinkThatFlapsForEverIsSaidNowAndThenAndCountedWhole) {
  LinkLog log(WhenGone::kTakenUp);
  log.see(LinkState::kUp);
  constexpr Nanos kEvery = 10 * kMillisecond, kWhole = 1000 * kSecond;
  std::uint64_t lines = 0, downs = 0;
  std::string last;
  for (Nanos now = 0; now < kWhole; now += kEvery) {
    const bool down = (now / kEvery) % 2 == 0;
    downs += down;
    const std::string line = after(log, down ? LinkState::kDown : LinkState::kUp, now);
    if (!line.empty()) last = line;
    lines += !line.empty();
  }
  EXPECT_EQ(log.down_events(), downs);
  EXPECT_GE(lines, static_cast<std::uint64_t>(kWhole / LinkLog::kPerLine));
  EXPECT_LE(lines, static_cast<std::uint64_t>(kWhole / LinkLog::kPerLine) + LinkLog::kLinesAtOnce);
  EXPECT_NE(last.find("times meanwhile"), std::string::npos) << last;
}

TEST(LinkLog, TheLastStateOfALinkThatFlappedIsSaidInTheEnd) {
  LinkLog log(WhenGone::kTakenUp);
  log.see(LinkState::kUp);
  for (int i = 0; i < 10; i++) {
    after(log, LinkState::kDown, 0);
    after(log, LinkState::kUp, 0);
  }
  EXPECT_EQ(after(log, LinkState::kDown, 1), "") << "too many";
  EXPECT_EQ(log.line(LinkLog::kPerLine).substr(0, 16), "its link is down");
  EXPECT_EQ(log.line(100 * LinkLog::kPerLine), "");
}

}  // namespace
}  // namespace rocebox
