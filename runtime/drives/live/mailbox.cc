// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mailbox.h"

#include <chrono>
#include <thread>

namespace rocebox {

const std::function<void()> Mailbox::kClosed = [] {};

void Mailbox::have_done(const std::function<void()>& work) {
  const std::function<void()>* empty = nullptr;
  if (!work_.compare_exchange_strong(empty, &work, std::memory_order_acq_rel)) return work();  // it is closed
  while (work_.load(std::memory_order_acquire) == &work) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Mailbox::close() {
  const std::function<void()>* empty = nullptr;
  while (!work_.compare_exchange_strong(empty, &kClosed, std::memory_order_acq_rel)) {
    serve();
    empty = nullptr;
  }
}

}  // namespace rocebox
