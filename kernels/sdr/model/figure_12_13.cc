// SPDX-License-Identifier: BSD-3-Clause
// Figure 12: distance and bandwidth. Figure 13: ring AllReduce between datacenters.
#include <fmt/format.h>

#include <array>

#include "kernels/sdr/model/ring.h"
#include "kernels/sdr/model/sdr_model.h"

namespace rocebox::sdr {
namespace {

constexpr std::array kRingDrops = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2};

std::vector<double> normalized(const Schemes& schemes, double bytes) {
  const double chunks = schemes.channel.chunks(bytes), least = schemes.channel.lossless(chunks);
  return {schemes.sr.mean(chunks) / least, schemes.nack.mean(chunks) / least, schemes.mds.mean(chunks) / least};
}

// The 99.9th percentile of an AllReduce of that buffer, SR over EC.
double ring_speedup(const ModelConfig& config, double drop, unsigned nodes, double bytes, Random& random,
                    std::vector<double>& space) {
  const Schemes schemes(config, drop);
  const double chunks = schemes.channel.chunks(bytes / nodes);
  std::vector<double> done;
  const auto tail = [&](const auto& scheme) {
    return sampled(config.tail_samples / 4, random, space,
                   [&](Random& r) { return sample_ring(nodes, done, [&] { return scheme.sample(chunks, r); }); })
        .p999;
  };
  return tail(schemes.sr) / tail(schemes.mds);
}

}  // namespace

std::vector<ModelFigure> figure_12(const ModelConfig& config, Random&) {
  const std::vector<std::string> curves = {"SR RTO", "SR NACK", "EC MDS"};
  ModelFigure far{"figure_12_distance",
                  "128 MiB Write over the lossless one, by distance, P_drop 1e-5",
                  {"distance_km", true},
                  {"slowdown", false},
                  curves,
                  {}};
  for (const double km : {75., 150., 375., 750., 1500., 3750., 7500., 15000.})
    far.points.push_back({km, normalized(Schemes(config, kUsualDrop, km * kSecondsAKm), 128 * kMiB)});
  ModelFigure wide{"figure_12_bandwidth",
                   "128 MiB Write over the lossless one, by bandwidth, P_drop 1e-5",
                   {"bits_per_second", true},
                   {"slowdown", false},
                   curves,
                   {}};
  const double rtt = static_cast<double>(config.rtt) / 1e9;
  for (const double rate : {100e9, 200e9, 400e9, 800e9, 1.6e12, 3.2e12})
    wide.points.push_back({rate, normalized(Schemes(config, kUsualDrop, rtt, rate), 128 * kMiB)});
  const auto large_far = normalized(Schemes(config, kUsualDrop, 37500 * kSecondsAKm), 8 * kGiB);
  const auto large_wide = normalized(Schemes(config, kUsualDrop, rtt, 3.2e12), 8 * kGiB);
  far.statements = {{"with a higher RTT EC surpasses SR at 8 GiB as well (37500 km)", "EC < SR",
                     fmt::format("{} and {}", factor_text(large_far[2]), factor_text(large_far[0])),
                     large_far[2] < large_far[0]}};
  wide.statements = {{"with more bandwidth EC surpasses SR at 8 GiB as well (3.2 Tbit/s)", "EC < SR",
                      fmt::format("{} and {}", factor_text(large_wide[2]), factor_text(large_wide[0])),
                      large_wide[2] < large_wide[0]}};
  return {far, wide};
}

std::vector<ModelFigure> figure_13(const ModelConfig& config, Random& random) {
  constexpr std::array kNodes = {2u, 4u, 8u};
  constexpr std::array kSizes = {32 * kMiB, 128 * kMiB, 512 * kMiB};
  ModelFigure left{"figure_13_left",
                   "Ring AllReduce of 128 MiB: 99.9th percentile of SR RTO over that of EC MDS",
                   {"drop", true},
                   {"speedup", false},
                   {},
                   {}};
  ModelFigure right{"figure_13_right",
                    "Ring AllReduce of 4 datacenters: 99.9th percentile of SR RTO over that of EC MDS",
                    {"drop", true},
                    {"speedup", false},
                    {},
                    {}};
  for (const unsigned nodes : kNodes) left.curves.push_back(fmt::format("{} datacenters", nodes));
  for (const double bytes : kSizes) right.curves.push_back(fmt::format("{:.0f} MiB", bytes / kMiB));
  std::vector<double> space;
  for (const double drop : kRingDrops) {
    ModelPoint &of_nodes = left.points.emplace_back(ModelPoint{drop, {}}),
               &of_sizes = right.points.emplace_back(ModelPoint{drop, {}});
    for (const unsigned nodes : kNodes)
      of_nodes.y.push_back(ring_speedup(config, drop, nodes, 128 * kMiB, random, space));
    for (const double bytes : kSizes) of_sizes.y.push_back(ring_speedup(config, drop, 4, bytes, random, space));
  }
  for (ModelFigure* figure : {&left, &right}) {
    bool grows = true;
    double least = INFINITY, most = 0;
    for (std::size_t i = 0; i < figure->points.size(); i++)
      for (std::size_t curve = 0; curve < figure->curves.size(); curve++) {
        const double speedup = figure->points[i].y[curve];
        if (i > 0) grows = grows && speedup >= 0.98 * figure->points[i - 1].y[curve];
        least = std::min(least, speedup);
        most = std::max(most, speedup);
      }
    figure->statements = {{"EC's speedup grows with the drop rate", "yes", grows ? "yes" : "no", grows},
                          {"it begins at", "3", factor_text(least), least > 0.7 * 3 && least < 1.3 * 3},
                          {"it comes to more than", "6", factor_text(most), most > 6},
                          {"EC gains at every drop rate from 1e-6 to 1e-2", "> 1", factor_text(least), least > 1}};
  }
  return {left, right};
}

}  // namespace rocebox::sdr
