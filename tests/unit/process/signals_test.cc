// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rocebox {
namespace {

// A process that listens, says 1 when it does and 2 when it was asked to end, and goes on for ever.
struct Child {
  Child() {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    process = fork();
    if (process == 0) {
      const EndSignals signals;
      const char one = 1, two = 2;
      if (write(ends[1], &one, 1) != 1) _exit(3);
      pollfd asked{signals.asked().descriptor(), POLLIN, 0};
      poll(&asked, 1, -1);
      if (write(ends[1], &two, 1) != 1) _exit(3);
      while (true) pause();
    }
    close(ends[1]);
    said = ends[0];
  }
  ~Child() { close(said); }
  int next() const {
    char byte = 0;
    return read(said, &byte, 1) == 1 ? byte : -1;
  }
  pid_t process;
  int said;
};

TEST(EndSignals, TheFirstAsksAndTheSecondOfEitherKindEnds) {
  for (const auto& [first, second] :
       {std::pair(SIGINT, SIGTERM), {SIGTERM, SIGINT}, {SIGINT, SIGINT}, {SIGTERM, SIGTERM}}) {
    const Child child;
    ASSERT_EQ(child.next(), 1);
    kill(child.process, first);
    ASSERT_EQ(child.next(), 2);
    kill(child.process, second);
    int status = 0;
    waitpid(child.process, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), second);
  }
}

TEST(EndSignals, LetsSignalsThroughAgain) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const EndSignals signals;
    sigset_t within;
    pthread_sigmask(SIG_SETMASK, nullptr, &within);
    EXPECT_TRUE(sigismember(&within, SIGINT) && sigismember(&within, SIGTERM));
    EXPECT_FALSE(signals.asked().requested());
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

}  // namespace
}  // namespace rocebox
