// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/interrupts.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/process/signals.h"

namespace rocebox::lab {

Interrupts::Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interrupts::~Interrupts() {
  signalfd_siginfo info{};
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    // What came too late to end anything must not end the process now.
  }
  close(descriptor_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupts::wait(const std::vector<int>& descriptors, Nanos nanos) {
  std::vector<pollfd> all = {{descriptor_, POLLIN, 0}};
  for (int descriptor : descriptors) all.push_back({descriptor, POLLIN, 0});
  const Nanos until = steady_now() + nanos;
  for (;;) {
    const Nanos left = std::clamp<Nanos>(until - steady_now(), 0, Nanos{1 << 30} * kMillisecond);
    const Nanos milliseconds = (left + kMillisecond - 1) / kMillisecond;
    if (poll(all.data(), all.size(), static_cast<int>(milliseconds)) <= 0) return;
    signalfd_siginfo info{};
    if (read(descriptor_, &info, sizeof info) != sizeof info) return;
    if (heard_ > 0 && steady_now() - heard_at_ < kSameWish) continue;
    heard_++;
    heard_at_ = steady_now();
    throw Interrupted(fmt::format("interrupted by SIG{}", sigabbrev_np(static_cast<int>(info.ssi_signo))));
  }
}

Nanos steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace rocebox::lab
