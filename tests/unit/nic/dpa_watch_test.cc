// SPDX-License-Identifier: BSD-3-Clause
// What stops device code that runs too long, and what does not.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <ctime>

#include "nic_model/dpa/fiber.h"
#include "nic_model/dpa/watch.h"

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::int64_t kLimitNs = 40'000'000;

std::int64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void burn(std::int64_t ns) {
  const std::int64_t end = cpu_ns() + ns;
  while (cpu_ns() < end) continue;
}

// CPU time that a thread is charged for and does not have, as where a hypervisor takes the core away or the kernel
// fills pages: the timer runs out, perhaps more than once, and tells of it once.
void stall(std::int64_t ns) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  burn(ns);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Fiber* fiber = nullptr;
void leave() { fiber->leave(); }

bool is_stopped(Fiber::Entry entry, std::int64_t limit_ns = kLimitNs) {
  Fiber made(64 * 1024);
  fiber = &made;
  made.start(entry, nullptr);
  Watch& watch = Watch::of_this_thread();
  watch.resume(made, &leave, limit_ns);
  return watch.stop().is_watchdog;
}

// One call after another, each on the empty stack, with what the caller has in its registers left alone.
TEST(DpaFiber, CallsReturnAndLeaveTheCallerAsItWas) {
  Fiber made(64 * 1024);
  fiber = &made;
  struct Call {
    const void* stack = nullptr;
    std::uint64_t sum = 0;
  } call;
  const int rounding = fegetround();
  const void* first = nullptr;
  for (int i = 1; i <= 3; i++) {
    EXPECT_TRUE(made.call(
        [](void* argument) {
          auto& self = *static_cast<Call*>(argument);
          self.stack = __builtin_frame_address(0);
          for (int n = 0; n < 100; n++) self.sum = self.sum * 3 + 1;
          fesetround(FE_UPWARD);
        },
        &call));
    EXPECT_TRUE(made.is_at(call.stack));
    if (i == 1) first = call.stack;
    EXPECT_EQ(call.stack, first);
    EXPECT_EQ(fegetround(), rounding);
  }
  std::uint64_t sum = 0;
  for (int n = 0; n < 300; n++) sum = sum * 3 + 1;
  EXPECT_EQ(call.sum, sum);
}

volatile bool does_leave = true;
int deeper(int depth) {
  if (depth > 0) return deeper(depth - 1) + 1;
  if (does_leave) leave();
  return 0;
}

// What is written after it in the frame of the caller would be lost if its stack or its registers were others.
TEST(DpaFiber, ACallIsLeftFromAnyDepth) {
  for (int depth = 0; depth < 300; depth += 100) {
    Fiber made(64 * 1024);
    fiber = &made;
    int before = depth + 1;
    EXPECT_FALSE(made.call(
        [](void* argument) {
          fesetround(FE_DOWNWARD);
          *static_cast<int*>(argument) += deeper(*static_cast<int*>(argument) - 1);
        },
        &before));
    EXPECT_EQ(before, depth + 1);
    EXPECT_EQ(fegetround(), FE_TONEAREST);
  }
}

TEST(DpaWatch, WhatGivesWayInTimeGoesOn) {
  EXPECT_FALSE(is_stopped([](void*) {
    burn(kLimitNs / 4);
    leave();
  }));
}

// The first timer of a process has the number 0.
TEST(DpaWatch, ALimitThatIsRaisedIsRaised) {
  EXPECT_FALSE(is_stopped([](void*) { leave(); }, kLimitNs / 10));
  EXPECT_FALSE(is_stopped(
      [](void*) {
        burn(4 * kLimitNs);
        leave();
      },
      10 * kLimitNs));
}

TEST(DpaWatch, AFewStallsAreNotTheProgramsTime) {
  EXPECT_FALSE(is_stopped([](void*) {
    for (int i = 0; i < 3; i++) stall(2 * kLimitNs);
    leave();
  }));
}

#ifndef __SANITIZE_THREAD__
// ThreadSanitizer delivers a timer's signal only in calls of libc.
TEST(DpaWatch, WhatNeverGivesWayIsStopped) {
  const std::int64_t start = cpu_ns();
  EXPECT_TRUE(is_stopped([](void*) {
    for (;;) burn(kLimitNs);
  }));
  EXPECT_GE(cpu_ns() - start, kLimitNs) << "it may run so long";
}

// As programs that count their blocks beside one that does not.
TEST(DpaWatch, ProgramsWithUnlikeLimitsHaveTheirOwnTurnByTurn) {
  for (int i = 0; i < 2; i++) {
    EXPECT_FALSE(is_stopped(
        [](void*) {
          burn(3 * kLimitNs);
          leave();
        },
        1000 * kLimitNs));
    const std::int64_t start = cpu_ns();
    EXPECT_TRUE(is_stopped([](void*) {
      for (;;) burn(kLimitNs);
    }));
    EXPECT_GE(cpu_ns() - start, kLimitNs);
    EXPECT_LT(cpu_ns() - start, 500 * kLimitNs) << "the other's";
  }
}

#endif

}  // namespace
}  // namespace rocebox::nic_model::dpa
