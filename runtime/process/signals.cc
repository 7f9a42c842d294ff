// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace rocebox {

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

int Signals::wait(Nanos nanos, int also) {
  pollfd ready[2] = {{descriptor_, POLLIN, 0}, {also, POLLIN, 0}};
  const Nanos milliseconds = std::min<Nanos>((nanos + kMillisecond - 1) / kMillisecond, 1 << 30);
  if (poll(ready, 2, nanos < 0 ? -1 : static_cast<int>(milliseconds)) <= 0 || !ready[0].revents) return 0;
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

EndSignals::EndSignals(Nanos same_wish)
    : same_wish_(same_wish), signals_({SIGINT, SIGTERM}), thread_([this] { listen(); }) {}

// Of a run that ends at once the second may wait still; let through, it would end the process before its report.
EndSignals::~EndSignals() {
  enough_.request();
  thread_.join();
  while (asked_.requested() && says_the_same() && signals_.wait(0) != 0) continue;
}

bool EndSignals::says_the_same() const {
  return std::chrono::steady_clock::now() - asked_at_ < std::chrono::nanoseconds(same_wish_);
}

void EndSignals::share_cores() {
  cpu_set_t cores;
  if (pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) == 0)
    pthread_setaffinity_np(thread_.native_handle(), sizeof cores, &cores);
}

void EndSignals::listen() {
  while (!enough_.requested()) {
    const int signal = signals_.wait(-1, enough_.descriptor());
    if (signal == 0) continue;
    if (asked_.requested()) {
      if (says_the_same()) continue;
      std::signal(signal, SIG_DFL);
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, signal);
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      std::raise(signal);
      _exit(128 + signal);  // the first process of a container does not die of it
    }
    asked_at_ = std::chrono::steady_clock::now();
    asked_.request();
  }
}

}  // namespace rocebox
