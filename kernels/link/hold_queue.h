// SPDX-License-Identifier: BSD-3-Clause
// Packets on their way: a ring for those in order and a heap for the rest, read as one queue by
// (time, sequence).
#pragma once
#include <algorithm>
#include <array>
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
  /// used, and the ring goes round in as little of its room as its packets need, few of them in this object: what
  /// hundreds of links hold stays in the cache.
  explicit HoldQueue(std::uint32_t capacity)
      : capacity_(capacity),
        ring_(std::make_unique_for_overwrite<Entry[]>(capacity)),
        heap_(std::make_unique_for_overwrite<Entry[]>(capacity)) {
    start_afresh();
  }
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
    start_afresh();
    other.start_afresh();
  }

  /// `due.sequence` must exceed all earlier ones. What is not `in_order` keeps out of the ring, or
  /// its late time would send all that follow to the heap.
  void push(Due due, PacketPtr packet, bool in_order) {
    const Entry entry{due.at, due.sequence, packet.release().mbuf()};
    if (in_order && (ring_count_ == 0 || entries_[index(ring_count_ - 1)].at <= due.at)) {
      assert(ring_count_ < capacity_);
      if (ring_count_ == round_) [[unlikely]]
        widen();
      entries_[index(ring_count_++)] = entry;
    } else {
      assert(heap_count_ < capacity_);
      heap_[heap_count_++] = entry;
      std::push_heap(heap_.get(), heap_.get() + heap_count_, later);
    }
  }

  /// When the first leaves; kNever when empty.
  Nanos next_at() const {
    const Nanos ring = ring_count_ ? entries_[head_].at : kNever;
    return heap_count_ ? std::min(ring, heap_[0].at) : ring;
  }
  /// The first to leave; kNever when empty.
  Due next() const {
    const Due ring = ring_count_ ? Due{entries_[head_].at, entries_[head_].sequence} : Due{};
    const Due heap = heap_count_ ? Due{heap_[0].at, heap_[0].sequence} : Due{};
    return heap < ring ? heap : ring;
  }

  /// Fetches the first of those in order, whose time comes, into the cache.
  void prefetch_next() const {
    if (ring_count_) Packet(entries_[head_].packet).prefetch();
  }

  /// Takes out the packet that next() named; there must be one.
  PacketPtr pop() {
    assert(size());
    if (!ring_count_ || (heap_count_ && later(entries_[head_], heap_[0]))) {
      std::pop_heap(heap_.get(), heap_.get() + heap_count_, later);
      return PacketPtr(Packet(heap_[--heap_count_].packet));
    }
    const Entry entry = entries_[head_];
    if (--ring_count_)
      head_ = index(1);
    else
      start_afresh();
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
    return static_cast<std::uint32_t>(at < round_ ? at : at - round_);
  }
  void start_afresh() {
    entries_ = few_.data();
    round_ = std::min(kFew, capacity_);
    head_ = 0;
  }
  // Twice the round. What has come round to its start goes on behind its end.
  void widen() {
    const std::uint32_t before = round_;
    round_ = before <= capacity_ / 2 ? 2 * before : capacity_;
    if (entries_ == few_.data()) {
      std::rotate_copy(few_.data(), few_.data() + head_, few_.data() + before, ring_.get());
      entries_ = ring_.get();
      head_ = 0;
      return;
    }
    const std::uint32_t first = std::min(head_, round_ - before);
    std::copy_n(entries_, first, entries_ + before);
    std::copy_n(entries_ + first, head_ - first, entries_);
  }

  static constexpr std::uint32_t kFew = 16;
  std::uint32_t capacity_, round_ = 0, head_ = 0, ring_count_ = 0, heap_count_ = 0;
  Entry* entries_ = nullptr;  // of the ring: few_, or ring_
  std::unique_ptr<Entry[]> ring_, heap_;
  std::array<Entry, kFew> few_;
};

}  // namespace rocebox::link
