// SPDX-License-Identifier: BSD-3-Clause
// Mailbox: how a running datapath is changed from outside.
#pragma once
#include <atomic>
#include <functional>

#include "runtime/drives/live/source.h"

namespace rocebox {

/// One piece of work at a time is left here and done by a polling core between two bursts, so that what the core owns
/// needs no lock. A look at an empty box costs one load. While no core serves the box is closed, and who brings work
/// does it himself.
class Mailbox final : public Source {
 public:
  Mailbox();
  ~Mailbox() override;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Has `work` done and returns when it is done. It must not throw, block or allocate much: packets wait meanwhile. To
  /// be called by one thread at a time, and never by the core.
  void have_done(const std::function<void()>& work);

  /// A core is about to serve. Called before it is started.
  void open() { work_.store(nullptr, std::memory_order_release); }
  /// On the core: does what was left. The devices get nothing to do by that.
  bool poll(Nanos) override {
    if (const auto* work = work_.load(std::memory_order_acquire)) [[unlikely]] {
      (*work)();
      work_.store(nullptr, std::memory_order_release);
    }
    return false;
  }
  int wake_descriptor() override { return event_; }
  void wake_on(bool on) override;
  /// On the core: serves for the last time.
  void close();

 private:
  static const std::function<void()> kClosed;
  int event_;  // an eventfd that have_done() writes to; -1: the system has none to give
  alignas(64) std::atomic<const std::function<void()>*> work_{&kClosed};
};

}  // namespace rocebox
