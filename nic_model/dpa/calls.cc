// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/calls.h"

#include <fmt/format.h>

#include "nic_model/dpa/watch.h"

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

thread_local Calls* running = nullptr;

}  // namespace

Calls::Calls(const Program& program, Function function, void* owner, std::int64_t watchdog_ns)
    : program_(program), function_(function), owner_(owner), watchdog_ns_(watchdog_ns), fiber_(kStackBytes) {
  fiber_.start(&Calls::loop, this);
}

// The program's stack: one call after another, each between two pauses.
void Calls::loop(void* calls) {
  auto& self = *static_cast<Calls*>(calls);
  for (;;) {
    self.function_(self.owner_);
    self.has_returned_ = true;
    self.fiber_.pause();
  }
}

// In place of what was stopped.
void Calls::stopped() { running->leave(); }

bool Calls::run() {
  has_returned_ = false;
  running = this;
  Watch::of_this_thread().resume(fiber_, &Calls::stopped, watchdog_ns_);
  running = nullptr;
  return has_returned_;
}

std::string Calls::why() const {
  const Stop& stop = Watch::of_this_thread().stop();
  return fmt::format("{}, in {}", stop.text(), program_.place_of(stop.instruction));
}

}  // namespace rocebox::nic_model::dpa
