// SPDX-License-Identifier: BSD-3-Clause
// ByOutput: the packets of a batch by the output that each leaves by.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// The packets of each output side by side, in the order of the batch. One pass over the verdicts, eight at a time, for
/// each output that is used: no counter in memory, whose last store the next packet would wait for.
class ByOutput {
  static_assert(kBatchMax <= 64 && kBatchMax % 8 == 0, "a packet is a bit, and whole words of verdicts are read");

 public:
  /// verdicts: of `packets`, size of them; whole words of eight are read.
  ByOutput(const Port* verdicts, const Packet* packets, unsigned size) : packets_(packets), size_(size) {
    for (unsigned i = 0; i < size; i += 8) std::memcpy(&words_[i / 8], verdicts + i, 8);
    std::uint64_t left = size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    while (left) {
      const Port out = verdicts[std::countr_zero(left)];
      use(out);
      left &= ~where(out);
    }
  }

  void use(Port out) { used_[out >> 6] |= std::uint64_t{1} << (out & 63); }
  /// Calls `function(Port)` for those that are used and below `outputs`, in ascending order.
  template <class Function>
  void for_each(std::size_t outputs, Function&& function) const {
    for (unsigned word = 0; word < used_.size(); word++)
      for (std::uint64_t bits = used_[word]; bits; bits &= bits - 1) {
        const unsigned out = 64 * word + static_cast<unsigned>(std::countr_zero(bits));
        if (out < outputs) function(static_cast<Port>(out));
      }
  }
  /// Those that leave by `out`, until the next call.
  std::span<Packet> of(Port out) {
    std::size_t count = 0;
    for (std::uint64_t bits = where(out); bits; bits &= bits - 1) of_one_[count++] = packets_[std::countr_zero(bits)];
    return {of_one_.data(), count};
  }

 private:
  // Packets that leave by `out`, as bits. Eight verdicts at once: bytes that are equal become 0, those that are 0
  // become 0x80, and a product brings the eight high bits together.
  std::uint64_t where(Port out) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kLow = 0x7F * kOnes;
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < size_; i += 8) {
      const std::uint64_t differs = words_[i / 8] ^ kOnes * out;
      const std::uint64_t equal = ~(((differs & kLow) + kLow) | differs | kLow);
      bits |= ((equal >> 7) * 0x0102040810204080 >> 56) << i;
    }
    return size_ == 64 ? bits : bits & ((std::uint64_t{1} << size_) - 1);
  }

  const Packet* packets_;
  unsigned size_;
  std::array<std::uint64_t, 4> used_{};  // outputs, as bits
  // In unions, since else all would be set to null for each batch.
  union {
    std::array<std::uint64_t, kBatchMax / 8> words_;  // verdicts
  };
  union {
    std::array<Packet, kBatchMax> of_one_;
  };
};

}  // namespace rocebox
