// SPDX-License-Identifier: BSD-3-Clause
// RecordRing: what a core hands to the thread that writes traces and captures.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocebox {

/// A queue of records of any size, from one thread to one other, bounded in bytes. A packet of 64 bytes takes no more
/// room than it needs, which a queue of equal slots (rte_ring, a pool of packets) would not give; and it is ordinary
/// memory, so nothing is set aside for it in EAL before somebody asks for a capture.
class RecordRing {
 public:
  /// `bytes` is a power of two.
  explicit RecordRing(std::size_t bytes) : memory_(bytes), mask_(bytes - 1) {}

  /// Room for a record of `bytes`, aligned to 16; null when the ring is too full. The writer calls commit() next.
  std::byte* claim(std::uint32_t bytes);
  /// What was claimed is handed over.
  void commit() { head_.store(claimed_, std::memory_order_release); }

  /// The oldest record, until pop(); null when there is none.
  const std::byte* front();
  /// The reader is done with the oldest record.
  void pop() { tail_.store(tail_.load(std::memory_order_relaxed) + front_bytes_, std::memory_order_release); }

  /// Bytes in use, on either thread; a moment old.
  std::size_t used() const { return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed); }
  std::size_t capacity() const { return memory_.size(); }

 private:
  struct alignas(16) Header {
    std::uint64_t bytes;  // with this header
    std::uint64_t skip;   // 1: there is nothing in it but the way to the ring's begin
  };
  static_assert(sizeof(Header) == 16, "what is left before the ring's end always holds one");
  Header& header(std::uint64_t at) { return *reinterpret_cast<Header*>(memory_.data() + (at & mask_)); }

  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  // Memory of 16-byte units, written once here, so that the core meets no page for the first time.
  class Memory {
   public:
    explicit Memory(std::size_t bytes) : units_(bytes / sizeof(Unit)) {}
    std::byte* data() { return units_[0].bytes; }
    std::size_t size() const { return units_.size() * sizeof(Unit); }

   private:
    std::vector<Unit> units_;
  };

  Memory memory_;
  std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  // bytes ever written
  std::uint64_t claimed_ = 0, tail_seen_ = 0;       // the writer's
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // bytes ever read
  std::uint64_t front_bytes_ = 0;                   // the reader's
};

}  // namespace rocebox
