// SPDX-License-Identifier: BSD-3-Clause
// EventQueue against a sorted set; DeviceSet against one, too.
#include "runtime/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>

#include "runtime/engine/device_set.h"

namespace rocebox::event_queue_test {
namespace {

// Distances on both sides of the wheel's 33 us, and at its edges.
Nanos distance(std::mt19937_64& random) {
  constexpr Nanos kTurn = 32'768;
  switch (random() % 6) {
    case 0:
      return 0;
    case 1:
      return static_cast<Nanos>(random() % 70);
    case 2:
      return kTurn - 2 + static_cast<Nanos>(random() % 4);
    case 3:
      return static_cast<Nanos>(random() % (10 * kTurn));
    default:
      return static_cast<Nanos>(random() % kTurn);
  }
}

void run_against_model(std::uint32_t seed) {
  constexpr std::size_t kEvents = 60;
  std::mt19937_64 random(seed);
  const auto events = std::make_unique<Event[]>(kEvents);
  std::vector<Nanos> armed(kEvents, kNever);
  std::multiset<Nanos> model;
  EventQueue queue;
  Nanos now = 0;
  int taken_alone = 0;
  for (int step = 0; step < 50'000; step++) {
    const std::size_t i = random() % kEvents;
    const bool is_armed = armed[i] != kNever;
    switch (random() % 7) {
      case 0:
      case 1:
        if (is_armed) model.erase(model.find(armed[i]));
        armed[i] = now + distance(random);
        queue.arm(events[i], armed[i]);
        model.insert(armed[i]);
        break;
      case 2:
        if (is_armed) model.erase(model.find(armed[i]));
        armed[i] = kNever;
        queue.cancel(events[i]);
        break;
      case 3: {
        if (model.empty()) break;
        const Event& first = queue.pop();
        const auto which = static_cast<std::size_t>(&first - events.get());
        now = *model.begin();
        ASSERT_EQ(armed[which], now);
        ASSERT_EQ(first.at(), kNever);
        armed[which] = kNever;
        model.erase(model.begin());
        break;
      }
      case 4: {  // all that are due by a time, in which several may be
        const Nanos until =
            model.empty() ? now : *model.begin() + static_cast<Nanos>(random() % 3 ? 0 : distance(random));
        Nanos last = now;
        queue.take_due(until, [&](Event& due) {
          const auto which = static_cast<std::size_t>(&due - events.get());
          ASSERT_GE(armed[which], last);
          ASSERT_LE(armed[which], until);
          ASSERT_EQ(due.at(), kNever);
          last = armed[which];
          model.erase(model.find(last));
          armed[which] = kNever;
        });
        ASSERT_TRUE(model.empty() || *model.begin() > until);
        now = last;
        break;
      }
      case 5: {  // the only one that is due first, unless it stands in the heap
        if (model.empty()) break;
        const Nanos first = *model.begin();
        const Event* only = queue.take_only(first);
        if (!only) break;
        ASSERT_EQ(model.count(first), 1u);
        const auto which = static_cast<std::size_t>(only - events.get());
        ASSERT_EQ(armed[which], first);
        ASSERT_EQ(only->at(), kNever);
        now = first;
        armed[which] = kNever;
        model.erase(model.begin());
        taken_alone++;
        break;
      }
      case 6:  // time goes on without an event
        now = std::min(now + distance(random), model.empty() ? kNever : *model.begin());
        queue.advance(now);
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.next(), model.empty() ? kNever : *model.begin());
    ASSERT_EQ(events[i].at(), armed[i]);
  }
  EXPECT_GT(taken_alone, 100);
}

TEST(EventQueue, IsASortedSetNearAndFar) {
  for (std::uint32_t seed = 1; seed <= 8; seed++) run_against_model(seed);
}

TEST(EventQueue, LooksAheadToAllThatAreDueNext) {
  EventQueue queue;
  std::array<Event, 4> events;
  std::vector<const Event*> seen;
  EXPECT_EQ(queue.near(), nullptr);
  for (const unsigned i : {0, 2}) queue.arm(events[i], 70);
  queue.arm(events[1], 71);
  queue.arm(events[3], 1'000'000);
  for (const Event* event = queue.near(); event; event = event->behind()) seen.push_back(event);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<const Event*>{&events[0], &events[2]}));
  EXPECT_EQ(queue.size(), 4u);
}

TEST(EventQueue, WhatIsArmedForATimeThatHasGoneIsDueAtOnce) {
  EventQueue queue;
  Event first, late;
  queue.arm(first, 100);
  queue.pop();
  queue.arm(late, 40);
  EXPECT_EQ(queue.next(), 100);
  EXPECT_EQ(&queue.pop(), &late);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, GoesBackWhereItIsEmpty) {
  EventQueue queue;
  Event first, earlier;
  queue.arm(first, 100);
  queue.pop();
  queue.go_back(40);
  queue.arm(first, 60);
  queue.arm(earlier, 39);
  EXPECT_EQ(queue.next(), 40);
  EXPECT_EQ(&queue.pop(), &earlier);
  EXPECT_EQ(queue.next(), 60);
}

TEST(DeviceSet, GivesAllFromTheLowestToTheHighest) {
  std::mt19937_64 random(3);
  DeviceSet set;
  set.resize(20'000);
  std::set<unsigned> model;
  for (int step = 0; step < 20'000; step++) {
    if (random() % 30 || model.empty()) {
      const auto device = static_cast<unsigned>(random() % (random() % 2 ? 70 : 20'000));
      set.add(device);
      model.insert(device);
    } else {
      ASSERT_EQ(set.lowest(), *model.begin());
      std::vector<unsigned> taken;
      set.take_all([&](unsigned number) { taken.push_back(number); });
      ASSERT_EQ(taken, std::vector<unsigned>(model.begin(), model.end()));
      model.clear();
    }
    ASSERT_EQ(set.size(), model.size());
    ASSERT_EQ(set.empty(), model.empty());
  }
}

}  // namespace
}  // namespace rocebox::event_queue_test
