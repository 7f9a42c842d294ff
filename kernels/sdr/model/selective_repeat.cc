// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/model/selective_repeat.h"

#include <algorithm>

namespace rocebox::sdr {
namespace {

constexpr double kStepsAnOverhead = 1024, kNegligible = 1e-10;

}  // namespace

// P(T <= t) is the product over chunks of 1 - p^(n+1), n = floor((t - RTT - i T) / O) being the retransmissions that
// chunk i has time for: chunks of one n stand side by side, so the product goes over n.
double SelectiveRepeat::within(double time, double chunks) const {
  const double injection = channel_.injection(), left = time - channel_.rtt;
  if (left < chunks * injection * (1 - 1e-15)) return 0;
  const double most = std::floor(std::max(0.0, left - injection) / overhead_);  // of the first chunk
  double log_all = 0, lower = 0;                                                // chunks up to `lower` are counted
  for (double n = most; n >= 0 && lower < chunks; n--) {
    const double upper = std::min(chunks, std::max(lower, (left - n * overhead_) / injection));
    const double lost = std::pow(channel_.drop, n + 1);
    if (lost > 0) log_all += (upper - lower) * std::log1p(-lost);
    lower = upper;
  }
  return std::exp(log_all);
}

// The integral of 1 - P(T <= t). That falls, so a sum of steps is no farther from it than one step.
double SelectiveRepeat::mean(double chunks) const {
  const double least = channel_.lossless(chunks), step = overhead_ / kStepsAnOverhead;
  double sum = 0;
  for (double at = step / 2;; at += step) {
    const double missing = 1 - within(least + at, chunks);
    if (missing < kNegligible) return least + sum * step;
    sum += missing;
  }
}

double SelectiveRepeat::quantile(double share, double chunks) const {
  double low = channel_.lossless(chunks), high = low;
  if (within(low, chunks) >= share) return low;
  while (within(high, chunks) < share) high += overhead_;
  while (high - low > overhead_ * 1e-6) {
    const double middle = (low + high) / 2;
    (within(middle, chunks) < share ? low : high) = middle;
  }
  return high;
}

// Of all chunks that were lost n times or more the last one counts, and it is found from the end: chunks before the
// last that was lost n times were lost n + 1 times with probability p^(n+1) each.
double SelectiveRepeat::sample(double chunks, Random& random) const {
  const double injection = channel_.injection(), drop = channel_.drop;
  double latest = chunks * injection, losses = 1;
  double place = chunks - random.failures_before_success(drop);
  while (place >= 1) {
    if (drop < 1) losses += random.failures_before_success(1 - drop);
    latest = std::max(latest, place * injection + losses * overhead_);
    losses++;
    place -= 1 + random.failures_before_success(std::pow(drop, losses));
  }
  return latest + channel_.rtt;
}

}  // namespace rocebox::sdr
