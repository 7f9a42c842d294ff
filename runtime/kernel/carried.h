// SPDX-License-Identifier: BSD-3-Clause
// What a workload has carried: of how much in all, and when.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/component/fields.h"
#include "runtime/kernel/kernel.h"

namespace rocebox {

/// Bytes over time in bounded memory: steps are twice as long whenever there is no room.
class BytesOverTime {
 public:
  static constexpr std::size_t kSteps = 256;

  /// Time counts from `begin` on. Before add().
  void start(Nanos begin) { begin_ = end_ = begin; }
  /// `bytes` were carried evenly from `from` to `to`; not before the beginning.
  void add(Nanos from, Nanos to, std::uint64_t bytes) {
    while (to - begin_ >= static_cast<Nanos>(kSteps) * width_) halve();
    end_ = std::max(end_, to);
    const auto place = [this](Nanos at) { return static_cast<std::size_t>((at - begin_) / width_); };
    const std::size_t last = place(to);
    if (from >= to) {
      steps_[last] += static_cast<double>(bytes);
      return;
    }
    const double rate = static_cast<double>(bytes) / static_cast<double>(to - from);
    for (std::size_t i = place(from); i <= last; i++) {
      const Nanos step = begin_ + static_cast<Nanos>(i) * width_;
      steps_[i] += rate * static_cast<double>(std::min(to, step + width_) - std::max(from, step));
    }
  }
  /// Calls `each` with the beginning, the end and the bytes of each step; the last one ends with what was added.
  template <class Each>
  void for_each(const Each& each) const {
    Nanos from = begin_;
    for (std::size_t i = 0; i < kSteps && from <= end_; i++, from += width_)
      each(from, std::min(end_, from + width_), steps_[i]);
  }

 private:
  void halve() {
    for (std::size_t i = 0; i < kSteps / 2; i++) steps_[i] = steps_[2 * i] + steps_[2 * i + 1];
    std::fill(steps_.begin() + kSteps / 2, steps_.end(), 0.0);
    width_ *= 2;
  }

  std::array<double, kSteps> steps_{};
  Nanos begin_ = 0, end_ = 0, width_ = kMicrosecond;
};

/// What a workload may be beside, where it knows this.
class Carrier {
 public:
  /// Payload that has come to its receivers, of all that ever will.
  struct Share {
    double bytes = 0;
    double of = 0;  ///< 0: it does not know
  };
  virtual Share share_carried() const = 0;
  /// When it carried what it has, where its transfers (Workload::flows) do not say; else null.
  virtual const BytesOverTime* over_time() const { return nullptr; }

 protected:
  ~Carrier() = default;
};

/// What a workload may be beside, where receivers' memory says what it holds of transfers that are under way.
class Placer {
 public:
  /// Payload that is with its receivers by now. Read again and again, for what was carried over time.
  virtual double bytes_placed() const = 0;
  /// Of transfer `number` (Workload::flows) alone.
  virtual std::uint64_t bytes_placed(std::size_t number) const = 0;

 protected:
  ~Placer() = default;
};

}  // namespace rocebox
