// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace rocebox {

const std::function<void()> Mailbox::kClosed = [] {};

Mailbox::Mailbox() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Mailbox::~Mailbox() {
  if (event_ >= 0) ::close(event_);
}

void Mailbox::wake_on(bool on) {
  eventfd_t ignored;
  if (!on) eventfd_read(event_, &ignored);  // which may have been written long before
}

void Mailbox::have_done(const std::function<void()>& work) {
  const std::function<void()>* empty = nullptr;
  if (!work_.compare_exchange_strong(empty, &work, std::memory_order_acq_rel)) return work();  // it is closed
  eventfd_write(event_, 1);
  while (work_.load(std::memory_order_acquire) == &work) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Mailbox::close() {
  const std::function<void()>* empty = nullptr;
  while (!work_.compare_exchange_strong(empty, &kClosed, std::memory_order_acq_rel)) {
    poll(0);
    empty = nullptr;
  }
}

}  // namespace rocebox
