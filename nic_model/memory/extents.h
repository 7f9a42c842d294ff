// SPDX-License-Identifier: BSD-3-Clause
// Extents: what was written where, of memory that has no bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace rocebox::nic_model {

/// Disjoint ranges of offsets that were written, and how many bytes were written more than once.
class Extents {
 public:
  void add(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    written_ += bytes;
    // Packets of one message come one behind the other: the last range grows.
    if (last_ != ranges_.end() && last_->second == offset && next_start() >= offset + bytes) {
      last_->second = offset + bytes;
      covered_ += bytes;
      join_next();
      return;
    }
    add_anywhere(offset, offset + bytes);
  }
  void clear() {
    ranges_.clear();
    last_ = ranges_.end();
    written_ = covered_ = 0;
  }
  /// Whether all of these bytes were written.
  bool covers(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes == 0) return true;
    auto after = ranges_.upper_bound(offset);
    if (after == ranges_.begin()) return false;
    return (--after)->second >= offset + bytes;
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
    covered_ += to - from - known;
  }

  Ranges ranges_;
  Ranges::iterator last_ = ranges_.end();
  std::uint64_t written_ = 0, covered_ = 0;
};

}  // namespace rocebox::nic_model
