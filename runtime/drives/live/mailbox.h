// SPDX-License-Identifier: BSD-3-Clause
// Mailbox: how a running datapath is changed from outside.
#pragma once
#include <atomic>
#include <functional>

namespace rocebox {

/// One piece of work at a time is left here and done by a polling core between two bursts, so that what the core owns
/// needs no lock. A look at an empty box costs one load.
class Mailbox {
 public:
  /// Has `work` done on the core and returns when it is done. It must not throw, block or allocate much: packets wait
  /// meanwhile. To be called by one thread at a time, and never by the core; while the core does not serve, never.
  void have_done(const std::function<void()>& work);

  /// On the core: does what was left.
  void serve() {
    if (const auto* work = work_.load(std::memory_order_acquire)) [[unlikely]] {
      (*work)();
      work_.store(nullptr, std::memory_order_release);
    }
  }

 private:
  alignas(64) std::atomic<const std::function<void()>*> work_{nullptr};
};

}  // namespace rocebox
