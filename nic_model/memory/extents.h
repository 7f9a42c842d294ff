// SPDX-License-Identifier: BSD-3-Clause
// Extents: what was written where, of memory that has no bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "runtime/packet/prefetch.h"

namespace rocebox::nic_model {

/// Disjoint ranges of offsets that were written, and how many bytes were written more than once.
class Extents {
 public:
  void add(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    written_ += bytes;
    const std::uint64_t end = offset + bytes;
    if (last_ != ranges_.end()) [[likely]] {
      // Packets of one message come one behind the other: the last range grows.
      if (last_->second == offset && end <= next_begin_) {
        last_->second = end;
        covered_ += bytes;
        if (end == next_begin_) join_next();
        return;
      }
      // Buffers are written again.
      if (offset >= last_->first && end <= last_->second) return;
    }
    add_anywhere(offset, end);
  }
  /// Brings the last range nearer.
  void prefetch() const {
    if (last_ != ranges_.end()) prefetch_line(&*last_);
  }
  void clear() {
    ranges_.clear();
    last_ = ranges_.end();
    next_begin_ = UINT64_MAX;
    written_ = covered_ = 0;
  }
  /// Whether all of these bytes were written.
  bool covers(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes == 0) return true;
    auto after = ranges_.upper_bound(offset);
    if (after == ranges_.begin()) return false;
    return (--after)->second >= offset + bytes;
  }
  /// How many of these bytes were written.
  std::uint64_t bytes_covered(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t end = offset + bytes;
    auto range = ranges_.upper_bound(offset);
    if (range != ranges_.begin()) --range;
    std::uint64_t sum = 0;
    for (; range != ranges_.end() && range->first < end; ++range)
      if (range->second > offset) sum += std::min(range->second, end) - std::max(range->first, offset);
    return sum;
  }
  std::uint64_t bytes_written() const { return written_; }  ///< those written twice count twice
  std::uint64_t bytes_covered() const { return covered_; }
  std::size_t ranges() const { return ranges_.size(); }

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // begin to end
  std::uint64_t next_start() const {
    const auto next = std::next(last_);
    return next == ranges_.end() ? UINT64_MAX : next->first;
  }
  void join_next() {
    const auto next = std::next(last_);
    if (next == ranges_.end() || next->first != last_->second) return;
    last_->second = next->second;
    ranges_.erase(next);
    next_begin_ = next_start();
  }
  void add_anywhere(std::uint64_t begin, std::uint64_t end) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    std::uint64_t from = begin, to = end, known = 0;
    while (at != ranges_.end() && at->first <= end) {
      from = std::min(from, at->first);
      to = std::max(to, at->second);
      known += at->second - at->first;
      at = ranges_.erase(at);
    }
    last_ = ranges_.emplace(from, to).first;
    next_begin_ = next_start();
    covered_ += to - from - known;
  }

  Ranges ranges_;
  Ranges::iterator last_ = ranges_.end();
  std::uint64_t next_begin_ = UINT64_MAX;  // where the range behind last_ begins
  std::uint64_t written_ = 0, covered_ = 0;
};

}  // namespace rocebox::nic_model
