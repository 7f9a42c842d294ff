// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mailbox.h"

#include <chrono>
#include <thread>

namespace rocebox {

void Mailbox::have_done(const std::function<void()>& work) {
  work_.store(&work, std::memory_order_release);
  while (work_.load(std::memory_order_acquire)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace rocebox
