// SPDX-License-Identifier: BSD-3-Clause
// Figure 3: message time over size, distance and drop rate. Means are of the analysis.
#include <fmt/format.h>

#include <array>

#include "kernels/sdr/model/sdr_model.h"

namespace rocebox::sdr {
namespace {

struct Slowdown {
  double sr, ec;
};

Slowdown slowdown(const Schemes& schemes, double bytes) {
  const double chunks = schemes.channel.chunks(bytes), least = schemes.channel.lossless(chunks);
  return {schemes.sr.mean(chunks) / least, schemes.mds.mean(chunks) / least};
}

ModelFigure slowdown_by_size(const ModelConfig& config) {
  ModelFigure figure{"figure_3a",
                     "Mean message time over the lossless one, by size, P_drop 1e-5",
                     {"message_bytes", true},
                     {"slowdown", false},
                     {"SR RTO", "EC MDS"},
                     {}};
  const Schemes schemes(config, kUsualDrop);
  double peak = 0, peak_bytes = 0, ec_at_peak = 0;
  for (int power = 17; power <= 40; power++) {
    const double bytes = std::ldexp(1, power);
    const Slowdown at = slowdown(schemes, bytes);
    figure.points.push_back({bytes, {at.sr, at.ec}});
    if (at.sr > peak) peak = at.sr, peak_bytes = bytes, ec_at_peak = at.ec;
  }
  const double likely = schemes.channel.chunk_bytes / schemes.channel.drop;
  figure.statements.push_back({"SR is slowest where one loss is likely, at 1/P_drop chunks",
                               fmt::format("{:.0f} B", likely), fmt::format("{:.0f} B", peak_bytes),
                               peak_bytes > likely / 4 && peak_bytes < likely * 4});
  figure.statements.push_back({"there EC stays close to the ideal", "1", factor_text(ec_at_peak), ec_at_peak < 1.1});
  const Slowdown large = slowdown(schemes, 256 * kGiB);
  figure.statements.push_back({"above 32 GiB SR hides retransmissions, EC pays for parity", "SR < EC",
                               fmt::format("{} and {} at 256 GiB", factor_text(large.sr), factor_text(large.ec)),
                               large.sr < large.ec});
  return figure;
}

ModelFigure slowdown_by_distance(const ModelConfig& config) {
  ModelFigure figure{"figure_3b",           "Mean message time over the lossless one, by distance, 8 GiB, P_drop 1e-5",
                     {"distance_km", true}, {"slowdown", false},
                     {"SR RTO", "EC MDS"},  {}};
  for (const double km : {10., 30., 75., 150., 375., 750., 1500., 3750., 7500., 15000., 37500.}) {
    const Slowdown at = slowdown(Schemes(config, kUsualDrop, km * kSecondsAKm), 8 * kGiB);
    figure.points.push_back({km, {at.sr, at.ec}});
  }
  const auto& near = figure.points.front().y;
  const auto& far = figure.points.back().y;
  figure.statements.push_back({"near, where injection dominates, SR outperforms EC", "SR < EC",
                               fmt::format("{} and {}", factor_text(near[0]), factor_text(near[1])),
                               near[0] < near[1]});
  figure.statements.push_back({"far, where RTT dominates, the trend is reversed", "EC < SR",
                               fmt::format("{} and {}", factor_text(far[0]), factor_text(far[1])), far[1] < far[0]});
  return figure;
}

ModelFigure slowdown_by_drop(const ModelConfig& config) {
  ModelFigure figure{"figure_3c",          "Mean message time over the lossless one, by drop rate, 128 MiB",
                     {"drop", true},       {"slowdown", false},
                     {"SR RTO", "EC MDS"}, {}};
  for (const double drop : {1e-8, 1e-7, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1}) {
    const Slowdown at = slowdown(Schemes(config, drop), 128 * kMiB);
    figure.points.push_back({drop, {at.sr, at.ec}});
  }
  const auto sr_at = [&](double drop) { return slowdown(Schemes(config, drop), 128 * kMiB).sr; };
  const double low = sr_at(1e-4), high = sr_at(1e-1);
  figure.statements.push_back(
      {"SR at 1e-4, where the increase begins", "3", factor_text(low), low >= 2.5 && low < 4.5});
  figure.statements.push_back({"SR, to which it grows by several rounds", "10", factor_text(high), high >= 8});
  return figure;
}

}  // namespace

std::vector<ModelFigure> figure_3(const ModelConfig& config, Random&) {
  return {slowdown_by_size(config), slowdown_by_distance(config), slowdown_by_drop(config)};
}

}  // namespace rocebox::sdr
