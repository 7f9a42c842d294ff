// SPDX-License-Identifier: BSD-3-Clause
// Packets on their way: a ring for those in order and a heap for the rest, read as one queue by
// (time, sequence).
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/kernel/delay_way.h"

namespace rocebox::link {

/// When something is due; at equal times what was put in first.
struct Due {
  Nanos at = kNever;
  std::uint64_t sequence = 0;
  bool operator<(const Due& o) const { return at != o.at ? at < o.at : sequence < o.sequence; }
};

class HoldQueue {
 public:
  /// Room for `capacity` packets in order, and again for others. Pages are touched when first used.
  explicit HoldQueue(std::uint32_t capacity) : way_(std::make_unique<DelayWay>(capacity)), heap_(capacity) {}
  ~HoldQueue() {
    while (size()) (void)pop();
  }
  HoldQueue(const HoldQueue&) = delete;
  HoldQueue& operator=(const HoldQueue&) = delete;

  std::uint32_t size() const { return way_->size() + heap_count_; }
  /// Whether some are not in order.
  bool has_others() const { return heap_count_ != 0; }
  std::uint32_t capacity() const { return way_->capacity(); }
  /// Those in order: where packets are put that take the short cut.
  DelayWay& way() { return *way_; }
  const DelayWay& way() const { return *way_; }
  /// Gets the other's room for its own; both are empty.
  void swap_empty(HoldQueue& other) {
    assert(size() == 0 && other.size() == 0);
    way_->swap_empty(*other.way_);
    heap_.swap(other.heap_);
  }

  /// `due.sequence` must exceed all earlier ones. What is not `in_order` keeps out of the ring, or
  /// its late time would send all that follow to the heap.
  void push(Due due, PacketPtr packet, bool in_order) {
    const Entry entry{due.at, due.sequence, packet.release().mbuf()};
    if (in_order && (way_->size() == 0 || way_->newest().at <= due.at)) return way_->push(entry);
    assert(heap_count_ < capacity());
    heap_[heap_count_++] = entry;
    std::push_heap(heap_.get(), heap_.get() + heap_count_, later);
  }

  /// When the first leaves; kNever when empty.
  Nanos next_at() const { return heap_count_ ? std::min(way_->next_at(), heap_[0].at) : way_->next_at(); }
  /// The first to leave; kNever when empty.
  Due next() const {
    const Due ring = way_->size() ? Due{way_->first().at, way_->first().sequence} : Due{};
    const Due heap = heap_count_ ? Due{heap_[0].at, heap_[0].sequence} : Due{};
    return heap < ring ? heap : ring;
  }

  /// Takes out the packet that next() named; there must be one.
  PacketPtr pop() {
    assert(size());
    if (way_->size() && !(heap_count_ && later(way_->first(), heap_[0]))) return PacketPtr(Packet(way_->pop().packet));
    std::pop_heap(heap_.get(), heap_.get() + heap_count_, later);
    return PacketPtr(Packet(heap_[--heap_count_].packet));
  }

 private:
  using Entry = DelayWay::Entry;
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }

  std::unique_ptr<DelayWay> way_;  // apart, beside those of other links
  std::uint32_t heap_count_ = 0;
  ReservedArray<Entry> heap_;
};

}  // namespace rocebox::link
