// SPDX-License-Identifier: BSD-3-Clause
// Fiber: a stack of its own on which a function runs, until it pauses or is left for good. By Boost.Context's switch of
// stacks, which takes a few nanoseconds; sanitizers are told of each. A function that only returns is called on that
// stack instead: a call and a return, which the processor foresees, where a switch is two jumps that it does not.
#pragma once
#include <cstddef>

#include "nic_model/dpa/guarded_memory.h"

namespace rocebox::nic_model::dpa {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  explicit Fiber(std::size_t stack_bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// `entry` runs at the next resume(), on an empty stack; it ends by leave(). What ran before is forgotten: nothing on
  /// a fiber's stack has a destructor.
  void start(Entry entry, void* argument);
  /// Runs the fiber until it pauses or leaves. From outside of it.
  void resume();
  /// Back to who resumed it. From the fiber.
  void pause();
  /// In place of start() and resume(): `entry` runs on the empty stack until it returns. False: it has left instead, or
  /// was stopped, and no call() may follow. The caller's floating-point control is kept.
  bool call(Entry entry, void* argument);
  /// The same for good: only start() makes it run again.
  [[noreturn]] void leave();

  /// For handlers of signals that interrupted the fiber: it goes on at `exit`, on an empty stack. `context` is theirs.
  void redirect(void* context, void (*exit)());
  /// Whether a stack pointer is the fiber's, or has run out of its stack.
  bool is_at(const void* stack_pointer) const { return stack_.holds(stack_pointer) || stack_.guards(stack_pointer); }
  const GuardedMemory& stack() const { return stack_; }

 private:
  struct Switch;
  GuardedMemory stack_;
  void* context_ = nullptr;  // where the fiber goes on
  void* outside_ = nullptr;  // where who resumed it goes on
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool is_called_ = false;  // by call(); and what it calls where it is by switches
  Entry called_ = nullptr;
  void* called_with_ = nullptr;
  bool has_returned_ = false;
  // What sanitizers want to know; unused without them.
  void* fake_stack_ = nullptr;
  void* outside_fake_stack_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_stack_bytes_ = 0;
  void* thread_fiber_ = nullptr;
  void* outside_thread_fiber_ = nullptr;
};

}  // namespace rocebox::nic_model::dpa
