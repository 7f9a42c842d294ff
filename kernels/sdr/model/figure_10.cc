// SPDX-License-Identifier: BSD-3-Clause
// Figure 10: one size or one drop rate of figure 9 in detail; means of samples stand beside those of the analysis.
#include <fmt/format.h>

#include <array>

#include "kernels/sdr/model/sdr_model.h"

namespace rocebox::sdr {
namespace {

constexpr std::array kDetailDrops = {1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 3e-2, 5e-2, 1e-1};

ModelFigure times_by_size(const ModelConfig& config, Random& random) {
  ModelFigure figure{
      "figure_10a",
      "Write time by size, P_drop 1e-5",
      {"message_bytes", true},
      {"seconds", true},
      {"SR RTO", "SR RTO samples", "SR RTO p99.9", "SR NACK", "EC MDS", "EC MDS samples", "EC MDS p99.9"},
      {}};
  const Schemes schemes(config, 1e-5);
  std::vector<double> space;
  double worst = 0;
  for (int power = 17; power <= 36; power++) {
    const double chunks = schemes.channel.chunks(std::ldexp(1, power));
    const double sr = schemes.sr.mean(chunks), ec = schemes.mds.mean(chunks);
    const Sampled sr_drawn =
        sampled(config.samples, random, space, [&](Random& r) { return schemes.sr.sample(chunks, r); });
    const Sampled ec_drawn =
        sampled(config.samples, random, space, [&](Random& r) { return schemes.mds.sample(chunks, r); });
    const Sampled ec_tail =
        sampled(config.tail_samples, random, space, [&](Random& r) { return schemes.mds.sample(chunks, r); });
    figure.points.push_back({std::ldexp(1, power),
                             {sr, sr_drawn.mean, schemes.sr.quantile(0.999, chunks), schemes.nack.mean(chunks), ec,
                              ec_drawn.mean, ec_tail.p999}});
    worst = std::max({worst, std::abs(sr_drawn.mean / sr - 1), std::abs(ec_drawn.mean / ec - 1)});
  }
  figure.statements.push_back({fmt::format("mean of {} samples against the analysis", config.samples), "within 5%",
                               fmt::format("{:.2f}%", worst * 100), worst <= 0.05});
  const Schemes rarely(config, 1e-7);  // "at drop rates below 1e-6"
  const double chunks = rarely.channel.chunks(8 * kGiB), least = rarely.channel.lossless(chunks);
  const double sr = rarely.sr.mean(chunks) / least, overhead = rarely.mds.mean(chunks) / least - 1;
  figure.statements.push_back({"8 GiB, below 1e-6: EC's parity is not hidden", "20%",
                               fmt::format("{:.1f}%", overhead * 100), overhead > 0.15 && overhead < 0.25});
  figure.statements.push_back({"8 GiB, below 1e-6: SR hides retransmissions in the injection", "SR < EC",
                               fmt::format("{} and {}", factor_text(sr), factor_text(1 + overhead)),
                               sr < 1 + overhead});
  const double nack = rarely.nack.mean(chunks) / least;
  figure.statements.push_back({"the same of SR NACK", "NACK < EC",
                               fmt::format("{} and {}", factor_text(nack), factor_text(1 + overhead)),
                               nack < 1 + overhead});
  const double product = schemes.channel.bits_per_second / 8 * schemes.channel.rtt;
  figure.statements.push_back(
      {"8 GiB to the bandwidth-delay product", "about 1/8", factor_text(8 * kGiB / product), 8 * kGiB < 0.2 * product});
  return figure;
}

ModelFigure codes_by_drop(const ModelConfig& config) {
  ModelFigure figure{"figure_10b",
                     "128 MiB Write time by drop rate: two codes",
                     {"drop", true},
                     {"seconds", true},
                     {"EC MDS", "EC XOR", "SR RTO", "EC MDS fallback", "EC XOR fallback"},
                     {}};
  for (const double drop : kDetailDrops) {
    const Schemes schemes(config, drop);
    const double chunks = schemes.channel.chunks(128 * kMiB);
    figure.points.push_back({drop,
                             {schemes.mds.mean(chunks), schemes.xor_code.mean(chunks), schemes.sr.mean(chunks),
                              schemes.mds.fallback(chunks), schemes.xor_code.fallback(chunks)}});
  }
  // The drop rate at which a message falls back with a probability of one in twenty.
  const auto falls_back = [&](auto code) {
    double low = 1e-7, high = 0.5;
    while (high / low > 1.01) {
      const double middle = std::sqrt(low * high);
      const Schemes schemes(config, middle);
      ((schemes.*code).fallback(schemes.channel.chunks(128 * kMiB)) < 0.05 ? low : high) = middle;
    }
    return low;
  };
  const double xor_at = falls_back(&Schemes::xor_code), mds_at = falls_back(&Schemes::mds);
  const Schemes high(config, 1.1e-3);
  const double many = high.channel.chunks(128 * kMiB), gain = high.sr.mean(many) / high.mds.mean(many);
  figure.statements = {
      {"XOR begins to fall back to SR (in 5% of messages) at", "about 1e-3", fmt::format("{:.1e}", xor_at),
       xor_at > 3e-4 && xor_at < 3e-3},
      {"MDS (32, 8) remains robust beyond", "1e-2", fmt::format("{:.1e}", mds_at), mds_at > 1e-2},
      {"at very high drop rates MDS falls back to SR as well (1e-1)", "fallback",
       factor_text(figure.points.back().y[3]), figure.points.back().y[3] > 0.5},
      {"above 0.1% EC is ineffective (SR RTO over EC MDS there)", "<= 1", factor_text(gain), gain <= 1}};
  return figure;
}

ModelFigure repeats_by_drop(const ModelConfig& config) {
  ModelFigure figure{"figure_10c",      "128 MiB Write time by drop rate: Selective Repeat",    {"drop", true},
                     {"seconds", true}, {"SR RTO", "SR RTO p99.9", "SR NACK", "SR NACK p99.9"}, {}};
  double faster = 0, faster_tail = 0;
  for (const double drop : kDetailDrops) {
    const Schemes schemes(config, drop);
    const double chunks = schemes.channel.chunks(128 * kMiB);
    figure.points.push_back({drop,
                             {schemes.sr.mean(chunks), schemes.sr.quantile(0.999, chunks), schemes.nack.mean(chunks),
                              schemes.nack.quantile(0.999, chunks)}});
    const std::vector<double>& y = figure.points.back().y;
    faster = std::max(faster, y[0] / y[2]);
    faster_tail = std::max(faster_tail, y[1] / y[3]);
  }
  const Schemes rarely(config, 1e-5);
  const double chunks = rarely.channel.chunks(128 * kMiB);
  const double penalty = (rarely.nack.quantile(0.999, chunks) - rarely.channel.lossless(chunks)) / rarely.channel.rtt;
  figure.statements = {{"NACK improves SR by up to, mean", "4", factor_text(faster), faster > 3.4},
                       {"the same, 99.9th percentile", "4", factor_text(faster_tail), faster_tail > 3.4},
                       {"what a chunk drop costs with NACKs still (1e-5, 99.9th percentile)", "about an RTT",
                        factor_text(penalty) + " RTT", penalty > 0.8 && penalty < 1.5}};
  return figure;
}

ModelFigure splits_by_drop(const ModelConfig& config) {
  ModelFigure figure{"figure_10d",
                     "128 MiB Write time by drop rate: MDS data-parity splits",
                     {"drop", true},
                     {"seconds", true},
                     {},
                     {}};
  constexpr std::array<std::pair<int, int>, 5> kSplits = {{{32, 2}, {32, 4}, {32, 8}, {32, 16}, {8, 8}}};
  for (const auto& [data, parity] : kSplits) figure.curves.push_back(fmt::format("({}, {})", data, parity));
  for (const double drop : kDetailDrops) {
    ModelPoint& point = figure.points.emplace_back(ModelPoint{drop, {}});
    for (const auto& [data, parity] : kSplits) {
      ModelConfig split = config;
      split.data = data;
      split.parity = parity;
      const Schemes schemes(split, drop);
      point.y.push_back(schemes.mds.mean(schemes.channel.chunks(128 * kMiB)));
    }
  }
  const auto &high = figure.points.at(7).y, &low = figure.points.at(0).y;
  const double share = 8. / (32 + 8);
  figure.statements = {{"lower data-to-parity ratios protect better at high drop rates (2e-2)", "(32, 16) <= (32, 2)",
                        fmt::format("{} and {}", factor_text(high[3]), factor_text(high[0])), high[3] <= high[0]},
                       {"and take more of the bandwidth (1e-6)", "(32, 16) > (32, 2)",
                        fmt::format("{:.4f} and {:.4f} s", low[3], low[0]), low[3] > low[0]},
                       {"(32, 8): the parity's share of the bandwidth", "no more than 20%",
                        fmt::format("{:.0f}%", 100 * share), share < 0.2 + 1e-9}};
  return figure;
}

}  // namespace

std::vector<ModelFigure> figure_10(const ModelConfig& config, Random& random) {
  return {times_by_size(config, random), codes_by_drop(config), repeats_by_drop(config), splits_by_drop(config)};
}

}  // namespace rocebox::sdr
