// SPDX-License-Identifier: BSD-3-Clause
// EventQueue: which devices wait for which time. A wheel of nanoseconds for what is near, which is nearly all in a
// fabric at work, and a heap for what is farther; bench/micro/event_queue_bench has what others cost.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/kernel/deadline_heap.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {

/// A part of whatever waits for a time, one at most at once. It stays where it is while it is armed.
class Event : private Deadline {
 public:
  /// When it is due; kNever when it is not armed.
  Nanos at() const { return at_; }
  /// Another one that is due then, where EventQueue::near() says so of this one.
  const Event* behind() const { return next_; }

 private:
  friend class EventQueue;
  Nanos at_ = kNever;
  Event* next_ = nullptr;     // in its slot of the wheel
  Event** before_ = nullptr;  // what points to it there; null: it is in the heap, or not armed
};

/// Time goes on only: nothing is taken out before what was taken out last, except after go_back(). Of equal times any
/// is the first.
class EventQueue {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return near_ + far_.size(); }
  /// The earliest time; kNever when nothing is armed.
  Nanos next() const { return first_near_ < far_.next() ? first_near_ : far_.next(); }

  /// `event` is due at `at`, in place of when it was before; at once when that time has gone.
  void arm(Event& event, Nanos at) {
    cancel(event);
    if (at < now_) at = now_;
    event.at_ = at;
    if (at - now_ >= kSlots) return far_.arm(event, at, 0);
    if (slots_.empty()) slots_.resize(kSlots);
    const auto slot = static_cast<std::size_t>(at) % kSlots;
    Event*& head = slots_[slot];
    if (!head) mark(slot);
    event.next_ = head;
    if (head) head->before_ = &event.next_;
    event.before_ = &head;
    head = &event;
    near_++;
    if (at < first_near_) first_near_ = at;
  }
  void cancel(Event& event) {
    if (event.at_ == kNever) return;
    if (event.before_)
      unlink(event);
    else
      far_.cancel(event);
    event.at_ = kNever;
  }
  /// Takes out one that is due first.
  Event& pop() {
    now_ = next();
    Event& first =
        first_near_ == now_ ? *slots_[static_cast<std::size_t>(now_) % kSlots] : static_cast<Event&>(far_.pop());
    if (first.before_) unlink(first);
    first.at_ = kNever;
    return first;
  }

  /// Takes out all that are due by `now`, and hands each to `each`, which arms none.
  template <class Each>
  void take_due(Nanos now, const Each& each) {
    while (next() <= now) {
      if (first_near_ > far_.next()) {
        each(pop());
        continue;
      }
      now_ = first_near_;
      const auto slot = static_cast<std::size_t>(now_) % kSlots;
      for (Event* event = std::exchange(slots_[slot], nullptr); event;) {
        Event& first = *event;
        event = first.next_;
        if (event) prefetch_line(event);
        first.before_ = nullptr;
        first.at_ = kNever;
        near_--;
        each(first);
      }
      unmark(slot);
      first_near_ = near_ ? look(now_) : kNever;
    }
  }

  /// Takes out the one that is due at `now`, where there is one, and nothing else is due by then; else null.
  Event* take_only(Nanos now) {
    if (first_near_ != now || far_.next() <= now) return nullptr;
    const auto slot = static_cast<std::size_t>(now) % kSlots;
    Event* only = slots_[slot];
    if (only->next_) return nullptr;
    now_ = now;
    slots_[slot] = nullptr;
    only->before_ = nullptr;
    only->at_ = kNever;
    near_--;
    unmark(slot);
    first_near_ = near_ ? look(now) : kNever;
    return only;
  }

  /// One of those that are near and due next; Event::behind() leads to the others. Null: nothing is near.
  const Event* near() const {
    return first_near_ == kNever ? nullptr : slots_[static_cast<std::size_t>(first_near_) % kSlots];
  }

  /// Time has come to `now`, and nothing is due before: what is near is reckoned from here.
  void advance(Nanos now) {
    if (now > now_ && now <= next()) now_ = now;
  }
  /// Of an empty queue: what is armed from now on may be due from `now` on.
  void go_back(Nanos now) {
    assert(empty());
    now_ = std::min(now_, now);
  }

 private:
  static constexpr unsigned kBits = 64, kTop = 8;
  static constexpr std::size_t kWords = kBits * kTop;
  static constexpr Nanos kSlots = kWords * kBits;  // 33 us: what is on a wire, or being sent

  void unlink(Event& event) {
    *event.before_ = event.next_;
    if (event.next_) event.next_->before_ = event.before_;
    event.before_ = nullptr;
    near_--;
    const auto slot = static_cast<std::size_t>(event.at_) % kSlots;
    if (slots_[slot]) return;
    unmark(slot);
    if (event.at_ == first_near_) first_near_ = near_ ? look(event.at_) : kNever;
  }
  void unmark(std::size_t slot) {
    std::uint64_t& word = words_[slot / kBits];
    word &= ~(std::uint64_t{1} << slot % kBits);
    if (!word) used_words_[slot / kBits / kBits] &= ~(std::uint64_t{1} << slot / kBits % kBits);
  }
  void mark(std::size_t slot) {
    words_[slot / kBits] |= std::uint64_t{1} << slot % kBits;
    used_words_[slot / kBits / kBits] |= std::uint64_t{1} << slot / kBits % kBits;
  }
  // The first time behind `from` with an entry; there is one, and none is a turn of the wheel later.
  Nanos look(Nanos from) const {
    const auto start = static_cast<std::size_t>(from) % kSlots;
    const std::uint64_t later = words_[start / kBits] & (~std::uint64_t{0} << start % kBits);
    if (later) return from + distance(start, start / kBits * kBits + static_cast<unsigned>(std::countr_zero(later)));
    const std::size_t word = next_word(start / kBits);
    return from + distance(start, word * kBits + static_cast<unsigned>(std::countr_zero(words_[word])));
  }
  // The first word with an entry behind `word`, round to itself.
  std::size_t next_word(std::size_t word) const {
    std::size_t top = word / kBits;
    std::uint64_t used = word % kBits + 1 < kBits ? used_words_[top] & (~std::uint64_t{0} << (word % kBits + 1)) : 0;
    while (!used) used = used_words_[top = (top + 1) % kTop];
    return top * kBits + static_cast<unsigned>(std::countr_zero(used));
  }
  static Nanos distance(std::size_t from, std::size_t to) {
    return static_cast<Nanos>((to - from + kSlots) % static_cast<std::size_t>(kSlots));
  }

  std::vector<Event*> slots_;  // by time; made when first used
  std::array<std::uint64_t, kWords> words_{};
  std::array<std::uint64_t, kTop> used_words_{};
  std::size_t near_ = 0;
  Nanos now_ = 0, first_near_ = kNever;
  DeadlineHeap far_;
};

}  // namespace rocebox
