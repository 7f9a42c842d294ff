// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mailbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace rocebox::test {
namespace {

TEST(Mailbox, WorkIsDoneOnTheServingThreadBeforeTheCallReturns) {
  Mailbox box;
  std::atomic<bool> stop{false};
  std::thread::id where;
  box.open();
  std::thread core([&] {
    while (!stop.load(std::memory_order_relaxed)) box.poll(0);
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
      for (unsigned i = 0; i < round; i++) box.poll(0);
      box.close();
    });
    unsigned done = 0;
    for (unsigned i = 0; i < 3; i++) box.have_done([&] { done++; });
    core.join();
    EXPECT_EQ(done, 3u);
  }
}

bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(Mailbox, WakesACoreThatSleepsAndNoLongerThanThere) {
  Mailbox box;
  ASSERT_GE(box.wake_descriptor(), 0);
  box.open();
  EXPECT_FALSE(is_readable(box.wake_descriptor()));
  std::atomic<bool> done{false};
  std::thread who([&] { box.have_done([&] { done = true; }); });
  pollfd watched{box.wake_descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, -1), 1) << "which waits until it is woken";
  box.poll(0);
  who.join();
  EXPECT_TRUE(done);
  box.wake_on(false);
  EXPECT_FALSE(is_readable(box.wake_descriptor()));
  box.close();
}

}  // namespace
}  // namespace rocebox::test
