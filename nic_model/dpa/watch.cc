// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/watch.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <utility>

namespace rocebox::nic_model::dpa {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr std::size_t kSignalStackBytes = 64 * 1024;

// Ticks of the timer in the least limit. A thread is charged for CPU time that it does not have, as where a hypervisor
// takes the core away; however much that is at once, it is one tick.
constexpr int kTicks = 8;

int tick_signal() { return SIGRTMAX - 3; }

// The operating system's: timers of CPU time run out no sooner.
std::int64_t clock_tick_ns() {
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  return tick.tv_sec * 1'000'000'000 + tick.tv_nsec;
}

const void* stack_pointer(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RSP]);
#else
  return reinterpret_cast<const void*>(registers.sp);
#endif
}
const void* instruction(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RIP]);
#else
  return reinterpret_cast<const void*>(registers.pc);
#endif
}

thread_local Watch* watch_of_thread = nullptr;  // plain, for handlers

}  // namespace

// The process's handlers, put in place once, and those that were there before.
struct Watch::Handlers {
  std::array<struct sigaction, std::size(kFaults)> before{};

  Handlers() {
    struct sigaction ours {};
    sigemptyset(&ours.sa_mask);
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ours.sa_sigaction = [](int signal, siginfo_t* info, void* context) { on_fault(signal, info, context); };
    for (std::size_t i = 0; i < before.size(); i++) sigaction(kFaults[i], &ours, &before[i]);
    ours.sa_sigaction = [](int signal, siginfo_t* info, void* context) { on_tick(signal, info, context); };
    sigaction(tick_signal(), &ours, nullptr);
  }
  static Handlers& get() {
    static Handlers handlers;
    return handlers;
  }
  // Not a fiber's: as if we were not here.
  void chain(int signal, siginfo_t* info, void* context) const {
    for (std::size_t i = 0; i < before.size(); i++) {
      if (kFaults[i] != signal) continue;
      const struct sigaction& old = before[i];
      if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
      if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
      sigaction(signal, &old, nullptr);  // the instruction faults again, or the signal is sent again
      if (info->si_code <= 0) raise(signal);
    }
  }
};

std::string Stop::text() const {
  if (is_watchdog) return "ran too long";
  if (by_stack) return "its stack is full";
  return fmt::format("{} ({}) at address {:#x}", strsignal(signal), sigabbrev_np(signal),
                     reinterpret_cast<std::uintptr_t>(address));
}

Watch& Watch::of_this_thread() {
  if (watch_of_thread) [[likely]]
    return *watch_of_thread;
  static thread_local Watch watch;
  return watch;
}

Watch::Watch() {
  Handlers::get();
  watch_of_thread = this;
  stack_t now{};
  sigaltstack(nullptr, &now);
  if (!(now.ss_flags & SS_DISABLE)) return;  // a sanitizer's, which does for us too
  signal_stack_ = mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (signal_stack_ == MAP_FAILED) {
    signal_stack_ = nullptr;
    return;
  }
  stack_t ours{};
  ours.ss_sp = signal_stack_;
  ours.ss_size = kSignalStackBytes;
  sigaltstack(&ours, nullptr);
}

Watch::~Watch() {
  if (timer_) timer_delete(static_cast<timer_t>(*timer_));
  watch_of_thread = nullptr;
  if (!signal_stack_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(signal_stack_, kSignalStackBytes);
}

// What runs on a thread may have other limits turn by turn: the timer ticks for the least of them, others have more
// ticks.
void Watch::set_limit(std::int64_t limit_ns) {
  limit_ns_ = limit_ns;
  const std::int64_t tick_ns = std::max(limit_ns / kTicks, clock_tick_ns());
  if (!timer_ || tick_ns < tick_ns_) set_timer(tick_ns);
  ticks_of_limit_ = std::max<std::int64_t>(limit_ns / tick_ns_, kTicks);
}

// It ticks all the time from the first fiber on, in CPU time: a call of the operating system for each activation would
// cost more than the activation, and a core that sleeps has no ticks.
void Watch::set_timer(std::int64_t tick_ns) {
  tick_ns_ = tick_ns;
  if (!timer_) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_t timer;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
    timer_ = timer;
  }
  const timespec every = {tick_ns / 1'000'000'000, static_cast<long>(tick_ns % 1'000'000'000)};
  const itimerspec when = {every, every};
  timer_settime(static_cast<timer_t>(*timer_), 0, &when, nullptr);
}

inline void Watch::begin(Fiber& fiber, void (*exit)(), std::int64_t limit_ns) {
  if (limit_ns != limit_ns_) [[unlikely]]
    set_limit(limit_ns);
  stop_ = Stop();
  exit_ = exit;
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  running_.store(&fiber, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

inline void Watch::end() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running_.store(nullptr, std::memory_order_relaxed);
}

void Watch::resume(Fiber& fiber, void (*exit)(), std::int64_t limit_ns) {
  begin(fiber, exit, limit_ns);
  fiber.resume();
  end();
}

bool Watch::call(Fiber& fiber, Fiber::Entry entry, void* argument, void (*exit)(), std::int64_t limit_ns) {
  begin(fiber, exit, limit_ns);
  const bool has_returned = fiber.call(entry, argument);
  end();
  return has_returned;
}

void Watch::on_fault(int signal, void* info, void* context) {
  auto* about = static_cast<siginfo_t*>(info);
  Watch* watch = watch_of_thread;
  Fiber* fiber = watch ? watch->running_.load(std::memory_order_relaxed) : nullptr;
  if (!fiber || watch->stop_.signal || about->si_code <= 0 || !fiber->is_at(stack_pointer(context)))
    return Handlers::get().chain(signal, about, context);
  watch->stop_ = {signal, false, about->si_addr, instruction(context), fiber->stack().guards(about->si_addr)};
  fiber->redirect(context, watch->exit_);
}

void Watch::on_tick(int signal, void*, void* context) {
  Watch* watch = watch_of_thread;
  if (!watch) return;
  Fiber* fiber = watch->running_.load(std::memory_order_relaxed);
  const std::uint64_t turns = watch->turns_.load(std::memory_order_relaxed);
  // The next tick may come before the stopped fiber has left.
  if (!fiber || watch->stop_.signal) return;
  if (turns != std::exchange(watch->turns_seen_, turns)) watch->ticks_ = 0;  // of this turn, this is the first
  // One more: the first came late, perhaps, and the last does not.
  if (watch->ticks_++ <= watch->ticks_of_limit_) return;
  if (!fiber->is_at(stack_pointer(context))) return;  // it is just being entered or left
  watch->stop_ = {signal, true, nullptr, instruction(context), false};
  fiber->redirect(context, watch->exit_);
}

}  // namespace rocebox::nic_model::dpa
