// SPDX-License-Identifier: BSD-3-Clause
// ByOutput: the packets of a batch by the output that each leaves by.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "runtime/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// A list for each output, in the order of the batch. A switch has many outputs, and a batch leaves by few: only what
/// is used is touched.
struct ByOutput {
  /// verdicts: of at most kBatchMax packets.
  explicit ByOutput(std::span<const Port> verdicts) {
    for (std::size_t i = 0; i < verdicts.size(); i++) {
      const Port out = verdicts[i];
      if (is_used(out))
        next[last[out]] = static_cast<std::uint8_t>(i);
      else
        first[out] = static_cast<std::uint8_t>(i);
      use(out);
      last[out] = static_cast<std::uint8_t>(i);
    }
  }

  bool is_used(Port out) const { return used[out >> 6] >> (out & 63) & 1; }
  void use(Port out) { used[out >> 6] |= std::uint64_t{1} << (out & 63); }
  /// Calls `function(Port)` for those that are used and below `outputs`, in ascending order.
  template <class Function>
  void for_each(std::size_t outputs, Function&& function) const {
    for (unsigned word = 0; word < used.size(); word++)
      for (std::uint64_t bits = used[word]; bits; bits &= bits - 1) {
        const unsigned out = 64 * word + static_cast<unsigned>(std::countr_zero(bits));
        if (out < outputs) function(static_cast<Port>(out));
      }
  }

  std::array<std::uint64_t, 4> used{};        ///< outputs, as bits
  std::array<std::uint8_t, 256> first, last;  ///< packets, of outputs that a verdict named
  std::array<std::uint8_t, kBatchMax> next;   ///< the packet that leaves by the same output behind each but the last
};

}  // namespace rocebox
