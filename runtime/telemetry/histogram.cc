// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/histogram.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

namespace rocebox {
namespace {

// Members that one thread writes while others read: plain moves, but no tearing and no race.
template <class T>
T load(const T& member) {
  return std::atomic_ref<T>(const_cast<T&>(member)).load(std::memory_order_relaxed);
}
template <class T>
void store(T& member, T value) {
  std::atomic_ref<T>(member).store(value, std::memory_order_relaxed);
}

}  // namespace

unsigned Histogram::bucket_of(std::uint64_t value) {
  constexpr std::uint64_t kSubs = 1u << kSubBits;
  if (value < kSubs) return static_cast<unsigned>(value);  // exact
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
  return (shift << kSubBits) + static_cast<unsigned>(value >> shift);
}

std::uint64_t Histogram::bucket_top(unsigned bucket) {
  constexpr unsigned kSubs = 1u << kSubBits;
  if (bucket < kSubs) return bucket;
  const unsigned shift = (bucket >> kSubBits) - 1;
  const std::uint64_t low = std::uint64_t{bucket - (shift << kSubBits)} << shift;
  return low + (std::uint64_t{1} << shift) - 1;
}

void Histogram::add(std::int64_t value) {
  value = std::max<std::int64_t>(value, 0);
  const std::uint64_t binned =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(value), (std::uint64_t{1} << kValueBits) - 1);
  std::uint32_t& bucket = buckets_[bucket_of(binned)];
  if (bucket != std::numeric_limits<std::uint32_t>::max()) store(bucket, bucket + 1);
  store(min_, count_ == 0 ? value : std::min(min_, value));
  store(max_, std::max(max_, value));
  store(sum_, sum_ + static_cast<std::uint64_t>(value));
  store(count_, count_ + 1);
}

void Histogram::add(const Histogram& other) {
  const std::uint64_t more = load(other.count_);
  if (more == 0) return;
  min_ = count_ ? std::min(min_, load(other.min_)) : load(other.min_);
  max_ = count_ ? std::max(max_, load(other.max_)) : load(other.max_);
  count_ += more;
  sum_ += load(other.sum_);
  for (unsigned i = 0; i < kBuckets; i++)
    buckets_[i] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{buckets_[i]} + load(other.buckets_[i]), UINT32_MAX));
}

std::int64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const auto permille = static_cast<std::uint64_t>(std::lround(std::clamp(percent, 0.0, 100.0) * 10));
  const std::uint64_t rank = nearest_rank(count_, permille);
  std::uint64_t below = 0;
  for (unsigned bucket = 0; bucket < kBuckets - 1; bucket++) {
    below += buckets_[bucket];
    if (below >= rank) return std::clamp(static_cast<std::int64_t>(bucket_top(bucket)), min_, max_);
  }
  return max_;  // the last bucket has no top
}

}  // namespace rocebox
