// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/record_ring.h"

namespace rocebox {

std::byte* RecordRing::claim(std::uint32_t bytes) {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t needed = sizeof(Header) + ((std::uint64_t{bytes} + 15) & ~std::uint64_t{15});
  const std::uint64_t to_end = capacity() - (head & mask_);
  const std::uint64_t skipped = needed <= to_end ? 0 : to_end;  // a record is in one piece
  if (head + skipped + needed - tail_seen_ > capacity()) {
    tail_seen_ = tail_.load(std::memory_order_acquire);
    if (head + skipped + needed - tail_seen_ > capacity()) return nullptr;
  }
  if (skipped) header(head) = {skipped, 1};
  Header& record = header(head + skipped);
  record = {needed, 0};
  claimed_ = head + skipped + needed;
  return reinterpret_cast<std::byte*>(&record + 1);
}

const std::byte* RecordRing::front() {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head_.load(std::memory_order_acquire)) return nullptr;
  if (header(tail).skip) {  // what was skipped to stands right behind, committed with it
    tail += header(tail).bytes;
    tail_.store(tail, std::memory_order_release);
  }
  front_bytes_ = header(tail).bytes;
  return reinterpret_cast<const std::byte*>(&header(tail) + 1);
}

}  // namespace rocebox
