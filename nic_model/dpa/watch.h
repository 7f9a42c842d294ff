// SPDX-License-Identifier: BSD-3-Clause
// Watch: what stops device code that goes wrong: faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE) while a fiber runs, and a
// timer on the CPU time of the thread that runs it. Signals that come at any other time are left to who had them
// before.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "nic_model/dpa/fiber.h"

namespace rocebox::nic_model::dpa {

/// Why a fiber was stopped; written in the handler, read when the fiber has left.
struct Stop {
  int signal = 0;                 ///< 0: it was not
  bool is_watchdog = false;       ///< it ran too long without giving way
  const void* address = nullptr;  ///< what it touched
  const void* instruction = nullptr;
  bool by_stack = false;  ///< its stack was full
  /// For people, without the place: what it did.
  std::string text() const;
};

/// One of a thread of the operating system, made when it first runs device code.
class Watch {
 public:
  /// That of the calling thread.
  static Watch& of_this_thread();

  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// Device code runs: `fiber` is resumed. When it is stopped, `exit` runs in its place, and leaves it. It may run for
  /// `limit_ns` of CPU time, and is stopped up to a quarter of that later, by the operating system's clock ticks: a
  /// limit of fewer than eight of those is as long as they are.
  void resume(Fiber& fiber, void (*exit)(), std::int64_t limit_ns);
  /// The same of one call on the fiber's stack: see Fiber::call().
  bool call(Fiber& fiber, Fiber::Entry entry, void* argument, void (*exit)(), std::int64_t limit_ns);
  const Stop& stop() const { return stop_; }

 private:
  Watch();
  static void on_fault(int signal, void* info, void* context);
  static void on_tick(int signal, void* info, void* context);
  void set_limit(std::int64_t limit_ns);
  void set_timer(std::int64_t tick_ns);
  void begin(Fiber& fiber, void (*exit)(), std::int64_t limit_ns);
  void end();

  struct Handlers;
  // Written by the thread, read by handlers on it.
  std::atomic<Fiber*> running_ = nullptr;
  std::atomic<std::uint64_t> turns_ = 0;
  std::uint64_t turns_seen_ = 0;
  std::int64_t ticks_ = 0;  // in the turn that was seen
  void (*exit_)() = nullptr;
  Stop stop_;
  std::int64_t limit_ns_ = 0, tick_ns_ = 0;
  std::int64_t ticks_of_limit_ = 0;
  std::optional<void*> timer_;  // the kernel's number: the first is null
  void* signal_stack_ = nullptr;
};

}  // namespace rocebox::nic_model::dpa
