// SPDX-License-Identifier: BSD-3-Clause
// StagingRing: the slots that datagrams are received into before they are copied to the user's buffer (III-B). A slot
// is posted to the receive queue, filled, copied from, and only when its copy is done posted again.
#pragma once
#include <cassert>
#include <cstdint>
#include <vector>

#include "kernels/allgather/limits.h"

namespace rocebox::allgather {

class StagingRing {
 public:
  enum class Slot : std::uint8_t { kFree, kPosted, kCopying };

  /// As many slots as `bytes` hold, one at least and kStagingSlotsMax at most.
  StagingRing(std::uint64_t bytes, std::uint32_t chunk_bytes)
      : slot_bytes_(kGrhBytes + chunk_bytes), slots_(slots_in(bytes, slot_bytes_)), free_(slots()) {}
  static std::uint32_t slots_in(std::uint64_t bytes, std::uint32_t slot_bytes) {
    const std::uint64_t slots = bytes / slot_bytes;
    return static_cast<std::uint32_t>(slots < 1 ? 1 : slots > kStagingSlotsMax ? kStagingSlotsMax : slots);
  }

  std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  std::uint64_t bytes() const { return std::uint64_t{slots()} * slot_bytes_; }
  std::uint64_t offset_of(std::uint32_t slot) const { return std::uint64_t{slot} * slot_bytes_; }
  Slot state(std::uint32_t slot) const { return slots_[slot]; }

  std::uint32_t posted() const { return posted_; }
  std::uint32_t copying() const { return copying_; }
  std::uint32_t free() const { return free_; }
  /// The fewest slots that were posted after one was taken: how near an overrun came.
  std::uint32_t posted_least() const { return posted_least_; }

  // Each says that it happens, and asserts that it may.

  void post(std::uint32_t slot) {
    move(slot, Slot::kFree, Slot::kPosted);
    free_--, posted_++;
  }
  /// A datagram has come into it.
  void take(std::uint32_t slot) {
    move(slot, Slot::kPosted, Slot::kCopying);
    posted_--, copying_++;
    if (posted_ < posted_least_) posted_least_ = posted_;
  }
  /// Its copy is done, or what came is not wanted.
  void release(std::uint32_t slot) {
    move(slot, Slot::kCopying, Slot::kFree);
    copying_--, free_++;
  }

 private:
  void move(std::uint32_t slot, Slot from, Slot to) {
    assert(slot < slots_.size() && slots_[slot] == from);
    (void)from;
    slots_[slot] = to;
  }

  std::uint32_t slot_bytes_;
  std::vector<Slot> slots_;
  std::uint32_t free_, posted_ = 0, copying_ = 0, posted_least_ = UINT32_MAX;
};

}  // namespace rocebox::allgather
