// SPDX-License-Identifier: BSD-3-Clause
// A kernel's timers: armed anew, cancelled, in parts, without bound; and a device's one entry in its fabric.
#include "runtime/kernel/timer.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "tests/unit/engine/script_kernel.h"

namespace rocebox {
namespace {

using test::PipelineBox;
using Log = std::vector<std::string>;

// One kernel whose packets' numbers say what to do with its timers.
struct TimerBox {
  TimerBox(std::function<void(Context&, unsigned)> process, Log& log) : box(stages(std::move(process), log)) {}
  static std::vector<Stage> stages(std::function<void(Context&, unsigned)> process, Log& log) {
    std::vector<Stage> all;
    all.push_back(test::stage(
        "k", {test::out(0)},
        [process = std::move(process)](Context& c, Port, Batch& b) {
          for (unsigned i = 0; i < b.size(); i++) process(c, b[i].data()[0]);
        },
        [&log](Context& c, std::uint64_t tag) { log.push_back(std::to_string(tag) + "@" + std::to_string(c.now())); }));
    return all;
  }
  PipelineBox box;
};

TEST(Timer, ArmedAnewItFiresOnceAtTheNewTime) {
  Timer timer(1);
  Log log;
  TimerBox it([&](Context& c, unsigned at) { c.arm(timer, at); }, log);
  it.box.send(0, {50});
  it.box.send(0, {80});  // later
  EXPECT_EQ(it.box.pipeline.next_deadline(), 80);
  it.box.send(0, {30});  // earlier
  EXPECT_EQ(timer.at(), 30);
  for (Nanos now : {30, 50, 80, 100}) it.box.tick(now);
  EXPECT_EQ(log, (Log{"1@30"}));
  EXPECT_FALSE(timer.armed());
  EXPECT_EQ(timer.at(), kNever);
}

TEST(Timer, ArmByKeepsTheEarlierTime) {
  Timer timer(1);
  Log log;
  TimerBox it([&](Context& c, unsigned at) { c.arm_by(timer, at); }, log);
  it.box.send(0, {50});
  it.box.send(0, {80});
  EXPECT_EQ(timer.at(), 50);
  it.box.send(0, {30});
  EXPECT_EQ(timer.at(), 30);
}

TEST(Timer, CancelledItDoesNotFire) {
  Timer first(1), second(2);
  Log log;
  TimerBox it(
      [&](Context& c, unsigned what) {
        c.arm(first, 10);
        c.arm(second, 20);
        if (what == 1) c.cancel(first);
        c.cancel(first);  // again does no harm
      },
      log);
  it.box.send(0, {1});
  it.box.tick(30);
  EXPECT_EQ(log, (Log{"2@30"}));
  EXPECT_EQ(it.box.pipeline.next_deadline(), kNever);
}

TEST(Timer, OfEqualTimesTheLowerPartComesFirstThenWhoWasArmedFirst) {
  std::deque<Timer> timers;
  for (std::uint64_t tag = 0; tag < 6; tag++) timers.emplace_back(tag);
  Log log;
  TimerBox it(
      [&](Context& c, unsigned) {
        constexpr std::uint8_t kParts[] = {2, 0, 1, 2, 0, 1};
        for (unsigned i = 0; i < 6; i++) c.arm(timers[i], 10, kParts[i]);
        c.arm(timers[1], 10, 0);  // anew: behind 4
      },
      log);
  it.box.send(0, {1});
  EXPECT_EQ(timers[3].part(), 2);
  it.box.tick(10);
  EXPECT_EQ(log, (Log{"4@10", "1@10", "2@10", "5@10", "0@10", "3@10"}));
}

// There used to be a number at which the process ended.
TEST(Timer, MoreThanAMillionMayBeArmed) {
  constexpr std::size_t kTimers = (1 << 20) + 1;
  const auto timers = std::make_unique<Timer[]>(kTimers);
  std::uint64_t fired = 0;
  std::vector<Stage> stages;
  stages.push_back(test::stage(
      "k", {test::out(0)},
      [&](Context& c, Port, Batch&) {
        for (std::size_t i = 0; i < kTimers; i++) c.arm(timers[i], static_cast<Nanos>(1000 + i * 7919 % kTimers));
      },
      [&](Context& c, std::uint64_t) { fired += c.now() == static_cast<Nanos>(1000 + fired); }));
  PipelineBox box(std::move(stages));
  box.send(0, {1});
  while (box.pipeline.next_deadline() != kNever) box.tick(box.pipeline.next_deadline());
  EXPECT_EQ(fired, kTimers);
}

}  // namespace
}  // namespace rocebox
