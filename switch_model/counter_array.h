// SPDX-License-Identifier: BSD-3-Clause
// CounterArray: packets and bytes by index, as the statistics ALUs of a stage keep them.
#pragma once
#include "switch_model/layout.h"

namespace rocebox::switch_model {

/// One pair of counters for each index and pipe, all zero at the start.
class CounterArray : public ResourceHandle {
 public:
  /// What one index has counted.
  struct Count {
    std::uint64_t packets = 0, bytes = 0;  ///< bytes on the wire, without FCS
  };

  /// Throws ConfigError; see Layout::declare.
  CounterArray(Layout& layout, std::string_view name, At at, std::uint64_t entries)
      : cells_(layout.pipes() * entries), entries_(entries), pipes_(layout.pipes()) {
    layout.declare(*this, {{}, std::string(name), ResourceKind::kCounters, at, entries, 0, kCellBits, 0, 0});
  }

  std::uint64_t entries() const { return entries_; }
  /// One packet of `bytes`. Programs go through Access::count.
  void count(unsigned pipe, std::uint64_t index, std::uint64_t bytes) {
    assert(index < entries_);
    Count& cell = cells_[pipe * entries_ + index];
    cell.packets++;
    cell.bytes += bytes;
  }

  // What the control plane does, between batches.
  /// The sum over all pipes.
  Count read(std::uint64_t index) const {
    Count sum;
    for (unsigned pipe = 0; pipe < pipes_; pipe++) {
      sum.packets += cells_[pipe * entries_ + index].packets;
      sum.bytes += cells_[pipe * entries_ + index].bytes;
    }
    return sum;
  }
  void clear(std::uint64_t index) {
    for (unsigned pipe = 0; pipe < pipes_; pipe++) cells_[pipe * entries_ + index] = {};
  }

 private:
  static constexpr unsigned kCellBits = 128;  // a word of SRAM: 64 bits of packets and 64 of bytes
  flows::ZeroedArray<Count> cells_;
  std::uint64_t entries_;
  unsigned pipes_;
};

}  // namespace rocebox::switch_model
