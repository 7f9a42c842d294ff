// SPDX-License-Identifier: BSD-3-Clause
// Packets on their way: a ring for those in order and a heap for the rest, read as one queue by
// (time, sequence).
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/packet/packet.h"

namespace rocebox::link {

/// When something is due; at equal times what was put in first.
struct Due {
  Nanos at = kNever;
  std::uint64_t sequence = 0;
  bool operator<(const Due& o) const { return at != o.at ? at < o.at : sequence < o.sequence; }
};

class HoldQueue {
 public:
  /// Room for `capacity` packets in the ring, and again in the heap. Pages are touched when first
  /// used.
  explicit HoldQueue(std::uint32_t capacity)
      : capacity_(capacity),
        ring_(std::make_unique_for_overwrite<Entry[]>(capacity)),
        heap_(std::make_unique_for_overwrite<Entry[]>(capacity)) {}
  ~HoldQueue() {
    while (size()) (void)pop();
  }
  HoldQueue(const HoldQueue&) = delete;
  HoldQueue& operator=(const HoldQueue&) = delete;

  std::uint32_t size() const { return ring_count_ + heap_count_; }
  std::uint32_t capacity() const { return capacity_; }
  /// Gets the other's room for its own; both are empty.
  void swap_empty(HoldQueue& other) {
    assert(size() == 0 && other.size() == 0);
    std::swap(capacity_, other.capacity_);
    ring_.swap(other.ring_);
    heap_.swap(other.heap_);
    head_ = other.head_ = 0;
  }

  /// `due.sequence` must exceed all earlier ones. What is not `in_order` keeps out of the ring, or
  /// its late time would send all that follow to the heap.
  void push(Due due, PacketPtr packet, bool in_order) {
    const Entry entry{due.at, due.sequence, packet.release().mbuf()};
    if (in_order && (ring_count_ == 0 || ring_[index(ring_count_ - 1)].at <= due.at)) {
      assert(ring_count_ < capacity_);
      ring_[index(ring_count_++)] = entry;
    } else {
      assert(heap_count_ < capacity_);
      heap_[heap_count_++] = entry;
      std::push_heap(heap_.get(), heap_.get() + heap_count_, later);
    }
  }

  /// When the first leaves; kNever when empty.
  Nanos next_at() const {
    const Nanos ring = ring_count_ ? ring_[head_].at : kNever;
    return heap_count_ ? std::min(ring, heap_[0].at) : ring;
  }
  /// The first to leave; kNever when empty.
  Due next() const {
    const Due ring = ring_count_ ? Due{ring_[head_].at, ring_[head_].sequence} : Due{};
    const Due heap = heap_count_ ? Due{heap_[0].at, heap_[0].sequence} : Due{};
    return heap < ring ? heap : ring;
  }

  /// Fetches the first of those in order, whose time comes, into the cache.
  void prefetch_next() const {
    if (ring_count_) Packet(ring_[head_].packet).prefetch();
  }

  /// Takes out the packet that next() named; there must be one.
  PacketPtr pop() {
    assert(size());
    if (!ring_count_ || (heap_count_ && later(ring_[head_], heap_[0]))) {
      std::pop_heap(heap_.get(), heap_.get() + heap_count_, later);
      return PacketPtr(Packet(heap_[--heap_count_].packet));
    }
    const Entry entry = ring_[head_];
    head_ = --ring_count_ ? index(1) : 0;  // an empty ring starts afresh, so that a short one stays in the cache
    return PacketPtr(Packet(entry.packet));
  }

 private:
  struct Entry {  // trivial, so that making room touches no memory; the queue owns the packet
    Nanos at;
    std::uint64_t sequence;
    rte_mbuf* packet;
  };
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }
  std::uint32_t index(std::uint32_t place) const {
    const std::uint64_t at = std::uint64_t{head_} + place;
    return static_cast<std::uint32_t>(at < capacity_ ? at : at - capacity_);
  }

  std::uint32_t capacity_, head_ = 0, ring_count_ = 0, heap_count_ = 0;
  std::unique_ptr<Entry[]> ring_, heap_;
};

}  // namespace rocebox::link
