// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/thread.h"

#include <algorithm>

#include "nic_model/dpa/engine.h"
#include "nic_model/dpa/process.h"

namespace rocebox::nic_model::dpa {
namespace {

thread_local Thread* running = nullptr;

}  // namespace

Thread::Thread(Engine& engine, Process& process, std::uint32_t id, std::string name, Function function,
               std::size_t stack_bytes)
    : engine_(engine), process_(process), id_(id), name_(std::move(name)), function_(function), fiber_(stack_bytes) {}

Thread* Thread::current() { return running; }
void Engine::set_current(Thread* thread) { running = thread; }

void Thread::enter(void* thread) {
  auto& self = *static_cast<Thread*>(thread);
  const auto& a = self.arguments_;
  self.result_ = self.function_(a[0], a[1], a[2], a[3], a[4], a[5]);
  self.leave(Request::Kind::kReschedule);
}

void Thread::stopped() { running->leave(Request::Kind::kStopped); }

int Thread::ask(const Request& request) {
  request_ = request;
  fiber_.pause();
  return request_.result;
}

void Thread::leave(Request::Kind how) {
  request_ = {.kind = how};
  fiber_.leave();
}

void Thread::fence() {
  if (++fences_ % kFencesOfLook == 0) ask({.kind = Request::Kind::kFence});
}

void Thread::write_window() {
  const TimingConfig& timing = engine_.config().timing;
  if (timing.cycles_per_window_write)
    ask({.kind = Request::Kind::kBusy, .value = static_cast<std::uint32_t>(timing.cycles_per_window_write)});
}

void Thread::give_way() {
  fences_++;
  ask({.kind = Request::Kind::kFence});
}

void Thread::fail(std::uint64_t error) {
  error_ = error;
  leave(Request::Kind::kStopped);
}

std::uint64_t Thread::nanoseconds() const { return static_cast<std::uint64_t>(engine_.now()); }

// Each reading is a few cycles after the one before, so that loops until so many have passed end.
std::uint64_t Thread::cycles() {
  return nanoseconds() * static_cast<std::uint64_t>(engine_.config().timing.clock_mhz) / 1000 +
         (readings_ += kCyclesOfReading);
}

std::uint8_t Thread::owner_of(const volatile mlx5_cqe64* at) {
  const auto owner = [&] { return static_cast<std::uint8_t>(at->op_own & MLX5_CQE_OWNER_MASK); };
  const auto* cqe = const_cast<const mlx5_cqe64*>(at);
  if (!last_cq_ || !last_cq_->holds(cqe)) [[unlikely]] {
    DeviceCq* found = process_.cq_at(cqe);
    if (!found) {
      fence();  // no queue of ours: memory as any other
      return owner();
    }
    last_cq_ = found;
  }
  const CompletionQueue& cq = *last_cq_->cq;
  const std::uint32_t mask = cq.entries() - 1;
  const auto slot = static_cast<std::uint32_t>(cqe - cq.ring());
  if (slot == (cq.produced() & mask) && cq.unconsumed() <= mask) {
    ask({.kind = Request::Kind::kPoll, .cq = last_cq_});
    return owner();
  }
  const std::uint8_t now = owner();
  if (at == last_cqe_ && now == last_owner_) {
    fence();  // it has seen that
    return owner();
  }
  last_cqe_ = at;
  last_owner_ = now;
  cqes_++;
  polled_count_ = 0;
  has_seen();
  const TimingConfig& timing = engine_.config().timing;
  if (timing.enabled())
    ask({.kind = Request::Kind::kBusy,
         .number = static_cast<std::uint32_t>(timing.instructions_per_cqe),
         .value = static_cast<std::uint32_t>(timing.cycles_per_cqe)});
  else if (++calls_ >= kTurnCalls)
    ask({.kind = Request::Kind::kFence});
  return now;
}

}  // namespace rocebox::nic_model::dpa
