// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/pipeline.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/script_kernel.h"

namespace rocebox {
namespace {

using test::out;
using test::PipelineBox;
using test::range;
using test::stage;
using Numbers = std::vector<unsigned>;
using Log = std::vector<std::string>;

TEST(Pipeline, AnEmptyPathPassesStraightThrough) {
  PipelineBox box({}, {out(3), {Edge::kNowhere, 0}});
  box.send(5, {1, 2, 3});
  EXPECT_EQ(box.left, (std::vector<PipelineBox::Left>{{5, 3, 1}, {5, 3, 2}, {5, 3, 3}}));
  box.send(6, {4}, 1);
  EXPECT_EQ(box.stats.read("drop_not_connected"), 1u);
  EXPECT_TRUE(box.conserved());
}

TEST(Pipeline, OneInstantIsTimersDueThenArrivalsThenTimersForThisInstant) {
  Log log;
  auto process = [&](Context& c, Port, Batch& b) {
    log.push_back("arrival " + std::to_string(b[0].data()[0]));
    test::arm_once(c, c.now(), 50);
  };
  auto timer = [&](Context& c, std::uint64_t tag) {
    log.push_back("timer " + std::to_string(tag) + " at " + std::to_string(c.now()));
    if (tag == 1) test::arm_once(c, c.now(), 2);
    if (tag == 2) test::arm_once(c, c.now() + 10, 3);
  };
  std::vector<Stage> stages;
  stages.push_back(stage(
      "k", {out(0)},
      [&](Context& c, Port in, Batch& b) {
        if (b[0].data()[0] == 0) {
          test::arm_once(c, 100, 1);
          return;
        }
        process(c, in, b);
      },
      timer));
  PipelineBox box(std::move(stages));
  box.send(0, {0});
  EXPECT_EQ(box.pipeline.next_deadline(), 100);
  box.send(100, {7});
  EXPECT_EQ(log, (Log{"timer 1 at 100", "timer 2 at 100", "arrival 7", "timer 50 at 100"}));
  EXPECT_EQ(box.pipeline.next_deadline(), 110);
  box.tick(110);
  EXPECT_EQ(log.back(), "timer 3 at 110");
  EXPECT_EQ(box.pipeline.next_deadline(), kNever);
}

TEST(Pipeline, EqualTimesGoByStageThenArmingOrder) {
  Log log;
  auto timer = [&](const char* name) {
    return [&log, name](Context&, std::uint64_t tag) { log.push_back(name + std::to_string(tag)); };
  };
  std::vector<Stage> stages;
  for (int i = 0; i < 3; i++) {
    const char* name = i == 0 ? "a" : i == 1 ? "b" : "c";
    stages.push_back(stage(
        name, {i < 2 ? Edge{i + 1, 0} : out(0)},
        [i](Context& c, Port, Batch&) {
          for (std::uint64_t tag = 0; tag < 3; tag++) test::arm_once(c, 10 - i % 2 * 0, 9 - tag);
          test::arm_once(c, 9, 100);
        },
        timer(name)));
  }
  PipelineBox box(std::move(stages), {{2, 0}, {1, 0}, {0, 0}});
  for (Port in = 0; in < 3; in++) {  // c is called first, a last
    box.send(0, {1}, in);
    if (in == 0) {
      EXPECT_EQ(box.pipeline.next_deadline(), 9);
    }
  }
  box.tick(20);  // late: all are due
  Log expected;
  for (const char* name : {"a", "b", "b", "c", "c", "c"}) expected.push_back(name + std::string("100"));
  for (const char* name : {"a", "b", "c"})
    for (int times = 0; times < (name[0] == 'a' ? 1 : name[0] == 'b' ? 2 : 3); times++)
      for (const char* tag : {"9", "8", "7"}) expected.push_back(std::string(name) + tag);
  EXPECT_EQ(log, expected);
}

TEST(Pipeline, ATimerOfAnEarlierTimeThatWasMissedFiresFirst) {
  Log log;
  std::vector<Stage> stages;
  stages.push_back(stage(
      "k", {out(0)},
      [](Context& c, Port, Batch&) {
        test::arm_once(c, 30, 3);
        test::arm_once(c, 10, 1);
        test::arm_once(c, 20, 2);
        test::arm_once(c, -5, 0);
      },
      [&](Context& c, std::uint64_t tag) { log.push_back(std::to_string(tag) + "@" + std::to_string(c.now())); }));
  PipelineBox box(std::move(stages));
  box.send(4, {1});
  EXPECT_EQ(log, (Log{"0@4"})) << "a time that has gone by means this instant";
  box.tick(25);
  EXPECT_EQ(log, (Log{"0@4", "1@25", "2@25"}));
}

// Even numbers go to 0, multiples of 3 are dropped, 5 is doubled behind itself and before, 7 held for 100 ns.
Stage mixer(std::vector<Edge> outputs, CounterSet& stats, std::vector<PacketPtr>& held) {
  Counter& three = stats.counter("drop_three", "");
  Counter& late = stats.counter("drop_late", "");
  return stage(
      "mixer", std::move(outputs),
      [&](Context& c, Port, Batch& b) {
        for (unsigned i = 0; i < b.size(); i++) {
          const unsigned n = b[i].data()[0];
          if (n % 7 == 0) {
            held.push_back(b.take(i));
            test::arm_once(c, c.now() + 100, n);
          } else if (n % 3 == 0) {
            b.drop(i, three);
            if (n % 9 == 0) {  // a follower takes the place of a dropped packet
              PacketPtr made = c.allocate(1);
              made->data()[0] = 200;
              c.emit(std::move(made), 1, i);
            }
          } else {
            b.send(i, n % 2 ? 1 : 0);
          }
          if (n % 5 == 0)
            for (Port port : {Port{1}, Port{0}, Port{1}}) c.emit(c.copy(b[i]), port, i);
          if (n % 11 == 0) c.emit(c.copy(b[i]), 2, i);
        }
      },
      [&](Context& c, std::uint64_t tag) {
        PacketPtr packet = std::move(held.front());
        held.erase(held.begin());
        EXPECT_EQ(packet->data()[0], tag);
        if (tag % 2)
          c.emit(std::move(packet), 1);
        else
          c.drop(std::move(packet), late);
      });
}

TEST(Pipeline, VerdictsAndFollowersKeepTheOrderOfEachOutput) {
  CounterSet stats;
  std::vector<PacketPtr> held;
  std::vector<Stage> stages;
  stages.push_back(mixer({out(0), out(1), {Edge::kNowhere, 0}}, stats, held));
  PipelineBox box(std::move(stages));
  box.send(0, {1, 2, 5, 9, 7, 4, 14, 11});
  Numbers zero, one;
  for (const auto& l : box.left) (l.port ? one : zero).push_back(l.number);
  EXPECT_EQ(zero, (Numbers{2, 5, 4}));
  EXPECT_EQ(one, (Numbers{1, 5, 5, 5, 200, 11}));
  EXPECT_EQ(box.stats.read("drop_not_connected"), 1u) << "the copy of 11 by output 2";
  EXPECT_EQ(stats.read("drop_three"), 1u);
  EXPECT_EQ(box.pipeline.conservation().held(), 2u);
  EXPECT_TRUE(box.conserved());
  box.tick(100);
  EXPECT_EQ(box.left.back(), (PipelineBox::Left{100, 1, 7}));
  EXPECT_EQ(stats.read("drop_late"), 1u);
  const Conservation c = box.pipeline.conservation();
  EXPECT_EQ(c.in, 8u);
  EXPECT_EQ(c.made, 5u);
  EXPECT_EQ(c.dropped, 3u);
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(box.pool.in_use(), 0u);
}

TEST(Pipeline, AnyBatchingGivesTheSameAnswer) {
  auto run = [](unsigned batch_max, unsigned burst) {
    CounterSet stats;
    std::vector<PacketPtr> held;
    std::vector<Stage> stages;
    stages.push_back(mixer({out(0), out(1), out(2)}, stats, held));
    PipelineBox box(std::move(stages));
    box.pipeline.set_batch_max(batch_max);
    for (unsigned first = 0; first < 250; first += burst) box.send(0, range(first, std::min(burst, 250 - first)));
    EXPECT_TRUE(box.conserved());
    box.tick(100);
    EXPECT_EQ(box.pool.in_use(), 0u);
    std::vector<Numbers> by_port(3);
    for (const auto& l : box.left) by_port.at(l.port).push_back(l.number);
    for (unsigned size : box.bursts) EXPECT_LE(size, batch_max);
    return by_port;
  };
  const auto expected = run(1, 1);
  for (unsigned batch_max : {1u, 2u, 7u, 63u, 64u})
    for (unsigned burst : {1u, 63u, 64u, 65u, 250u})
      EXPECT_EQ(run(batch_max, burst), expected) << batch_max << ' ' << burst;
}

TEST(Pipeline, KernelsSeeNoMoreThanABatchAndNoEmptyOne) {
  unsigned largest = 0, seen = 0;
  auto count = [&](Context& c, Port, Batch& b) {
    EXPECT_GT(b.size(), 0u);
    largest = std::max(largest, b.size());
    seen += b.size();
    if (b[0].data()[0] < 200)
      for (unsigned i = 0; i < b.size(); i++) {  // twice as many behind
        PacketPtr made = c.allocate(1);
        made->data()[0] = 200;
        c.emit(std::move(made), 0, i);
      }
  };
  std::vector<Stage> stages;
  stages.push_back(stage("doubler", {{1, 0}}, count));
  stages.push_back(stage("counter", {out(0)}, [&](Context&, Port, Batch& b) {
    EXPECT_GT(b.size(), 0u);
    largest = std::max(largest, b.size());
  }));
  PipelineBox box(std::move(stages));
  box.send(0, range(0, 200));
  EXPECT_EQ(largest, kBatchMax);
  EXPECT_EQ(seen, 200u);
  EXPECT_EQ(box.left.size(), 400u);
  std::vector<Packet> none;
  const Arrivals empty{0, none};
  box.pipeline.step(1, {&empty, 1});
  EXPECT_TRUE(box.conserved());
}

TEST(Pipeline, EmittedPacketsLeaveInEmittingOrderByAnyNumber) {
  std::vector<Stage> stages;
  stages.push_back(stage(
      "burst", {{1, 0}, out(1)}, [](Context& c, Port, Batch&) { test::arm_once(c, 10, 0); },
      [](Context& c, std::uint64_t) {
        for (unsigned i = 0; i < 250; i++) {
          PacketPtr made = c.allocate(1);
          made->data()[0] = static_cast<std::uint8_t>(i);
          c.emit(std::move(made), i % 2);
        }
      }));
  stages.push_back(stage("next", {out(0)}));
  PipelineBox box(std::move(stages));
  box.send(0, {255});
  box.left.clear();
  box.tick(10);
  Numbers zero, one;
  for (const auto& l : box.left) (l.port ? one : zero).push_back(l.number);
  ASSERT_EQ(zero.size(), 125u);
  ASSERT_EQ(one.size(), 125u);
  for (unsigned i = 0; i < 125; i++) {
    EXPECT_EQ(zero[i], 2 * i);
    EXPECT_EQ(one[i], 2 * i + 1);
  }
}

TEST(Pipeline, TwoSidedKernelsPassToTheOtherSide) {
  std::vector<Stage> stages;
  stages.push_back(stage("left", {out(0), {1, 0}}, {}, {}, Shape::kTwoSided));
  stages.push_back(stage("right", {{0, 1}, out(1)}, {}, {}, Shape::kTwoSided));
  PipelineBox box(std::move(stages), {{0, 0}, {1, 1}});
  box.send(0, {1, 2}, 0);
  box.send(0, {3}, 1);
  EXPECT_EQ(box.left, (std::vector<PipelineBox::Left>{{0, 1, 1}, {0, 1, 2}, {0, 0, 3}}));
}

TEST(Pipeline, TwoReflectorsFacingEachOtherEndAtTheHopLimit) {
  unsigned calls = 0;
  auto reflect = [&](Context&, Port in, Batch& b) {
    calls++;
    for (unsigned i = 0; i < b.size(); i++) b.send(i, in);
  };
  std::vector<Stage> stages;
  stages.push_back(stage("a", {out(0), {1, 0}}, reflect, {}, Shape::kTwoSided));
  stages.push_back(stage("b", {{0, 1}, out(1)}, reflect, {}, Shape::kTwoSided));
  PipelineBox box(std::move(stages), {{0, 0}, {0, 1}});
  box.send(0, range(0, 100), 1);
  EXPECT_EQ(box.stats.read("drop_hop_limit"), 100u);
  EXPECT_EQ(calls, 2 * kHopsMax);
  EXPECT_EQ(box.pipeline.conservation().dropped, 100u);
  EXPECT_EQ(box.pool.in_use(), 0u);
}

// Where the next kernel may write the bytes, each packet gets its own, or there is none.
TEST(Pipeline, WhatCannotHaveBytesOfItsOwnIsDropped) {
  std::vector<Stage> stages;
  stages.push_back(stage("shares", {{1, 0}}, [](Context& c, Port, Batch& b) {
    PacketPtr one = b.take(0);
    PacketPtr other = c.share(*one);
    ASSERT_TRUE(other);
    c.emit(std::move(one), 0);
    c.emit(std::move(other), 0);
  }));
  stages.push_back(stage("next", {out(0)}));
  PipelineBox box(std::move(stages));
  std::vector<PacketPtr> taken;
  constexpr std::size_t kAll = 2048 + 16 + 2;
  while (box.pool.in_use() < kAll - 2) taken.push_back(box.pool.allocate(1));
  box.send(0, {7});
  // The first one got no bytes of its own; its end leaves them to the other one.
  EXPECT_EQ(box.stats.read("drop_no_packet"), 1u);
  EXPECT_EQ(box.left, (std::vector<PipelineBox::Left>{{0, 0, 7}}));
  EXPECT_EQ(box.pipeline.conservation().held(), 0u);
  EXPECT_EQ(box.pool.in_use(), taken.size());
}

TEST(Pipeline, PacketsThatAKernelHoldsAreFreedWithIt) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  CounterSet stats;
  {
    auto held = std::make_shared<std::vector<PacketPtr>>();
    std::vector<Stage> stages;
    stages.push_back(stage("k", {out(0)}, [held](Context&, Port, Batch& b) {
      for (unsigned i = 0; i < b.size(); i++) held->push_back(b.take(i));
    }));
    Pipeline pipeline(std::move(stages), {{0, 0}}, pool, stats);
    Packet packet = pool.allocate(1).release();
    const Arrivals arrivals{0, {&packet, 1}};
    pipeline.step(0, {&arrivals, 1});
    EXPECT_EQ(pipeline.conservation().held(), 1u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace rocebox
