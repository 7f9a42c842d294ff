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
  box.open();
  std::thread core([&] {
    while (!stop.load(std::memory_order_relaxed)) box.serve();
    box.close();
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

TEST(Mailbox, WhoFindsItClosedDoesTheWorkHimself) {
  Mailbox box;
  std::thread::id where;
  box.have_done([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Mailbox, NoWorkIsLostWhileItCloses) {
  for (unsigned round = 0; round < 200; round++) {
    Mailbox box;
    box.open();
    std::thread core([&] {
      for (unsigned i = 0; i < round; i++) box.serve();
      box.close();
    });
    unsigned done = 0;
    for (unsigned i = 0; i < 3; i++) box.have_done([&] { done++; });
    core.join();
    EXPECT_EQ(done, 3u);
  }
}

}  // namespace
}  // namespace rocebox::test
