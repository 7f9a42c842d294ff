// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/guarded_memory.h"

#include <sys/mman.h>

#include <new>

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage) {
  // Most of a large heap is never used: only what is takes memory.
  void* all = mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::uint8_t*>(all) + kPage;
  if (mprotect(data_, bytes_, PROT_READ | PROT_WRITE) != 0) {
    munmap(all, bytes_ + 2 * kPage);
    throw std::bad_alloc();
  }
}

GuardedMemory::~GuardedMemory() { munmap(data_ - kPage, bytes_ + 2 * kPage); }

bool GuardedMemory::guards(const void* address) const {
  const auto* at = static_cast<const std::uint8_t*>(address);
  return (at >= data_ - kPage && at < data_) || (at >= data_ + bytes_ && at < data_ + bytes_ + kPage);
}

}  // namespace rocebox::nic_model::dpa
