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
// Where no setting is good enough, one must be this much better than the one in use; and than a cheaper one. A cheaper
// one must be that much cheaper.
constexpr double kNotable = 0.5, kSame = 0.9;
// Costs that differ by less are equal.
constexpr double kEqual = 0.99;

// The setting of the ladder that stands for another one: as long a block or a longer one, as many repair packets or
// fewer.
Coding on_ladder(Coding coding) {
  return {std::bit_ceil(coding.r), static_cast<std::uint8_t>(std::bit_floor(unsigned{coding.c}))};
}

// The interleaving depths between those of the ladder count as the next smaller one.
std::size_t lag_of(unsigned c) { return std::min<std::size_t>(std::bit_width(c) - 1u, kLags.size() - 1); }

// Losses c packets apart as a chain: what one share of a block loses for good.
struct Chain {
  Chain(const Loss& loss, unsigned c)
      : stays(std::max(loss.after[lag_of(c)], loss.rate)),
        ends(1 - stays),
        good(loss.rate < 1 ? 1 - loss.rate * ends / (1 - loss.rate) : 0) {}
  // Of n packets, for each packet that the link loses, where `far` is good^(n-1) and `near` good^(n-2): the share's
  // first packet is repaired when those behind it came, the others when also those before did.
  double left(double n, double far, double near) const { return n - ends * far - (n - 1) * ends * ends * near; }
  double stays;  // a loss where the packet c before was lost
  double ends;
  double good;  // no loss where the packet c before came
};

double long_messages(Coding coding, const Loss& loss) {
  const Chain chain(loss, coding.c);
  const double data = (coding.r + coding.c - 1) / coding.c;
  if (data <= 1) return loss.rate * chain.stays;
  return loss.rate * chain.left(data, std::pow(chain.good, data - 1), std::pow(chain.good, data - 2)) / data;
}

// Repair packets that are lost with the last packet of their share, for a packet. They follow the block's last packet:
// of k packets fewer than c, each has its repair packet k packets behind it; of the last k mod c packets of others so
// many behind, and the other shares farther than c. Lengths between powers of two are taken for as many of each.
double repairs_lost(unsigned r, unsigned c, const Loss& loss, const MessageMeter& messages) {
  const auto lost = [&](unsigned k) { return k * std::max(loss.after[lag_of(k)], loss.rate); };
  const double groups = messages.share(c, 1),
               blocks = messages.share(r, 1);  // groups of c; each block's last one counts
  double sum = groups * lost(1), packets = c > 1 ? groups : 1;
  for (unsigned k = 2; k <= c; k *= 2) {
    const double more = messages.share(c, k);
    sum += std::max(more - packets, 0.0) / (k / 2) * (lost(k) - lost(k / 2));
    packets = more;
  }
  const double inner = std::max(groups - blocks, 0.0);
  const double farther = std::max(messages.share(r, c) - 1 + c * inner, 0.0);
  return sum - inner * lost(c) + farther * lost(c) / c;
}

// Of a setting of the ladder. A share has a packet more for each packet of the block that is not among its first c, and
// the packets from the k-th to the 2k-th of shares are counted; within, they are taken for evenly spread.
double on_messages(Coding coding, const Loss& loss, const MessageMeter& messages) {
  const unsigned r = coding.r, c = coding.c;
  const Chain chain(loss, c);
  double packets = messages.share(r, c), left = chain.stays, far = 1;
  double sum = repairs_lost(r, c, loss, messages);
  for (unsigned n = 2; n * c <= r; n *= 2) {
    const double near = far * far;
    far = near * chain.good;
    const double more = messages.share(r, n * c), longer = chain.left(n, far, near);
    sum += std::max(more - packets, 0.0) / (n / 2) * (longer - left);
    packets = more;
    left = longer;
  }
  return loss.rate * std::clamp(sum, 0.0, 1.0);
}

// Between the data packets of two blocks lie repair packets, whose losses nobody counts: what the meter takes for k
// packets apart is farther where a block ends between. The losses that follow a loss for certain, by `low`, are taken
// for bursts of geometric length, which were seen from so far; where no block is so long, at least for what follows
// from the shorter distance.
Loss on_link(Loss loss, const Loss& low, Coding coding, const MessageMeter& messages) {
  if (coding.off()) return loss;
  const Coding near = on_ladder(coding);
  const double blocks = messages.share(near.r, 1), repairs = messages.share(near.r, near.c) / blocks;
  double shorter = 0;
  for (std::size_t i = 0; i < kLags.size(); i++) {
    const double ends = kLags[i] * blocks, across = std::min(ends, 1.0);
    const double farther = repairs * std::max(ends, 1.0) / kLags[i];
    const double seen = std::max(low.after[i] - low.rate, 0.0);
    double follow = seen;
    for (unsigned step = 0; step < 4 && seen > 0; step++)
      follow = std::min(1.0, std::sqrt(follow * seen / (1 - across + across * std::pow(follow, farther))));
    if (i > 0 && ends >= 1) follow = std::max(follow, shorter * shorter);
    loss.after[i] = std::min(1.0, loss.after[i] + follow - seen);
    shorter = follow;
  }
  return loss;
}

// Calls `use` with each setting of the ladder that may be paid, and its cost.
template <class Use>
void climb(const Aim& aim, const MessageMeter& messages, Use use) {
  const double limit = messages.limit(aim.redundancy_max);
  for (unsigned c = 1; c <= aim.c_max; c *= 2)
    for (unsigned r = c; r <= kBlockPacketsMax; r *= 2) {
      const Coding coding{static_cast<std::uint16_t>(r), static_cast<std::uint8_t>(c)};
      if (const double cost = messages.cost(coding); cost <= limit) use(coding, cost);
    }
}

// The cheapest that leaves at most so much.
std::optional<Coding> cheapest(const Loss& loss, double most, const MessageMeter& messages, const Aim& aim) {
  std::optional<Coding> result;
  if (loss.rate <= most) return Coding{};
  double least = 2;  // more than any costs
  climb(aim, messages, [&](Coding coding, double cost) {
    if (cost < kEqual * least && residual_loss(coding, loss, messages) <= most) result = coding, least = cost;
  });
  return result;
}

Coding best(const Loss& loss, const MessageMeter& messages, const Aim& aim) {
  double least = loss.rate;
  climb(aim, messages, [&](Coding coding, double) { least = std::min(least, residual_loss(coding, loss, messages)); });
  return cheapest(loss, least / kSame, messages, aim).value_or(Coding{});
}

}  // namespace

double residual_loss(Coding coding, const Loss& loss, const MessageMeter& messages) {
  if (coding.off() || loss.rate <= 0) return loss.rate;
  const Coding near = on_ladder(coding);
  if (near == coding) return on_messages(coding, loss, messages);
  const double like = long_messages(near, loss), whole = long_messages(coding, loss);
  return like > 0 ? std::min(loss.rate, whole * on_messages(near, loss, messages) / like) : whole;
}

Coding choose(Coding current, const LossMeter& meter, const MessageMeter& messages, const Aim& aim) {
  const Loss low = meter.low();
  const Loss high = on_link(meter.high(), low, current, messages), mean = on_link(meter.mean(), low, current, messages);
  const std::optional<Coding> enough = cheapest(high, kMargin * aim.target_loss, messages, aim);
  const double cost = messages.cost(current);
  const bool dear = cost > aim.redundancy_max;
  if (!dear && residual_loss(current, meter.is_exact() ? mean : low, messages) <= aim.target_loss)
    return enough && messages.cost(*enough) < kSame * cost ? *enough : current;
  if (enough) return *enough;
  if (const auto likely = cheapest(mean, kMargin * aim.target_loss, messages, aim)) return *likely;
  const Coding least = best(mean, messages, aim);
  if (dear) return least;
  return residual_loss(least, mean, messages) < kNotable * residual_loss(current, mean, messages) ? least : current;
}

}  // namespace rocebox::lowar
