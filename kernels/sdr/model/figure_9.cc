// SPDX-License-Identifier: BSD-3-Clause
// Figure 9: speedup of erasure coding over Selective Repeat, by size and drop rate.
#include <fmt/format.h>

#include <array>

#include "kernels/sdr/model/sdr_model.h"

namespace rocebox::sdr {
namespace {

struct Size {
  const char* name;
  double bytes;
};
constexpr std::array<Size, 8> kMapSizes = {{{"4KiB", 4 * kKiB},
                                            {"128KiB", 128 * kKiB},
                                            {"1MiB", kMiB},
                                            {"16MiB", 16 * kMiB},
                                            {"128MiB", 128 * kMiB},
                                            {"1GiB", kGiB},
                                            {"8GiB", 8 * kGiB},
                                            {"64GiB", 64 * kGiB}}};
constexpr std::array kMapDrops = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
// "From 128 KiB to 1 GiB within the 1e-6 to 1e-2 drop rate range."
bool in_red(const Size& size, double drop) {
  return size.bytes >= 128 * kKiB && size.bytes <= kGiB && drop > 0.9e-6 && drop < 1.1e-2;
}

struct Cells {
  ModelFigure mean, tail;
  double best_mean = 0, best_tail = 0, best_nack_mean = 0, best_nack_tail = 0;
  unsigned red = 0, red_won = 0, small_alike = 0, small = 0;
  double sr_wins_worst = 0;  // the best that EC does where SR should win
};

void add_cell(Cells& cells, const Schemes& schemes, const Size& size, double drop, const ModelConfig& config,
              Random& random, std::vector<double>& space) {
  const double chunks = schemes.channel.chunks(size.bytes), ec = schemes.mds.mean(chunks);
  const double mean = schemes.sr.mean(chunks) / ec;
  const Sampled ec_drawn =
      sampled(config.tail_samples, random, space, [&](Random& r) { return schemes.mds.sample(chunks, r); });
  const double sr_tail = schemes.sr.quantile(0.999, chunks), tail = sr_tail / ec_drawn.p999;
  cells.mean.points.back().y.push_back(mean);
  cells.tail.points.back().y.push_back(tail);
  if (in_red(size, drop)) {
    cells.red++;
    cells.red_won += mean > 1 ? 1 : 0;
    cells.best_mean = std::max(cells.best_mean, mean);
    cells.best_tail = std::max(cells.best_tail, tail);
    cells.best_nack_mean = std::max(cells.best_nack_mean, schemes.sr.mean(chunks) / schemes.nack.mean(chunks));
    cells.best_nack_tail = std::max(cells.best_nack_tail, sr_tail / schemes.nack.quantile(0.999, chunks));
  }
  if (drop < 0.9e-6 && size.bytes > kGiB) cells.sr_wins_worst = std::max(cells.sr_wins_worst, mean);
}

}  // namespace

std::vector<ModelFigure> figure_9(const ModelConfig& config, Random& random) {
  Cells cells;
  cells.mean = {"figure_9_mean", "Speedup of EC MDS over SR RTO, means", {"drop", true}, {"speedup", false}, {}, {}};
  cells.tail = {
      "figure_9_p999", "Speedup of EC MDS over SR RTO, 99.9th percentiles", {"drop", true}, {"speedup", false}, {}, {}};
  for (const Size& size : kMapSizes)
    for (ModelFigure* figure : {&cells.mean, &cells.tail}) figure->curves.emplace_back(size.name);
  std::vector<double> space;
  for (const double drop : kMapDrops) {
    for (ModelFigure* figure : {&cells.mean, &cells.tail}) figure->points.push_back({drop, {}});
    const Schemes schemes(config, drop);
    for (const Size& size : kMapSizes) add_cell(cells, schemes, size, drop, config, random, space);
  }
  const double small = cells.mean.points.at(2).y[0];
  // After n drops in a row SR RTO takes 1 + (1 + alpha) n round trips and SR NACK 1 + nack_rto n.
  const auto nack_text = [&](double factor) {
    return fmt::format("{}; by RTOs below {:g}", factor_text(factor), (1 + config.alpha) / config.nack_rto);
  };
  cells.mean.statements = {
      {"EC outperforms SR from 128 KiB to 1 GiB, 1e-6 to 1e-2", "all",
       fmt::format("{} of {}", cells.red_won, cells.red), cells.red_won == cells.red},
      {"SR RTO slower than EC by up to, mean", "6.5", factor_text(cells.best_mean),
       cells.best_mean > 0.85 * 6.5 && cells.best_mean < 1.15 * 6.5},
      {"the same in the paper's introduction", "5", factor_text(cells.best_mean),
       cells.best_mean > 0.85 * 5 && cells.best_mean < 1.15 * 5},
      {"SR NACK faster than SR RTO by up to, mean", "4", nack_text(cells.best_nack_mean), cells.best_nack_mean > 3.4},
      {"SR performs best below 1e-6 and above 1 GiB", "speedup < 1", factor_text(cells.sr_wins_worst),
       cells.sr_wins_worst < 1},
      {"small messages: SR and EC alike (4 KiB, 1e-6)", "1", factor_text(small), small > 0.99 && small < 1.01}};
  cells.tail.statements = {{"SR RTO slower than EC by up to, 99.9th percentile", "12.2", factor_text(cells.best_tail),
                            cells.best_tail > 0.85 * 12.2 && cells.best_tail < 1.15 * 12.2},
                           {"SR NACK faster than SR RTO by up to, 99.9th percentile", "4",
                            nack_text(cells.best_nack_tail), cells.best_nack_tail > 3.4}};
  return {cells.mean, cells.tail};
}

}  // namespace rocebox::sdr
