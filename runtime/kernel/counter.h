// SPDX-License-Identifier: BSD-3-Clause
// Counters: named members with a sentence, written by one thread, read by any. The type of one says what its number
// means.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace rocebox {

/// What the number of a counter means. How the shards of a run are summed up, the type in OpenMetrics and whether there
/// is a rate follow from it.
enum class CounterKind : std::uint8_t {
  kCount,  ///< events, packets or bytes so far: only grows
  kLevel,  ///< how much there is now: grows and shrinks
  kPeak,   ///< a high-water mark, the highest level so far
};

constexpr std::string_view kind_name(CounterKind kind) {
  return kind == CounterKind::kCount ? "count" : kind == CounterKind::kLevel ? "level" : "peak";
}

/// A number that one thread writes and any reads. A relaxed load and store cost a plain add.
class CounterValue {
 public:
  std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

 protected:
  void write(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A count of events.
class Counter : public CounterValue {
 public:
  static constexpr CounterKind kKind = CounterKind::kCount;
  void add(std::uint64_t n = 1) { write(read() + n); }
};

/// How much there is now.
class Level : public CounterValue {
 public:
  static constexpr CounterKind kKind = CounterKind::kLevel;
  void set(std::uint64_t n) { write(n); }
};

/// A high-water mark.
class Peak : public CounterValue {
 public:
  static constexpr CounterKind kKind = CounterKind::kPeak;
  /// Remembers `n` when it is the highest so far.
  void raise_to(std::uint64_t n) {
    if (n > read()) write(n);
  }
};

/// Hands out counters. Their addresses stay valid for the life of the instance.
class Stats {
 public:
  /// `name` is snake_case, and mlx5's hw_counters name where it means the same; drops begin with `drop_`.
  /// `sentence` says what one count means. Asking twice for a name gives the same counter; asking for it as another
  /// kind is a mistake of the program: std::logic_error.
  virtual Counter& counter(std::string_view name, std::string_view sentence) = 0;
  /// The same for what grows and shrinks.
  virtual Level& level(std::string_view name, std::string_view sentence) = 0;
  /// The same for a high-water mark; its name ends in `_max`, so that readers see what it is.
  virtual Peak& peak(std::string_view name, std::string_view sentence) = 0;

 protected:
  ~Stats() = default;
};

}  // namespace rocebox
