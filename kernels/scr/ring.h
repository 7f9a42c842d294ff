// SPDX-License-Identifier: BSD-3-Clause
// Ring: first in, first out, of a size that is fixed when it is made.
#pragma once
#include <cstddef>
#include <vector>

namespace rocebox::scr {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t size) : all_(size) {}
  bool empty() const { return first_ == end_; }
  bool full() const { return end_ - first_ == all_.size(); }
  T& front() { return all_[first_ % all_.size()]; }
  const T& front() const { return all_[first_ % all_.size()]; }
  void push(const T& one) { all_[end_++ % all_.size()] = one; }
  void pop() { first_++; }

 private:
  std::vector<T> all_;
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace rocebox::scr
