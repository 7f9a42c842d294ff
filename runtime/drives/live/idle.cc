// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/idle.h"

#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_pause.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>

namespace rocebox {
namespace {

// Loops of pure polling before the first pause: a packet that follows closely meets a core that is awake.
constexpr std::uint32_t kPollLoops = 256;
// A sleep on interrupts is bounded, so that a stop or a reload is seen.
constexpr Nanos kInterruptSleepMax = 10'000'000;

}  // namespace

Idler::Idler(config::Idle how, Nanos longest) : how_(how), longest_(longest) {}
Idler::~Idler() = default;

bool Idler::watch(std::uint16_t port, std::uint16_t queue) {
  if (rte_eth_dev_rx_intr_ctl_q(port, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr) != 0) return false;
  watched_.push_back({port, queue});
  return true;
}

void Idler::start() { prctl(PR_SET_TIMERSLACK, 1000); }

void Idler::idle(Nanos until_deadline) {
  if (how_ == config::Idle::kPoll || ++idle_loops_ < kPollLoops) return rte_pause();
  if (how_ == config::Idle::kInterrupt && !watched_.empty()) {
    if (!armed_) {  // one more look at the queues: a packet may have come before the interrupt was switched on
      for (const Queue& queue : watched_) rte_eth_dev_rx_intr_enable(queue.port, queue.queue);
      armed_ = true;
      return;
    }
    std::array<rte_epoll_event, 16> events;
    const Nanos wait = std::min(until_deadline, kInterruptSleepMax);
    rte_epoll_wait(RTE_EPOLL_PER_THREAD, events.data(), static_cast<int>(events.size()),
                   static_cast<int>((wait + 999'999) / 1'000'000));
    disarm();
    return;
  }
  // Ever longer pauses: a microsecond more each time, up to the longest.
  sleep(std::min({until_deadline, longest_, Nanos{idle_loops_ - kPollLoops + 1} * 1000}));
}

void Idler::disarm() {
  for (const Queue& queue : watched_) rte_eth_dev_rx_intr_disable(queue.port, queue.queue);
  armed_ = false;
}

void Idler::sleep(Nanos nanos) {
  if (nanos <= 0) return;
  const timespec pause{nanos / 1'000'000'000, nanos % 1'000'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace rocebox
