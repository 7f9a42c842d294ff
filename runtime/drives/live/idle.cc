// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/idle.h"

#include <rte_pause.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace rocebox {
namespace {

// Loops of pure polling before the first pause: a packet that follows closely meets a core that is awake.
constexpr std::uint32_t kPollLoops = 256;
// A sleep until a packet comes is bounded, so that a stop or a reload is seen.
constexpr Nanos kSleepMax = 10'000'000;

timespec to_timespec(Nanos nanos) { return {nanos / 1'000'000'000, nanos % 1'000'000'000}; }

}  // namespace

void Idler::watch(Source& source) {
  const int descriptor = source.wake_descriptor();
  deaf_ |= descriptor < 0;
  if (std::ranges::any_of(descriptors_, [&](const pollfd& other) { return other.fd == descriptor; })) return;
  watched_.push_back(&source);
  descriptors_.push_back({descriptor, POLLIN, 0});
}

void Idler::start() { prctl(PR_SET_TIMERSLACK, 1000); }

void Idler::arm(bool on) {
  for (Source* source : watched_) source->wake_on(on);
  armed_ = on;
}

void Idler::idle(Nanos until_deadline) {
  if (how_ == config::Idle::kPoll || ++idle_loops_ < kPollLoops || until_deadline <= 0) return rte_pause();
  if (how_ == config::Idle::kInterrupt && !deaf_) {
    if (!armed_) return arm(true);  // one more look at the queues: a packet may have come before that
    const timespec wait = to_timespec(std::min(until_deadline, kSleepMax));
    ppoll(descriptors_.data(), descriptors_.size(), &wait, nullptr);
    return arm(false);
  }
  // Ever longer pauses: a microsecond more each time, up to the longest.
  const timespec pause = to_timespec(std::min({until_deadline, longest_, Nanos{idle_loops_ - kPollLoops + 1} * 1000}));
  nanosleep(&pause, nullptr);
}

}  // namespace rocebox
