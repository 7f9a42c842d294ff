// SPDX-License-Identifier: BSD-3-Clause
// Ring: first in, first out, of a capacity that is fixed when it is made.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace rocebox::scr {

/// It goes round in the first part of its memory, which doubles when it is full, up to the capacity: few at once stay
/// in the cache.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity)
      : capacity_(capacity), all_(std::bit_ceil(capacity)), window_(std::min(kWindow, all_.size())) {}
  bool empty() const { return first_ == end_; }
  bool full() const { return end_ - first_ == capacity_; }
  T& front() { return all_[first_ & (window_ - 1)]; }
  const T& front() const { return all_[first_ & (window_ - 1)]; }
  /// There must be room.
  void push(const T& one) {
    if (end_ - first_ == window_) [[unlikely]]
      widen();
    all_[end_++ & (window_ - 1)] = one;
  }
  void pop() { first_++; }

 private:
  static constexpr std::size_t kWindow = 256;
  void widen() {
    // What stands where it would not be found any more moves into the new half.
    for (std::size_t i = first_; i != end_; i++)
      if (i & window_) all_[window_ + (i & (window_ - 1))] = all_[i & (window_ - 1)];
    window_ *= 2;
  }

  std::size_t capacity_;
  std::vector<T> all_;
  std::size_t window_;
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace rocebox::scr
