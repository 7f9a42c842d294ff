// SPDX-License-Identifier: BSD-3-Clause
// MeterArray: two-rate three-color meters (RFC 2698, color-blind), on the time of the call.
#pragma once
#include <algorithm>
#include <vector>

#include "runtime/kernel/rate_queue.h"
#include "switch_model/layout.h"

namespace rocebox::switch_model {

enum class Color : std::uint8_t { kGreen, kYellow, kRed };

/// Rates in bits per second, bursts in bytes.
struct MeterRates {
  std::uint64_t committed = 0, peak = 0;              ///< CIR, PIR: at least kRateMin each, PIR not below CIR
  std::uint64_t committed_burst = 0, peak_burst = 0;  ///< CBS, PBS: at most kRateQueueBytesMax
};

/// One meter for each index and pipe. Exact: tokens are billionths of a bit.
class MeterArray : public ResourceHandle {
 public:
  /// `rates`: of all indices, until set_rates() gives them others.
  MeterArray(Layout& layout, std::string_view name, At at, std::uint64_t entries, const MeterRates& rates)
      : rates_(entries, rates), cells_(layout.pipes() * entries), entries_(entries), pipes_(layout.pipes()) {
    layout.declare(*this, {{}, std::string(name), ResourceKind::kMeter, at, entries, 0, kCellBits, 1, 0});
  }

  std::uint64_t entries() const { return entries_; }
  /// The color of a packet of `bytes` that passes now. Programs go through Access::meter.
  Color execute(unsigned pipe, std::uint64_t index, std::uint64_t bytes, Nanos now) {
    Cell& cell = cells_[pipe * entries_ + index];
    const MeterRates& rates = rates_[index];
    // Kept as what is missing from a full bucket, so that all zero is a full one.
    cell.committed = refill(cell.committed, rates.committed, now - cell.at);
    cell.peak = refill(cell.peak, rates.peak, now - cell.at);
    cell.at = now;
    const std::uint64_t tokens = std::min(bytes, kRateQueueBytesMax) * kTokensPerByte;
    if (cell.peak + tokens > rates.peak_burst * kTokensPerByte) return Color::kRed;
    cell.peak += tokens;
    if (cell.committed + tokens > rates.committed_burst * kTokensPerByte) return Color::kYellow;
    cell.committed += tokens;
    return Color::kGreen;
  }

  // What the control plane does, between batches.
  /// A meter keeps its tokens, as many as its new buckets hold.
  void set_rates(std::uint64_t index, const MeterRates& rates) {
    rates_[index] = rates;
    for (unsigned pipe = 0; pipe < pipes_; pipe++) {
      Cell& cell = cells_[pipe * entries_ + index];
      cell.committed = std::min(cell.committed, rates.committed_burst * kTokensPerByte);
      cell.peak = std::min(cell.peak, rates.peak_burst * kTokensPerByte);
    }
  }
  /// Full buckets.
  void clear(std::uint64_t index) {
    for (unsigned pipe = 0; pipe < pipes_; pipe++) cells_[pipe * entries_ + index] = {};
  }

 private:
  static constexpr unsigned kCellBits = 128;  // of SRAM, as meters of two rates take
  static constexpr std::uint64_t kTokensPerByte = 8'000'000'000;
  struct Cell {
    std::uint64_t committed, peak;
    Nanos at;
  };
  static std::uint64_t refill(std::uint64_t missing, std::uint64_t rate, Nanos spent) {
    const auto time = static_cast<std::uint64_t>(spent);
    return time > missing / rate ? 0 : missing - time * rate;
  }

  std::vector<MeterRates> rates_;
  flows::ZeroedArray<Cell> cells_;
  std::uint64_t entries_;
  unsigned pipes_;
};

}  // namespace rocebox::switch_model
