// SPDX-License-Identifier: BSD-3-Clause
// DeviceSet: numbers of devices, taken out from the lowest to the highest.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocebox {

/// A bit a device, and a bit for each word of these: an instant of one device costs the same among ten thousand.
class DeviceSet {
 public:
  /// Room for the numbers below `devices`.
  void resize(std::size_t devices) {
    words_.resize(devices / kBits + 1);
    used_words_.resize(words_.size() / kBits + 1);
  }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  void add(unsigned device) {
    std::uint64_t& word = words_[device / kBits];
    const std::uint64_t bit = std::uint64_t{1} << device % kBits;
    count_ += !(word & bit);
    word |= bit;
    used_words_[device / kBits / kBits] |= std::uint64_t{1} << device / kBits % kBits;
  }
  /// The lowest; there must be one.
  unsigned lowest() const {
    std::size_t i = 0;
    while (!used_words_[i]) i++;
    const std::size_t word = i * kBits + static_cast<unsigned>(std::countr_zero(used_words_[i]));
    return static_cast<unsigned>(word * kBits) + static_cast<unsigned>(std::countr_zero(words_[word]));
  }
  void remove(unsigned device) {
    std::uint64_t& word = words_[device / kBits];
    word &= ~(std::uint64_t{1} << device % kBits);
    if (!word) used_words_[device / kBits / kBits] &= ~(std::uint64_t{1} << device / kBits % kBits);
    count_--;
  }

 private:
  static constexpr unsigned kBits = 64;
  std::vector<std::uint64_t> words_, used_words_;
  std::size_t count_ = 0;
};

}  // namespace rocebox
