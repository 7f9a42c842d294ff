// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/pauses.h"

#include <fmt/format.h>

#include <algorithm>

#include "nic_model/core.h"
#include "runtime/roce/parse.h"

namespace rocebox::nic_model {
namespace {

constexpr unsigned kPriorities = 8;
constexpr std::uint32_t kType = 0x8808, kPauseAll = 0x0001, kPausePriorities = 0x0101;
constexpr std::uint64_t kQuantumBits = 512;
constexpr std::uint64_t kRateOfPauses = 100'000'000'000;  // of a port without one, as the switch's

}  // namespace

Pauses::Pauses(const NicConfig& config, Transmitter& transmitter, Stats& stats)
    : config_(config),
      transmitter_(transmitter),
      rx_pause_ctrl_phy_(stats.counter("rx_pause_ctrl_phy", "pause frames received, by priority or for all")),
      timer_(timer_tag(TimerOf::kPause)) {
  for (unsigned i = 0; i < kPriorities; i++)
    priorities_.push_back(
        {stats.counter(fmt::format("rx_prio{}_pause", i), fmt::format("pause frames received for priority {}", i)),
         stats.counter(fmt::format("rx_prio{}_pause_duration", i),
                       fmt::format("microseconds for which priority {} was paused", i))});
  priorities_.push_back(
      {stats.counter("rx_global_pause", "pause frames received for all priorities"),
       stats.counter("rx_global_pause_duration", "microseconds for which all priorities were paused by these")});
}

Counter* Pauses::on_packet(Context& context, Packet packet) {
  const std::uint8_t* data = packet.data();
  if (!config_.obey_pauses || packet.size() < 18 + 2 * kPriorities || roce::load_be16(data + 12) != kType)
    return nullptr;
  const std::uint32_t operation = roce::load_be16(data + 14);
  if (operation != kPauseAll && operation != kPausePriorities) return nullptr;
  const std::uint64_t rate = config_.rate ? config_.rate : kRateOfPauses;
  const auto until = [&](std::uint64_t quanta) {
    __extension__ using Wide = unsigned __int128;
    return context.now() + static_cast<Nanos>(Wide{quanta * kQuantumBits} * kSecond / rate);
  };
  if (operation == kPauseAll) renew(priorities_[kPriorities], context.now(), until(roce::load_be16(data + 16)));
  for (unsigned i = 0; operation == kPausePriorities && i < kPriorities; i++)
    if (roce::load_be16(data + 16) >> i & 1)
      renew(priorities_[i], context.now(), until(roce::load_be16(data + 18 + 2 * i)));
  settle(context);
  return &rx_pause_ctrl_phy_;
}

void Pauses::renew(Paused& paused, Nanos now, Nanos until) {
  paused.frames.add();
  if (paused.until > now) {
    const Nanos micros = (now - paused.from) / kMicrosecond - (paused.counted - paused.from) / kMicrosecond;
    paused.duration.add(static_cast<std::uint64_t>(micros));
    paused.counted = now;
  } else {
    paused.from = paused.counted = now;
  }
  paused.until = until;
}

// Counts what has passed, and tells the transmitter who is paused from now on.
void Pauses::settle(Context& context) {
  const Nanos now = context.now();
  std::uint8_t mask = 0;
  Nanos next = kNever;
  for (unsigned i = 0; i <= kPriorities; i++) {
    Paused& one = priorities_[i];
    // Whole microseconds since its begin, so that no remainder is lost between frames.
    const Nanos to = std::min(now, one.until);
    const Nanos micros = (to - one.from) / kMicrosecond - (one.counted - one.from) / kMicrosecond;
    if (micros > 0) one.duration.add(static_cast<std::uint64_t>(micros));
    one.counted = std::max(one.counted, to);
    if (one.until <= now) continue;
    mask |= i == kPriorities ? 0xFF : static_cast<std::uint8_t>(1u << i);
    next = std::min(next, one.until);
  }
  transmitter_.set_paused(context, mask);
  if (next == kNever)
    context.cancel(timer_);
  else
    context.arm(timer_, next);
}

void Pauses::on_timer(Context& context) { settle(context); }

}  // namespace rocebox::nic_model
