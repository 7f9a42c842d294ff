// SPDX-License-Identifier: BSD-3-Clause
// DeviceSet: numbers of devices, taken out from the lowest to the highest.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
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
  bool contains(unsigned device) const { return words_[device / kBits] >> device % kBits & 1; }
  /// The lowest; there must be one.
  unsigned lowest() const {
    std::size_t i = 0;
    while (!used_words_[i]) i++;
    const std::size_t word = i * kBits + static_cast<unsigned>(std::countr_zero(used_words_[i]));
    return static_cast<unsigned>(word * kBits) + static_cast<unsigned>(std::countr_zero(words_[word]));
  }
  /// Takes out all, from the lowest to the highest, and hands each to `each`, which adds none.
  template <class Each>
  void take_all(const Each& each) {
    for (std::size_t i = 0; count_ != 0; i++)
      for (std::uint64_t used = std::exchange(used_words_[i], 0); used; used &= used - 1) {
        const std::size_t word = i * kBits + static_cast<unsigned>(std::countr_zero(used));
        for (std::uint64_t bits = std::exchange(words_[word], 0); bits; bits &= bits - 1) {
          count_--;
          each(static_cast<unsigned>(word * kBits) + static_cast<unsigned>(std::countr_zero(bits)));
        }
      }
  }

 private:
  static constexpr unsigned kBits = 64;
  std::vector<std::uint64_t> words_, used_words_;
  std::size_t count_ = 0;
};

}  // namespace rocebox
