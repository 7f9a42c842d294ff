// SPDX-License-Identifier: BSD-3-Clause
// A log-linear histogram of durations: fixed size, no allocation, all zero bytes when empty.
#pragma once
#include <array>
#include <cstdint>

namespace rocebox {

/// The rank, from 1, of the least of `count` sorted values that `permille` thousandths of them do not exceed. Of
/// integers: in floating point 99.9% of 1000 are a little more than 999.
constexpr std::uint64_t nearest_rank(std::uint64_t count, std::uint64_t permille) {
  const std::uint64_t rank = (count * permille + 999) / 1000;
  return rank == 0 ? 1 : rank;
}

/// Counts values from 0 to 2^40 - 1 (18 minutes in nanoseconds) in buckets of at most 1/16 of their
/// value (as in HdrHistogram); larger values count in the last bucket, negative ones as 0. Count,
/// sum, least and greatest are exact.
///
/// One thread adds values; others may meanwhile add all of it to a histogram of their own, which may
/// lack the last values in part.
class Histogram {
 public:
  static constexpr unsigned kSubBits = 4;     ///< 16 buckets for each power of two: a relative width of 1/16
  static constexpr unsigned kValueBits = 40;  ///< values below 2^40 have a bucket of their own size
  static constexpr unsigned kBuckets = (kValueBits - kSubBits + 1) << kSubBits;

  void add(std::int64_t value);
  /// All that another histogram counted.
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }
  std::int64_t min() const { return min_; }  ///< 0 when empty
  std::int64_t max() const { return max_; }  ///< 0 when empty
  double mean() const { return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0; }

  /// The value that `percent` (0 to 100, in tenths) of the values do not exceed, by nearest rank: the top of
  /// its bucket, so never below the true one and at most 1/16 above; clipped to min() and max(). 0
  /// when empty.
  std::int64_t percentile(double percent) const;

 private:
  static unsigned bucket_of(std::uint64_t value);
  static std::uint64_t bucket_top(unsigned bucket);

  std::uint64_t count_ = 0, sum_ = 0;
  std::int64_t min_ = 0, max_ = 0;
  std::array<std::uint32_t, kBuckets> buckets_{};  // a full bucket stays full
};

}  // namespace rocebox
