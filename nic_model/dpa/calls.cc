// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "nic_model/dpa/watch.h"

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

thread_local Calls* running = nullptr;

}  // namespace

Calls::Calls(const Program& program, Function function, void* owner, const Limits& limits)
    : program_(program), function_(function), owner_(owner), limits_(limits), fiber_(kStackBytes) {
  if (program.counts_blocks()) limits_.watchdog_ns = std::max(limits_.watchdog_ns, kCountedWatchdogNs);
}

// In place of what was stopped.
void Calls::stopped() { running->leave(); }

bool Calls::run() {
  blocks_left_ = limits_.blocks;
  running = this;
  const bool has_returned =
      Watch::of_this_thread().call(fiber_, function_, owner_, &Calls::stopped, limits_.watchdog_ns);
  running = nullptr;
  return has_returned;
}

void Calls::count_block(const void* where) {
  if (!running || --running->blocks_left_ >= 0) [[likely]]
    return;
  running->exhausted_at_ = where;
  running->leave();
}

std::string Calls::why() const {
  if (exhausted_at_)
    return fmt::format("it ran through more than {} blocks of code, in {}", limits_.blocks,
                       program_.place_of(exhausted_at_));
  const Stop& stop = Watch::of_this_thread().stop();
  return fmt::format("{}, in {}", stop.text(), program_.place_of(stop.instruction));
}

}  // namespace rocebox::nic_model::dpa

// What the compiler's -fsanitize-coverage=trace-pc has a program call at each block of its code.
extern "C" __attribute__((visibility("default"), used, weak)) void __sanitizer_cov_trace_pc() {
  rocebox::nic_model::dpa::Calls::count_block(__builtin_return_address(0));
}
