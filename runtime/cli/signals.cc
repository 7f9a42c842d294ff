// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace rocebox::cli {

Signals::Signals(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : numbers) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC);
}

Signals::~Signals() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::wait(Nanos nanos) {
  pollfd ready{descriptor_, POLLIN, 0};
  const Nanos milliseconds = std::min<Nanos>((nanos + kMillisecond - 1) / kMillisecond, 1 << 30);
  if (poll(&ready, 1, nanos < 0 ? -1 : static_cast<int>(milliseconds)) <= 0) return 0;
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace rocebox::cli
