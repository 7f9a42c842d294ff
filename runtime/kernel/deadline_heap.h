// SPDX-License-Identifier: BSD-3-Clause
// DeadlineHeap: what is due, and when. Each thing that can be due has one entry at most, which moves when it is armed
// anew and goes when it is cancelled, so that the heap never grows beyond what there is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/packet/packet.h"

namespace rocebox {

template <unsigned kArity>
class BasicDeadlineHeap;

/// A part of whatever can be due. It stays where it is while it is armed; all zero bytes are one that is not armed.
class Deadline {
 public:
  Deadline() = default;
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  bool armed() const { return place_ != 0; }

 private:
  template <unsigned>
  friend class BasicDeadlineHeap;
  std::uint32_t place_ = 0;  // in the heap, from 1; 0: not armed
};

/// An indexed heap with `kArity` children a node. Of the structures in bench/micro/event_queues.h some are quicker
/// where times come at random; none is as even over all loads without growing: see bench/README.md.
template <unsigned kArity>
class BasicDeadlineHeap {
 public:
  BasicDeadlineHeap() { entries_.resize(1); }
  void reserve(std::size_t entries) { entries_.reserve(entries + 1); }

  bool empty() const { return entries_.size() == 1; }
  std::size_t size() const { return entries_.size() - 1; }
  /// The earliest time; kNever when nothing is armed.
  Nanos next() const { return next_; }

  /// `what` is due at `at`, in place of when it was before; equal times go by `order`.
  void arm(Deadline& what, Nanos at, std::uint64_t order) {
    const Entry entry{at, order, &what};
    if (open_) [[unlikely]] {
      if (what.place_ == 0) {
        open_ = false;
        return sink(1, entry);
      }
      close();
    }
    if (what.place_ == 0) {
      entries_.push_back(entry);
      return rise(entries_.size() - 1, entry);
    }
    if (entry.before(entries_[what.place_])) return rise(what.place_, entry);
    sink(what.place_, entry);
  }
  void cancel(Deadline& what) {
    if (what.place_ == 0) return;
    close();
    const std::size_t place = what.place_;
    what.place_ = 0;
    remove(place);
  }
  /// Takes out the earliest.
  Deadline& pop() {
    Deadline& first = take_first();
    close();
    return first;
  }
  /// The same, and leaves its place open until close(): what is armed next takes it, as what has happened mostly arms
  /// something anew, and one way through the heap does for both. Until then nothing else is asked of it.
  Deadline& take_first() {
    Deadline& first = *entries_[1].what;
    first.place_ = 0;
    open_ = true;
    return first;
  }
  void close() {
    if (!open_) return;
    open_ = false;
    remove(1);
  }
  /// The earliest, and the order that it was armed with; there must be one.
  const Deadline& first() const { return *entries_[1].what; }
  std::uint64_t first_order() const { return entries_[1].order; }
  /// When something that is armed is due.
  Nanos at(const Deadline& what) const { return what.place_ ? entries_[what.place_].at : kNever; }

 private:
  struct Entry {
    Nanos at;
    std::uint64_t order;
    Deadline* what;
    bool before(const Entry& o) const { return at != o.at ? at < o.at : order < o.order; }
  };
  static std::size_t parent(std::size_t place) { return (place - 2) / kArity + 1; }
  static std::size_t first_child(std::size_t place) { return (place - 1) * kArity + 2; }

  void remove(std::size_t place) {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (empty()) next_ = kNever;
    if (place == entries_.size()) return;
    if (last.before(entries_[place])) return rise(place, last);
    sink(place, last);
  }
  void put(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    if (place == 1) next_ = entry.at;
    entry.what->place_ = static_cast<std::uint32_t>(place);
  }
  void rise(std::size_t place, const Entry& entry) {
    for (; place > 1 && entry.before(entries_[parent(place)]); place = parent(place))
      put(place, entries_[parent(place)]);
    put(place, entry);
  }
  void sink(std::size_t place, const Entry& entry) {
    for (;;) {
      const std::size_t first = first_child(place);
      if (first >= entries_.size()) break;
      std::size_t least = first;
      const std::size_t end = first + kArity < entries_.size() ? first + kArity : entries_.size();
      for (std::size_t child = first + 1; child < end; child++)
        if (entries_[child].before(entries_[least])) least = child;
      if (!entries_[least].before(entry)) break;
      put(place, entries_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;  // from 1
  Nanos next_ = kNever;         // what is asked for all the time
  bool open_ = false;           // the first has been taken out of its place
};

using DeadlineHeap = BasicDeadlineHeap<4>;

}  // namespace rocebox
