// SPDX-License-Identifier: BSD-3-Clause
// Counters: named members with a sentence, written by one thread, read by any.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace rocebox {

/// One event count. A relaxed load and store cost a plain add; observers read it from other threads.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  /// Remembers the largest value seen; for high-water marks, whose names end in `_max`.
  void raise_to(std::uint64_t n) {
    if (n > value_.load(std::memory_order_relaxed)) value_.store(n, std::memory_order_relaxed);
  }
  std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Hands out counters. Their addresses stay valid for the life of the instance.
class Stats {
 public:
  /// `name` is snake_case, and mlx5's hw_counters name where it means the same; drops begin with `drop_`.
  /// `sentence` says what one count means. Asking twice for a name gives the same counter.
  virtual Counter& counter(std::string_view name, std::string_view sentence) = 0;

 protected:
  ~Stats() = default;
};

}  // namespace rocebox
