// SPDX-License-Identifier: BSD-3-Clause
// ByOutput: the packets of a batch by the output that each leaves by.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// The packets of each output side by side, in the order of the batch: a counting sort, without a branch that depends
/// on where a packet goes.
struct ByOutput {
  /// verdicts: of `packets`, at most kBatchMax.
  ByOutput(std::span<const Port> verdicts, const Packet* packets) {
    for (const Port out : verdicts) {
      use(out);
      end[out]++;
    }
    std::uint8_t before = 0;
    for_each(256, [&](Port out) { end[out] = static_cast<std::uint8_t>(std::exchange(before, before + end[out])); });
    for (std::size_t i = 0; i < verdicts.size(); i++) sorted[end[verdicts[i]]++] = packets[i];
  }

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

  std::array<std::uint64_t, 4> used{};   ///< outputs, as bits
  std::array<std::uint8_t, 256> end{};   ///< behind the last packet of each output in `sorted`
  std::array<Packet, kBatchMax> sorted;  ///< by output, ascending
};

}  // namespace rocebox
