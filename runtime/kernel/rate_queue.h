// SPDX-License-Identifier: BSD-3-Clause
// A transmitter of fixed rate and what waits before it, as one number: the time at which it becomes
// free.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/component/fields.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// Bytes of one packet at a transmitter, and of a queue: the bits of both times 10^9 fit into 64 bits, whatever a
/// capture claims about a packet's length.
inline constexpr std::uint64_t kRateQueueBytesMax = std::uint64_t{1} << 30;
static_assert(2 * kRateQueueBytesMax <= UINT64_MAX / 8'000'000'000, "see RateQueue");

/// Rates: below, one packet takes years; above, a byte takes less than a tenth of a picosecond.
inline constexpr std::uint64_t kRateMin = 1'000, kRateMax = 100'000'000'000'000;

/// Exact: the time is whole nanoseconds and a remainder in units of 1/rate ns, so no rounding ever
/// adds up.
class RateQueue {
 public:
  struct Free {
    Nanos ns = 0;
    std::uint64_t remainder = 0;  ///< in [0, rate): the fraction of a nanosecond behind ns
    /// The first whole nanosecond at which the last bit has been sent.
    Nanos rounded_up() const { return ns + (remainder != 0); }
  };

  /// `bits_per_second` 0 is a transmitter without limit; then only unlimited() may be called.
  explicit RateQueue(std::uint64_t bits_per_second) : rate_(bits_per_second) {}

  bool unlimited() const { return rate_ == 0; }

  /// Bytes that were accepted and have not yet been sent, rounded up; of a packet in transmission
  /// what is left.
  std::uint64_t occupancy(Nanos now) const {
    if (free_.ns < now) return 0;
    const std::uint64_t giga_bits = static_cast<std::uint64_t>(free_.ns - now) * rate_ + free_.remainder;
    return (giga_bits + kGigaBitsPerByte - 1) / kGigaBitsPerByte;
  }

  /// When the transmitter will be free again if it accepts `bytes` now.
  Free after(Nanos now, std::uint64_t bytes) const {
    Free free = free_.ns < now ? Free{now, 0} : free_;
    free.remainder += std::min(bytes, kRateQueueBytesMax) * kGigaBitsPerByte;
    free.ns += static_cast<Nanos>(free.remainder / rate_);
    free.remainder %= rate_;
    return free;
  }

  /// The same for a sender that takes its next packet when the one before has ended, which it learns of rounded up: a
  /// part of a nanosecond since then is not lost, or a port of 400 Gbit/s would send packets of 1 KiB 4% too slowly.
  Free after_the_last(Nanos now, std::uint64_t bytes) const {
    return after(free_.rounded_up() == now ? free_.ns : now, bytes);
  }

  void accept(Free free) { free_ = free; }

  /// What waits goes on waiting, and takes as long as the new rate needs for it.
  void change_rate(Nanos now, std::uint64_t bits_per_second) {
    if (bits_per_second == rate_) return;
    const std::uint64_t bytes = unlimited() ? 0 : occupancy(now);
    rate_ = bits_per_second;
    free_ = {now, 0};
    if (!unlimited()) free_ = after(now, bytes);
  }

 private:
  static constexpr std::uint64_t kGigaBitsPerByte = 8'000'000'000;  ///< bits * (ns in a second)
  std::uint64_t rate_;
  Free free_;
};

}  // namespace rocebox
