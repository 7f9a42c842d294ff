// SPDX-License-Identifier: BSD-3-Clause
// What a host calls a program's progress, for the watchdog of a run.
#include <gtest/gtest.h>

#include "runtime/kernel/progress.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

TEST(Progress, ATimerIsWaitedForAsLongAsItIsArmed) {
  NicBox box;
  Timer soon(1), late(2);
  TestHost& host = *box.hosts[0];
  const auto waits_until = [&] { return host.host.progress(host.number).waits_until; };
  box.on(0, [&](nic_model::Host& h) {
    h.arm_timer(host.number, late, 3600 * kSecond);
    h.arm_timer(host.number, soon, 2 * kSecond);
    h.arm_timer(host.number, soon, 1 * kSecond);
  });
  EXPECT_EQ(waits_until(), 3600 * kSecond);
  box.on(0, [&](nic_model::Host& h) {
    h.cancel_timer(late);
    h.cancel_timer(late);
  });
  EXPECT_EQ(waits_until(), 1 * kSecond);
  box.run(2 * kSecond);
  EXPECT_EQ(waits_until(), 0);
}

}  // namespace
}  // namespace rocebox::test
