// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/message_meter.h"

#include <algorithm>
#include <bit>

namespace rocebox::lowar {
namespace {

// The window forgets its older half when it is full. Short enough that other lengths are noticed soon; a message that
// is longer than half of it is all that is known.
constexpr std::uint32_t kWindow = 16384, kLongest = kWindow / 2;
// Counts are of half packets: halving loses up to one, of a count that is about c / r of the window.
constexpr unsigned kUnit = 2;
static_assert(kUnit * (kWindow + kLongest) <= 0xFFFF && kLongest % kBlockPacketsMax == 0);
constexpr std::uint32_t kRetreatPackets = 65536;
constexpr std::uint8_t kRetreatsMax = 10;

}  // namespace

void MessageMeter::ended(std::uint32_t packets) {
  since_look_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(since_look_ + std::min(packets, kWindow), kWindow));
  wait_ -= std::min(wait_, packets);
  if (packets == 1) [[likely]] {
    if (packets_ < kUnit * kWindow) {
      packets_ += kUnit;
      for (std::uint16_t& first : first_) first += kUnit;
      return;
    }
  } else if (packets >= kLongest) {
    packets_ = 0;
    first_ = {};
    packets = kLongest - kBlockPacketsMax + packets % kBlockPacketsMax;
  }
  // Rounded so that a cost is never taken for more than it is: one that is just allowed stays so.
  if (packets_ >= kUnit * kWindow) {
    packets_ = static_cast<std::uint16_t>((packets_ + 1) / 2);
    for (std::uint16_t& first : first_) first /= 2;
  }
  packets_ = static_cast<std::uint16_t>(packets_ + kUnit * packets);
  for (unsigned b = 1; b <= kLevels; b++) {
    const std::uint32_t whole = packets >> b, rest = packets & ((1u << b) - 1);
    for (unsigned a = 0; a < b; a++) {
      std::uint16_t& first = first_[index(b, a)];
      first = static_cast<std::uint16_t>(first + kUnit * ((whole << a) + std::min(rest, 1u << a)));
    }
  }
}

double MessageMeter::share(unsigned r, unsigned c) const {
  const double least = static_cast<double>(c) / r;
  if (c >= r) return 1;
  if (empty()) return least;
  const unsigned b = static_cast<unsigned>(std::countr_zero(r)), a = static_cast<unsigned>(std::countr_zero(c));
  return std::max(least, static_cast<double>(first_[index(b, a)]) / packets_);
}

double MessageMeter::cost(Coding coding) const {
  if (coding.off()) return 0;
  // Between powers of two the cost goes as 1 / r, and as c.
  const unsigned r = std::bit_ceil(coding.r), c = std::bit_floor(unsigned{coding.c});
  const double shorter = static_cast<double>(r) / coding.r - 1, deeper = static_cast<double>(coding.c) / c - 1;
  const auto of_length = [&](unsigned depth) {
    const double longest = share(r, depth);
    return shorter > 0 ? longest + shorter * (share(r / 2, depth) - longest) : longest;
  };
  const double least = of_length(c);
  return deeper > 0 ? least + deeper * (of_length(2 * c) - least) : least;
}

bool MessageMeter::look(Coding current, double redundancy_max) {
  since_look_ = 0;
  const double blocks = share(kBlockPacketsMax, 1);
  return cost(current) > redundancy_max || blocks > 2 * decided_ || blocks < decided_ / 2;
}

void MessageMeter::retreat() {
  if (retreats_ < kRetreatsMax) retreats_++;
  wait_ = kRetreatPackets << retreats_;
}

}  // namespace rocebox::lowar
