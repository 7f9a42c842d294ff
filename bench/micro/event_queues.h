// SPDX-License-Identifier: BSD-3-Clause
// Structures that could hold what is due and when, for event_queue_bench: each has arm (also of what is armed), cancel,
// next and pop. What rocebox uses is runtime/kernel/deadline_heap.h, and in a fabric runtime/engine/event_queue.h; the
// others are what these were chosen from.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <queue>
#include <vector>

#include "runtime/engine/event_queue.h"
#include "runtime/kernel/deadline_heap.h"

namespace rocebox::bench {

/// What Fabric and Pipeline had: a heap of copies. What is armed anew leaves the copy of before behind, which is
/// dropped when its time comes.
class StaleHeap {
 public:
  explicit StaleHeap(std::size_t items) : live_(items) {}
  void arm(std::uint32_t item, Nanos at) {
    heap_.push({at, ++sequence_, item});
    live_[item] = sequence_;
  }
  void cancel(std::uint32_t item) { live_[item] = 0; }
  Nanos next() const { return heap_.empty() ? kNever : heap_.top().at; }  // or before: of what has gone
  std::uint32_t pop(Nanos& at) {
    for (;;) {
      const Entry top = heap_.top();
      heap_.pop();
      if (live_[top.item] != top.sequence) continue;
      at = top.at;
      return top.item;
    }
  }
  std::size_t entries() const { return heap_.size(); }

 private:
  struct Entry {
    Nanos at;
    std::uint64_t sequence;
    std::uint32_t item;
    bool operator<(const Entry& o) const { return at != o.at ? at > o.at : sequence > o.sequence; }
  };
  std::vector<std::uint64_t> live_;
  std::priority_queue<Entry> heap_;
  std::uint64_t sequence_ = 0;
};

/// DeadlineHeap by number of children.
template <unsigned kArity>
class NaryHeap {
 public:
  explicit NaryHeap(std::size_t items) : items_(items) { heap_.reserve(items); }
  void arm(std::uint32_t item, Nanos at) { heap_.arm(items_[item], at, ++sequence_); }
  void cancel(std::uint32_t item) { heap_.cancel(items_[item]); }
  Nanos next() const { return heap_.next(); }
  std::uint32_t pop(Nanos& at) {
    at = heap_.next();
    return static_cast<std::uint32_t>(&heap_.pop() - items_.data());
  }
  std::size_t entries() const { return heap_.size(); }

 private:
  std::vector<Deadline> items_;
  BasicDeadlineHeap<kArity> heap_;
  std::uint64_t sequence_ = 0;
};

/// EventQueue: a wheel of nanoseconds for what is near before such a heap.
class Wheel {
 public:
  explicit Wheel(std::size_t items) : items_(items) {}
  void arm(std::uint32_t item, Nanos at) { queue_.arm(items_[item], at); }
  void cancel(std::uint32_t item) { queue_.cancel(items_[item]); }
  Nanos next() const { return queue_.next(); }
  std::uint32_t pop(Nanos& at) {
    at = queue_.next();
    return static_cast<std::uint32_t>(&queue_.pop() - items_.data());
  }
  std::size_t entries() const { return queue_.size(); }

 private:
  std::vector<Event> items_;
  EventQueue queue_;
};

/// Buckets by the highest bit in which a time differs from the last one popped (Ahuja and others 1990): an entry moves
/// to a lower bucket at most once a bit. Nothing may be armed before the last time popped.
class RadixHeap {
 public:
  explicit RadixHeap(std::size_t items) : items_(items) {}
  void arm(std::uint32_t item, Nanos at) {
    if (items_[item].bucket >= 0) remove(item);
    items_[item].at = std::max(at, last_);
    items_[item].sequence = ++sequence_;
    put(item);
    size_++;
    if (first_ != kNever) first_ = std::min(first_, items_[item].at);
  }
  /// Looks through the lowest bucket when the first has gone: nothing may be moved, since what is armed next may be due
  /// before it.
  Nanos next() {
    if (first_ != kNever || size_ == 0) return first_;
    unsigned b = 0;
    while (buckets_[b].empty()) b++;
    for (const std::uint32_t item : buckets_[b]) first_ = std::min(first_, items_[item].at);
    return first_;
  }
  void cancel(std::uint32_t item) {
    if (items_[item].bucket >= 0) remove(item);
  }
  std::uint32_t pop(Nanos& at) {
    if (buckets_[0].empty()) redistribute();
    // Equal times go by sequence: the first armed is looked for among those of this instant, which are few.
    std::uint32_t first = buckets_[0][0];
    for (const std::uint32_t other : buckets_[0])
      if (items_[other].sequence < items_[first].sequence) first = other;
    at = items_[first].at;
    remove(first);
    return first;
  }
  std::size_t entries() const { return size_; }

 private:
  struct Item {
    Nanos at = 0;
    std::uint64_t sequence = 0;
    std::int32_t bucket = -1;
    std::uint32_t place = 0;
  };
  void put(std::uint32_t item) {
    Item& entry = items_[item];
    const auto differs = static_cast<std::uint64_t>(entry.at ^ last_);
    entry.bucket = differs == 0 ? 0 : static_cast<std::int32_t>(std::bit_width(differs));
    std::vector<std::uint32_t>& bucket = buckets_[entry.bucket];
    entry.place = static_cast<std::uint32_t>(bucket.size());
    bucket.push_back(item);
  }
  void remove(std::uint32_t item) {
    std::vector<std::uint32_t>& bucket = buckets_[items_[item].bucket];
    const std::uint32_t last = bucket.back();
    bucket[items_[item].place] = last;
    items_[last].place = items_[item].place;
    bucket.pop_back();
    items_[item].bucket = -1;
    size_--;
    if (items_[item].at == first_) first_ = kNever;
  }
  void redistribute() {
    unsigned b = 1;
    while (buckets_[b].empty()) b++;
    last_ = items_[buckets_[b][0]].at;
    for (const std::uint32_t item : buckets_[b]) last_ = std::min(last_, items_[item].at);
    moving_.swap(buckets_[b]);
    for (const std::uint32_t item : moving_) put(item);
    moving_.clear();
  }

  std::vector<Item> items_;
  std::vector<std::uint32_t> buckets_[65], moving_;
  Nanos last_ = 0, first_ = kNever;
  std::uint64_t sequence_ = 0;
  std::size_t size_ = 0;
};

/// Days of equal length, sorted lists (Brown 1988): the year has as many days as there are entries, and a day is as
/// long as the mean distance of a sample of the next ones. Both are chosen anew when the number of entries has doubled
/// or halved.
class CalendarQueue {
 public:
  explicit CalendarQueue(std::size_t items) : items_(items), days_(2, kNone) {}
  void arm(std::uint32_t item, Nanos at) {
    if (items_[item].armed) unlink(item);
    items_[item].at = std::max(at, last_);
    items_[item].sequence = ++sequence_;
    link(item);
    if (size_ > 2 * days_.size()) resize(2 * days_.size());
  }
  void cancel(std::uint32_t item) {
    if (items_[item].armed) unlink(item);
  }
  Nanos next() const { return size_ ? items_[find_first()].at : kNever; }
  std::uint32_t pop(Nanos& at) {
    const std::uint32_t first = find_first();
    at = last_ = items_[first].at;
    unlink(first);
    if (days_.size() > 2 && size_ < days_.size() / 2) resize(days_.size() / 2);
    return first;
  }
  std::size_t entries() const { return size_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Item {
    Nanos at = 0;
    std::uint64_t sequence = 0;
    std::uint32_t before = kNone, after = kNone;
    bool armed = false;
  };
  std::size_t day_of(Nanos at) const { return static_cast<std::size_t>(at / width_) & (days_.size() - 1); }
  bool earlier(const Item& a, const Item& b) const { return a.at != b.at ? a.at < b.at : a.sequence < b.sequence; }
  void link(std::uint32_t item) {
    Item& entry = items_[item];
    std::uint32_t* next = &days_[day_of(entry.at)];
    std::uint32_t before = kNone;
    while (*next != kNone && earlier(items_[*next], entry)) before = *next, next = &items_[*next].after;
    entry.before = before;
    entry.after = *next;
    if (entry.after != kNone) items_[entry.after].before = item;
    *next = item;
    entry.armed = true;
    size_++;
  }
  void unlink(std::uint32_t item) {
    Item& entry = items_[item];
    (entry.before == kNone ? days_[day_of(entry.at)] : items_[entry.before].after) = entry.after;
    if (entry.after != kNone) items_[entry.after].before = entry.before;
    entry.armed = false;
    size_--;
  }
  std::uint32_t find_first() const {
    Nanos end = (last_ / width_ + 1) * width_;
    for (std::size_t day = day_of(last_), seen = 0; seen < days_.size(); day = (day + 1) & (days_.size() - 1), seen++) {
      if (days_[day] != kNone && items_[days_[day]].at < end) return days_[day];
      end += width_;
    }
    std::uint32_t first = kNone;  // nothing within a year
    for (const std::uint32_t day : days_)
      if (day != kNone && (first == kNone || earlier(items_[day], items_[first]))) first = day;
    return first;
  }
  void resize(std::size_t days) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t day : days_)
      for (; day != kNone; day = items_[day].after) all.push_back(day);
    const std::size_t sample = std::min<std::size_t>(all.size(), 64);
    std::vector<Nanos> times;
    for (const std::uint32_t item : all) times.push_back(items_[item].at);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(sample) - 1, times.end());
    const Nanos first = *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(sample));
    width_ = std::max<Nanos>(1, 3 * (times[sample - 1] - first) / static_cast<Nanos>(sample));
    days_.assign(days, kNone);
    size_ = 0;
    for (const std::uint32_t item : all) link(item);
  }

  std::vector<Item> items_;
  std::vector<std::uint32_t> days_;
  Nanos width_ = 1, last_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rocebox::bench
