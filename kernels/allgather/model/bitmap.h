// SPDX-License-Identifier: BSD-3-Clause
// ChunkBitmap: which chunks of a subgroup have come. One worker alone writes it (IV-C).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace rocebox::allgather {

class ChunkBitmap {
 public:
  explicit ChunkBitmap(std::uint64_t bits) : bits_(bits), words_((bits + 63) / 64) {}

  std::uint64_t size() const { return bits_; }
  std::uint64_t count() const { return count_; }
  bool full() const { return count_ == bits_; }

  bool test(std::uint64_t bit) const { return words_[bit >> 6] >> (bit & 63) & 1; }
  /// Whether it was not set before.
  bool set(std::uint64_t bit) {
    std::uint64_t& word = words_[bit >> 6];
    const std::uint64_t mask = std::uint64_t{1} << (bit & 63);
    const bool is_new = !(word & mask);
    word |= mask;
    count_ += is_new;
    return is_new;
  }
  /// The first bit of [from, end) that is `value`; `end` when there is none.
  std::uint64_t find(bool value, std::uint64_t from, std::uint64_t end) const {
    while (from < end) {
      const std::uint64_t word = (value ? words_[from >> 6] : ~words_[from >> 6]) >> (from & 63);
      if (word) return std::min<std::uint64_t>(end, from + static_cast<unsigned>(std::countr_zero(word)));
      from = (from | 63) + 1;
    }
    return end;
  }
  /// Sets all bits that are set in `words`, which are as many.
  void merge(const std::uint64_t* words) {
    for (std::size_t i = 0; i < words_.size(); i++) {
      count_ += static_cast<unsigned>(std::popcount(words[i] & ~words_[i]));
      words_[i] |= words[i];
    }
  }
  void clear() {
    std::fill(words_.begin(), words_.end(), 0);
    count_ = 0;
  }

 private:
  std::uint64_t bits_, count_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace rocebox::allgather
