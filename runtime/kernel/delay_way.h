// SPDX-License-Identifier: BSD-3-Clause
// DelayWay: one direction of a kernel that, for now, only lets what comes in leave later, as it is and in its order.
// Whoever joins devices puts packets on it and takes them off without a step of the device.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/kernel/packed.h"
#include "runtime/packet/packet.h"
#include "runtime/packet/prefetch.h"
#include "runtime/packet/reserved_memory.h"

namespace rocebox {

/// A ring of packets in the order in which they leave, and the count of those that took the short cut. Who counts them
/// by name does so later (see DelayLine::settle): that costs no packet anything.
class alignas(RTE_CACHE_LINE_SIZE) DelayWay {
 public:
  struct Entry {  // trivial, so that making room touches no memory; the way owns the packet
    Nanos at;
    std::uint64_t sequence;
    rte_mbuf* packet;
  };
  /// What has gone by the short cut so far.
  struct Counted {
    std::uint64_t put = 0, put_bytes = 0, taken = 0, taken_bytes = 0;
  };
  /// By the port by which it came in.
  using CountedOfBoth = std::array<Counted, 2>;

  /// Room for `capacity` packets. Pages are touched when first used, and the ring goes round in as little of its room
  /// as its packets need, few of them in this object: what hundreds of links hold stays in the cache.
  explicit DelayWay(std::uint32_t capacity) : capacity_(capacity), ring_(capacity) { start_afresh(); }
  static void* operator new(std::size_t) { return Packed<DelayWay>::allocate(); }
  static void operator delete(void* way) { Packed<DelayWay>::release(way); }
  DelayWay(const DelayWay&) = delete;
  DelayWay& operator=(const DelayWay&) = delete;

  /// Whether packets may be put on it now.
  bool is_open() const { return delay_ != 0 && !shut_ && !waits_ && count_ < capacity_; }
  /// The device's word: nothing may be put on it.
  void shut(bool shut) { shut_ = shut; }
  /// The word of whoever puts packets on it: something that comes to the device itself goes first.
  void set_waits(bool waits) { waits_ = waits; }
  /// The device wants to be told of each packet: LinePath::comes, goes.
  bool is_watched() const { return watched_; }
  void watch(bool watched) { watched_ = watched; }
  /// Whether those that are due may be taken off; else the kernel's timer lets them leave.
  bool gives() const { return gives_; }

  /// A packet that comes at `comes`, not before those before it; when it leaves. Only when is_open().
  Nanos put(Packet packet, Nanos comes) {
    const std::uint32_t bytes = packet.wire_bytes();
    counted_.put++;
    counted_.put_bytes += bytes;
    last_comes_ = comes;
    last_bytes_ = bytes;
    last_ = std::max(comes + delay_, last_);
    push({last_, ++sequence_, packet.mbuf()});
    return last_;
  }
  /// The first, which is due. Only when gives().
  Packet take() {
    const Packet packet(pop().packet);
    counted_.taken++;
    counted_.taken_bytes += packet.wire_bytes();
    return packet;
  }
  /// When the first leaves; kNever when there is none.
  Nanos next_at() const { return count_ ? entries_[head_].at : kNever; }
  /// The same of the second.
  Nanos second_at() const { return count_ > 1 ? entries_[index(1)].at : kNever; }
  /// When the last that was put on it comes, which may lie ahead: a port sends one packet at a time.
  Nanos last_comes() const { return last_comes_; }

  /// What has come and gone before `before`, and was not yet given by this.
  Counted settle(Nanos before) {
    Counted now = counted_;
    if (last_comes_ >= before) {
      now.put--;
      now.put_bytes -= last_bytes_;
    }
    const Counted then = std::exchange(settled_, now);
    return {now.put - then.put, now.put_bytes - then.put_bytes, now.taken - then.taken,
            now.taken_bytes - then.taken_bytes};
  }
  std::uint64_t put_so_far() const { return counted_.put; }

  std::uint32_t size() const { return count_; }
  std::uint32_t capacity() const { return capacity_; }
  /// Fetches what take() needs into the cache, but for the entry.
  void prefetch_itself() const {
    const auto* start = reinterpret_cast<const std::uint8_t*>(this);
    prefetch_far_line(start);
    prefetch_far_line(start + RTE_CACHE_LINE_SIZE);
  }
  /// Fetches the first, whose time comes, into the cache.
  void prefetch() const {
    if (count_) Packet(entries_[head_].packet).prefetch();
  }

  /// The same of all that leave before `before`.
  void prefetch_due(Nanos before) const {
    for (std::uint32_t place = 0; place < count_; place++) {
      const Entry& entry = entries_[index(place)];
      if (entry.at >= before) return;
      Packet(entry.packet).prefetch_far();
    }
  }
  /// What is_open() lets be put leaves so much later.
  Nanos delay() const { return delay_; }

  // For the kernel whose direction it is.

  /// What comes leaves so much later; 0: the kernel has to look at it.
  void set_delay(Nanos delay) { delay_ = delay; }
  void set_gives(bool gives) { gives_ = gives; }
  std::uint64_t next_sequence() { return ++sequence_; }
  /// Nothing that keeps its order leaves before this.
  Nanos last() const { return last_; }
  void set_last(Nanos last) { last_ = last; }
  const Entry& first() const { return entries_[head_]; }
  const Entry& newest() const { return entries_[index(count_ - 1)]; }
  void push(const Entry& entry) {
    assert(count_ < capacity_);
    if (count_ == round_) [[unlikely]]
      widen();
    entries_[index(count_++)] = entry;
  }
  Entry pop() {
    const Entry entry = entries_[head_];
    if (--count_)
      head_ = index(1);
    else
      start_afresh();
    return entry;
  }
  /// Gets the other's room for its own; both are empty.
  void swap_empty(DelayWay& other) {
    assert(count_ == 0 && other.count_ == 0);
    std::swap(capacity_, other.capacity_);
    ring_.swap(other.ring_);
    start_afresh();
    other.start_afresh();
  }

 private:
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
  Entry* entries_ = nullptr;  // of the ring: few_, or ring_
  std::uint32_t capacity_, round_ = 0, head_ = 0, count_ = 0;
  Nanos delay_ = 0, last_ = 0;
  std::uint64_t sequence_ = 0;
  Nanos last_comes_ = -1;
  bool gives_ = true, shut_ = false, watched_ = false, waits_ = false;
  std::uint32_t last_bytes_ = 0;
  Counted counted_;
  std::array<Entry, kFew> few_;  // the first in one cache line with what is counted
  Counted settled_;
  ReservedArray<Entry> ring_;
};

/// The short cut of a kernel whose directions are DelayWays as long as it has nothing else to decide; what becomes of
/// packets is the same.
class DelayLine {
 public:
  /// The way of what comes in by `in`, for the life of the kernel.
  virtual DelayWay& way(Port in) = 0;
  /// Counts what has come and gone by the short cut before `before`, and was not yet counted; and says what that was.
  virtual DelayWay::CountedOfBoth settle(Nanos before) = 0;

 protected:
  ~DelayLine() = default;
};

}  // namespace rocebox
