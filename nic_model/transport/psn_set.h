// SPDX-License-Identifier: BSD-3-Clause
// PsnSet: which PSNs of a window have come, one bit each. PsnFifo: PSNs in a row.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace rocebox::nic_model {

/// PSNs from a first one, which only moves on, up to `window` of them. A PSN's bit is its own number modulo the size,
/// so moving on costs nothing.
class PsnSet {
 public:
  /// No room at all until resize().
  void resize(std::uint32_t window) {
    mask_ = std::bit_ceil(window < 64 ? 64u : window) - 1;
    words_.assign((std::size_t{mask_} + 1) / 64, 0);
    size_ = 0;
  }
  std::uint32_t window() const { return words_.empty() ? 0 : mask_ + 1; }
  bool has(std::uint32_t psn) const { return words_[(psn & mask_) / 64] >> (psn & 63) & 1; }
  bool empty() const { return size_ == 0; }
  void add(std::uint32_t psn) {
    size_ += !has(psn);
    words_[(psn & mask_) / 64] |= std::uint64_t{1} << (psn & 63);
  }
  void remove(std::uint32_t psn) {
    size_ -= has(psn);
    words_[(psn & mask_) / 64] &= ~(std::uint64_t{1} << (psn & 63));
  }
  void clear() {
    words_.assign(words_.size(), 0);
    size_ = 0;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t mask_ = 0, size_ = 0;
};

/// PSNs, first in first out, in a ring that grows to what has waited at once.
class PsnFifo {
 public:
  bool empty() const { return first_ == end_; }
  std::uint32_t size() const { return end_ - first_; }
  void push(std::uint32_t psn) {
    if (size() == ring_.size()) grow();
    ring_[end_++ & (ring_.size() - 1)] = psn;
  }
  std::uint32_t pop() { return ring_[first_++ & (ring_.size() - 1)]; }
  void clear() { first_ = end_ = 0; }

  /// Room for so many.
  std::size_t room() const { return ring_.size(); }

 private:
  void grow() {
    std::vector<std::uint32_t> more(ring_.empty() ? 16 : 2 * ring_.size());
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; i++) more[i] = pop();
    ring_ = std::move(more);
    first_ = 0;
    end_ = count;
  }

  std::vector<std::uint32_t> ring_;
  std::uint32_t first_ = 0, end_ = 0;
};

}  // namespace rocebox::nic_model
