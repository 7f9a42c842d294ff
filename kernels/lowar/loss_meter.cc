// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/loss_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rocebox::lowar {
namespace {

constexpr std::uint32_t kClusterGap = 8;
constexpr std::uint16_t kBlockClusters = 16;
// With so many, a window's mean is exact to some 6%, and its bounds to some 20%: settings are a factor of two apart.
// With enough of them, or of losses, its older half is forgotten.
constexpr std::uint16_t kClustersExact = 256, kClustersEnough = 2048, kLossesEnough = 32768;
constexpr std::uint32_t kFirstLook = 256, kPacketsMax = 1u << 30;
// Blocks are many, and a window is lost by a mistake: it takes more to call a rate another one than to trust a bound.
constexpr double kCertain = 4.5;
// By its mean, a window with few losses is taken to have independent ones.
constexpr double kPriorLosses = 32;
// Losses of one outage that are looked at one by one; the others are as far apart.
constexpr std::uint32_t kRunCounted = 64;
// Losses between two counts of the far end: with more than this, it was an outage.
constexpr std::uint32_t kApartCounted = 1024;
// A window is given up as a memory of worse times when so many clusters were to be expected since the last one.
constexpr double kExpectedMissing = 14;

// `side` -1, 0, 1: lower bound, value, upper bound of the mean of a Poisson variable of which `seen` was seen: exact
// limits `z` standard deviations out, by the approximation of Wilson and Hilferty. `spread` is variance by mean,
// above 1 where events come in clusters.
double poisson(double seen, double spread, int side, double z = 3) {
  if (side == 0) return seen;
  const double events = seen / spread + (side > 0 ? 1 : 0);
  if (events < 1) return 0;
  const double root = 1 - 1 / (9 * events) + side * z / (3 * std::sqrt(events));
  return root > 0 ? spread * events * root * root * root : 0;
}

double spread_of(std::uint16_t lost, std::uint16_t clusters) {
  return clusters ? std::max(1.0, 2.0 * lost / clusters - 1) : 1;  // of clusters of geometric length
}

template <class Counts>
Counts difference(const Counts& a, const Counts& b) {
  Counts d;
  d.packets = a.packets - b.packets;
  d.lost = static_cast<std::uint16_t>(a.lost - b.lost);
  d.clusters = static_cast<std::uint16_t>(a.clusters - b.clusters);
  for (unsigned i = 0; i < kLags.size(); i++) d.after[i] = static_cast<std::uint16_t>(a.after[i] - b.after[i]);
  return d;
}

}  // namespace

void LossMeter::lost(std::uint32_t count) {
  const std::uint32_t alone = std::min(count, kRunCounted);
  for (std::uint32_t i = 0; i < alone; i++) lose_one();
  if (const std::uint32_t more = count - alone) {
    const auto room = static_cast<std::uint16_t>(std::min<std::uint32_t>(more, kLossesEnough));
    const auto add = [&](std::uint16_t& to) { to = static_cast<std::uint16_t>(std::min(to + room, 0xFFFF)); };
    window_.packets += more;
    add(window_.lost);
    for (std::uint16_t& after : window_.after) add(after);
    last_loss_ = window_.packets;
  }
  if (window_.lost >= kLossesEnough) next_look_ = next_decision_ = 0;
}

void LossMeter::lost_apart(std::uint32_t count) {
  for (std::uint32_t i = 0; i < std::min(count, kApartCounted); i++) {
    last_loss_ = window_.packets - kLags.back();
    lose_one();
  }
  if (window_.lost >= kLossesEnough) next_look_ = next_decision_ = 0;
}

void LossMeter::lose_one() {
  window_.packets++;
  const std::uint32_t gap = window_.packets - last_loss_;
  if (window_.clusters == 0 || gap > kClusterGap) {
    window_.clusters++;
    if (window_.clusters - block_.clusters > kBlockClusters) end_block();
    if (window_.clusters >= next_clusters_) next_look_ = 0;
  }
  history_ = gap < 32 ? history_ << gap | 1u << (gap - 1) : gap == 32 ? 1u << 31 : 0;
  if (window_.lost < 0xFFFF) window_.lost++;
  for (unsigned i = 0; i < kLags.size(); i++)
    if (history_ >> (kLags[i] - 1) & 1 && window_.after[i] < 0xFFFF) window_.after[i]++;
  last_loss_ = window_.packets;
}

// The newest block of clusters is whole: where its rate is certainly another one than that before, the window begins
// with it.
void LossMeter::end_block() {
  Counts now = window_;
  now.clusters--;  // the cluster that begins is the next block's
  const Counts newest = difference(now, block_), before = std::exchange(block_, now);
  const auto rate = [](const Counts& counts, int side) {
    return poisson(counts.clusters, 1, side, kCertain) / counts.packets;
  };
  if (before.packets == 0) return;
  if (rate(newest, -1) <= rate(before, 1) && rate(newest, 1) >= rate(before, -1)) return;
  begin_window(newest);
  window_.clusters++;
  next_look_ = next_decision_ = 0;
}

void LossMeter::begin_window(const Counts& counts) {
  last_loss_ = counts.packets - (window_.packets - last_loss_);
  window_ = block_ = counts;
  plan_decision();
}

void LossMeter::plan_decision() {
  next_decision_ = std::max(2 * window_.packets, kFirstLook);
  next_clusters_ = static_cast<std::uint16_t>(std::max(2 * window_.clusters, 1));
  plan_look();
}

// Also when no cluster has come for the time of some more than are surely expected.
void LossMeter::plan_look() {
  const double distance = static_cast<double>(window_.packets) / std::max<std::uint16_t>(window_.clusters, 1);
  const double silence = std::max<double>(1.5 * kExpectedMissing * distance, kFirstLook);
  next_look_ = static_cast<std::uint32_t>(std::min<double>(next_decision_, window_.packets + silence));
}

void LossMeter::take_back() {
  if (window_.lost == 0) return;
  window_.lost--;
  block_.lost = std::min(block_.lost, window_.lost);
  for (unsigned i = 0; i < kLags.size(); i++) {
    window_.after[i] = std::min(window_.after[i], window_.lost);
    block_.after[i] = std::min(block_.after[i], window_.after[i]);
  }
  if (window_.lost < window_.clusters) window_.clusters--;
  block_.clusters = std::min(block_.clusters, window_.clusters);
}

void LossMeter::forget_older_half() {
  Counts newer = window_;
  newer.packets /= 2;
  newer.lost /= 2;
  newer.clusters /= 2;
  for (std::uint16_t& after : newer.after) after /= 2;
  begin_window(newer);
}

bool LossMeter::has_become_clean() const {
  const double since = window_.packets - last_loss_;
  return poisson(window_.clusters, 1, -1) / window_.packets * since > kExpectedMissing;
}

bool LossMeter::look() {
  if (window_.clusters && has_become_clean()) {
    Counts clean;
    clean.packets = window_.packets - last_loss_;
    begin_window(clean);
    return true;
  }
  if (window_.packets >= next_decision_ || window_.clusters >= next_clusters_) return true;
  plan_look();
  return false;
}

void LossMeter::done() {
  const bool enough = window_.clusters >= kClustersEnough || window_.lost >= kLossesEnough;
  if (enough || window_.packets >= kPacketsMax)
    forget_older_half();
  else
    plan_decision();
}

bool LossMeter::is_exact() const { return window_.clusters >= kClustersExact; }

Loss LossMeter::bounds(int side) const {
  Loss loss;
  const double packets = std::max(window_.packets, 1u), lost = window_.lost;
  const double spread = spread_of(window_.lost, window_.clusters);
  loss.rate = std::clamp(poisson(lost, spread, side) / packets, 0.0, 1.0);
  // How often a loss follows the one before: also from how often none does, where that is the rarer.
  const auto share = [&](double seen, double of_spread) {
    if (lost == 0) return side > 0 ? 1.0 : 0.0;
    const double direct = poisson(seen, of_spread, side) / lost;
    const double inverse = 1 - poisson(lost - seen, of_spread, -side) / lost;
    if (side == 0) return (seen + kPriorLosses * loss.rate) / (lost + kPriorLosses);
    return std::clamp(side > 0 ? std::min(direct, inverse) : std::max(direct, inverse), 0.0, 1.0);
  };
  const double next = share(window_.after[0], 1);
  for (unsigned i = 0; i < kLags.size(); i++) {
    double after = share(window_.after[i], spread);
    if (side > 0) {
      // Bursts of geometric length end at least so soon, unless it was certainly seen otherwise.
      const double geometric = loss.rate + std::pow(next, kLags[i]);
      const double seen = poisson(window_.after[i], spread, -1) / std::max(lost, 1.0);
      after = std::max(std::min(after, geometric), seen);
    }
    loss.after[i] = std::clamp(std::max(after, loss.rate), 0.0, 1.0);
  }
  return loss;
}

}  // namespace rocebox::lowar
