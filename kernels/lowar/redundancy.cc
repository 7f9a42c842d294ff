// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/redundancy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "kernels/lowar/limits.h"

namespace rocebox::lowar {
namespace {

// A setting is taken up where it leaves at most this share of the target, and left where it leaves more than the
// target: between the two it stays, so that chance does not move it to and fro.
constexpr double kMargin = 0.8;
// Where no setting is good enough, one must be this much better than the one in use; and than a cheaper one.
constexpr double kNotable = 0.5, kSame = 0.9;

// Calls `use` with each setting of the ladder, cheapest first, until that returns true.
template <class Use>
void climb(const Aim& aim, Use use) {
  if (use(Coding{})) return;
  for (unsigned n = kBlockPacketsMax; n >= 1; n /= 2) {
    if (1.0 / n > aim.redundancy_max) return;
    for (unsigned c = 1; c <= aim.c_max && n * c <= kBlockPacketsMax; c *= 2)
      if (use(Coding{static_cast<std::uint16_t>(n * c), static_cast<std::uint8_t>(c)})) return;
  }
}

std::optional<Coding> cheapest(const Loss& loss, const Aim& aim) {
  std::optional<Coding> result;
  climb(aim, [&](Coding coding) {
    if (residual_loss(coding, loss) > kMargin * aim.target_loss) return false;
    result = coding;
    return true;
  });
  return result;
}

Coding best(const Loss& loss, const Aim& aim) {
  Coding result;
  double least = loss.rate;
  climb(aim, [&](Coding coding) {
    const double left = residual_loss(coding, loss);
    if (left < least * kSame) result = coding, least = left;
    return false;
  });
  return result;
}

// The interleaving depths between those of the ladder count as the next smaller one.
std::size_t lag_of(unsigned c) { return std::min<std::size_t>(std::bit_width(c) - 1u, kLags.size() - 1); }

}  // namespace

double residual_loss(Coding coding, const Loss& loss) {
  const double rate = loss.rate;
  if (coding.off() || rate <= 0) return rate;
  const double data = std::max(1, (coding.r + coding.c - 1) / coding.c);
  const double stays = std::max(loss.after[lag_of(coding.c)], rate);  // a loss where the packet c before was lost
  const double ends = 1 - stays;
  const double good = rate < 1 ? 1 - rate * ends / (1 - rate) : 0;  // no loss where the packet c before came
  // All others came: of the share's first packet, those behind it; of the others, also those before.
  const double first = ends * std::pow(good, data - 1);
  const double other = data > 1 ? ends * ends * std::pow(good, data - 2) : 0;
  return rate * (1 - (first + (data - 1) * other) / data);
}

Coding choose(Coding current, const LossMeter& meter, const Aim& aim) {
  const Loss high = meter.high();
  const Loss mean = meter.mean();
  const std::optional<Coding> enough = cheapest(high, aim);
  if (residual_loss(current, meter.is_exact() ? mean : meter.low()) <= aim.target_loss)
    return enough && redundancy(*enough) < redundancy(current) ? *enough : current;
  if (enough) return *enough;
  if (const std::optional<Coding> likely = cheapest(mean, aim)) return *likely;
  const Coding least = best(mean, aim);
  return residual_loss(least, mean) < kNotable * residual_loss(current, mean) ? least : current;
}

}  // namespace rocebox::lowar
