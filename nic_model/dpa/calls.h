// SPDX-License-Identifier: BSD-3-Clause
// Calls: a program that is called, one call after another, on a stack of its own, as congestion control and policies
// are; threads of the DPA are activated instead (thread.h). What goes wrong in a call is stopped, and named.
#pragma once
#include <cstdint>
#include <string>

#include "nic_model/dpa/fiber.h"
#include "nic_model/dpa/program.h"

namespace rocebox::nic_model::dpa {

/// Blocks of code that one call may run through, unless a configuration says otherwise: some 10 ms.
inline constexpr std::int64_t kBlocksMax = 10'000'000;
/// CPU time that a call of a program that counts blocks may take at least: for loops of what does not count, as of the
/// C library. Less than a budget takes anywhere would end calls where the machine is slow.
inline constexpr std::int64_t kCountedWatchdogNs = 60'000'000'000;

class Calls {
 public:
  using Function = void (*)(void* owner);
  /// What a call may take: CPU time, see Watch; and blocks of code, which a program counts that was compiled with
  /// -fsanitize-coverage=trace-pc (of clang: trace-pc,no-prune), so that it is stopped at the same place in each run.
  struct Limits {
    std::int64_t watchdog_ns, blocks;
  };
  /// `function` makes the call that `owner` has in mind, on the stack that is kept for it. `program` must live as long.
  Calls(const Program& program, Function function, void* owner, const Limits& limits);

  /// One call. False: it was stopped, and the program must not be called any more.
  bool run();
  /// Why and where run() was stopped; until anything else runs on this thread of the operating system.
  std::string why() const;
  /// From the call: ends it, as if it had been stopped.
  [[noreturn]] void leave() { fiber_.leave(); }
  /// The program that runs on this thread, if one does, has come to a block of code there.
  static void count_block(const void* where);

 private:
  static void stopped();

  const Program& program_;
  Function function_;
  void* owner_;
  Limits limits_;
  std::int64_t blocks_left_ = 0;
  const void* exhausted_at_ = nullptr;  // where there were none left
  Fiber fiber_;
};

}  // namespace rocebox::nic_model::dpa
