// SPDX-License-Identifier: BSD-3-Clause
// Calls: a program that is called, one call after another, on a stack of its own, as congestion control and policies
// are; threads of the DPA are activated instead (thread.h). What goes wrong in a call is stopped, and named.
#pragma once
#include <cstdint>
#include <string>

#include "nic_model/dpa/fiber.h"
#include "nic_model/dpa/program.h"

namespace rocebox::nic_model::dpa {

class Calls {
 public:
  using Function = void (*)(void* owner);
  /// `function` makes the call that `owner` has in mind, on the stack that is kept for it. A call may take
  /// `watchdog_ns` of CPU time, see Watch. `program` must live as long.
  Calls(const Program& program, Function function, void* owner, std::int64_t watchdog_ns);

  /// One call. False: it was stopped, and the program must not be called any more.
  bool run();
  /// Why and where run() was stopped; until anything else runs on this thread of the operating system.
  std::string why() const;
  /// From the call: ends it, as if it had been stopped.
  [[noreturn]] void leave() { fiber_.leave(); }

 private:
  static void loop(void* calls);
  static void stopped();

  const Program& program_;
  Function function_;
  void* owner_;
  std::int64_t watchdog_ns_;
  Fiber fiber_;
  bool has_returned_ = true;
};

}  // namespace rocebox::nic_model::dpa
