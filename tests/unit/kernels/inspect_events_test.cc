// SPDX-License-Identifier: BSD-3-Clause
// The list of what happened to a flow's PSNs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "kernels/inspect/event_log.h"

namespace rocebox::inspect {
namespace {

struct Log {
  void add(EventKind kind, std::uint32_t psn, std::uint32_t count = 1, Nanos at = 0) {
    log.add(events.data(), capacity, {at, psn & roce::kPsnMask, count, kind, PsnSpace::kRequests, 0});
  }
  void found(std::uint32_t psn, std::uint32_t count = 1) {
    log.found(events.data(), capacity, PsnSpace::kRequests, psn & roce::kPsnMask, count);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> rows;
    for (std::uint32_t i = 0; i < log.size; i++) rows.emplace_back(events[i].psn, events[i].count);
    return rows;
  }
  std::uint32_t capacity = 4;
  EventLog log;
  std::array<Event, 64> events{};
};
using Rows = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(InspectEvents, WhatGoesOnIsOneEvent) {
  Log log;
  log.add(EventKind::kRetransmitted, roce::kPsnMask, 1, 5);
  log.add(EventKind::kRetransmitted, 0, 1, 6);
  log.add(EventKind::kRetransmitted, 1, 3, 7);
  log.add(EventKind::kRetransmitted, 5);
  log.add(EventKind::kNak, 6);
  log.add(EventKind::kNak, 7);
  EXPECT_EQ(log.all(), (Rows{{roce::kPsnMask, 5}, {5, 1}, {6, 1}, {7, 1}}));
  EXPECT_EQ(log.events[0].at, 5) << "when it began";
  log.add(EventKind::kLost, 20);
  EXPECT_EQ(log.log.unlisted, 1u);
}

TEST(InspectEvents, OnceFullNothingIsListedBehindAGap) {
  Log log;
  for (std::uint32_t psn = 0; psn < 10; psn += 2) log.add(EventKind::kLost, psn);
  log.found(0);
  log.add(EventKind::kLost, 20);
  EXPECT_EQ(log.all(), (Rows{{2, 1}, {4, 1}, {6, 1}}));
  EXPECT_EQ(log.log.unlisted, 2u);
}

TEST(InspectEvents, WhatWasOvertakenIsNotLost) {
  const std::uint32_t wrap = roce::kPsnMask - 1;
  struct {
    const char* title;
    std::uint32_t psn, count;
    Rows rest;
  } const cases[] = {{"the first", wrap, 1, {{wrap + 1, 4}}},
                     {"the last", wrap + 4, 1, {{wrap, 4}}},
                     {"in the middle", wrap + 2, 1, {{wrap, 2}, {1, 2}}},
                     {"all", wrap, 5, {}},
                     {"more than all", wrap - 3, 20, {}},
                     {"none", wrap + 5, 1, {{wrap, 5}}}};
  for (const auto& c : cases) {
    Log log;
    log.add(EventKind::kLost, wrap, 5);
    log.found(c.psn, c.count);
    EXPECT_EQ(log.all(), c.rest) << c.title;
  }
}

TEST(InspectEvents, NoCapacityListsNothing) {
  Log log;
  log.capacity = 0;
  log.add(EventKind::kLost, 1);
  log.found(1);
  EXPECT_EQ(log.log.size, 0u);
  EXPECT_EQ(log.log.unlisted, 1u);
}

TEST(InspectEvents, LostPsnsAgreeWithAMapOfAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; round++) {
    Log log;
    log.capacity = 64;
    std::map<std::uint32_t, bool> lost;
    std::uint32_t psn = 0;
    for (int i = 0; i < 8; i++) {
      const auto count = static_cast<std::uint32_t>(1 + random() % 5);
      psn += static_cast<std::uint32_t>(1 + random() % 3);
      log.add(EventKind::kLost, psn, count);
      for (std::uint32_t each = 0; each < count; each++) lost[psn++] = true;
    }
    for (int i = 0; i < 12; i++) {
      const auto from = static_cast<std::uint32_t>(random() % psn),
                 count = static_cast<std::uint32_t>(1 + random() % 4);
      log.found(from, count);
      for (std::uint32_t each = from; each < from + count; each++) lost.erase(each);
    }
    std::map<std::uint32_t, bool> listed;
    for (const auto& [first, count] : log.all())
      for (std::uint32_t each = 0; each < count; each++) EXPECT_TRUE(listed.emplace(first + each, true).second);
    ASSERT_EQ(listed, lost) << round;
  }
}

}  // namespace
}  // namespace rocebox::inspect
