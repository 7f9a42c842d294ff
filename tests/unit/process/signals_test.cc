// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace rocebox {
namespace {

// A process that listens, says 1 when it does and 2 when it was asked to end, and goes on for ever.
struct Child {
  // `same_wish` none: as it is by default.
  explicit Child(std::optional<Nanos> same_wish = {}) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    sigset_t last;
    sigemptyset(&last);
    sigaddset(&last, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &last, nullptr);
    process = fork();
    if (process != 0) pthread_sigmask(SIG_UNBLOCK, &last, nullptr);
    if (process == 0) {
      std::optional<EndSignals> signals;
      same_wish ? signals.emplace(*same_wish) : signals.emplace();
      const char one = 1, two = 2;
      if (write(ends[1], &one, 1) != 1) _exit(3);
      pollfd asked{signals->asked().descriptor(), POLLIN, 0};
      poll(&asked, 1, -1);
      if (write(ends[1], &two, 1) != 1) _exit(3);
      if (!same_wish) {  // until the second has come, and then to its end
        sigset_t pending;
        do sigpending(&pending);
        while (!sigismember(&pending, SIGUSR1));
        signals.reset();
        _exit(4);
      }
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
    const Child child(0);
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

// timeout(1) signals a process, and then its group: the process ends in its own way.
TEST(EndSignals, ThoseOfOneMomentSayTheSame) {
  for (const auto& [first, second] : {std::pair(SIGTERM, SIGTERM), {SIGINT, SIGTERM}}) {
    const Child child;
    ASSERT_EQ(child.next(), 1);
    kill(child.process, first);
    ASSERT_EQ(child.next(), 2);
    kill(child.process, second);
    kill(child.process, SIGUSR1);  // it may go
    int status = 0;
    waitpid(child.process, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << status;
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
