// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C, SIGTERM and SIGHUP as something that a wait can end with.
#pragma once
#include <signal.h>

#include <stdexcept>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::lab {

/// Someone wants the lab to end.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Blocks these signals for the process while it lives; only wait() sees them, so that nothing is left half-built.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Returns when one of the descriptors is readable or `nanos` have passed. Throws Interrupted when a signal has come,
  /// once for each, but not for one that says the same again (kSameWish).
  void wait(const std::vector<int>& descriptors, Nanos nanos);
  /// How many signals wait() has told of.
  unsigned heard() const { return heard_; }

 private:
  sigset_t before_;
  int descriptor_;
  unsigned heard_ = 0;
  Nanos heard_at_ = 0;  // the last of them
};

/// A clock that only goes on.
Nanos steady_now();

}  // namespace rocebox::lab
