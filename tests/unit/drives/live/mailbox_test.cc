// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace rocebox::test {
namespace {

TEST(Mailbox, WorkIsDoneOnTheServingThreadBeforeTheCallReturns) {
  Mailbox box;
  std::atomic<bool> stop{false};
  std::thread::id where;
  std::thread core([&] {
    while (!stop.load(std::memory_order_relaxed)) box.serve();
  });
  unsigned done = 0;  // no atomic: the box orders both threads' accesses
  for (unsigned i = 1; i <= 100; i++) {
    box.have_done([&] {
      done++;
      where = std::this_thread::get_id();
    });
    EXPECT_EQ(done, i);
  }
  EXPECT_EQ(where, core.get_id());
  stop = true;
  core.join();
}

}  // namespace
}  // namespace rocebox::test
