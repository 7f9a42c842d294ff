// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/model/sdr_model.h"

#include <array>
#include <cstdio>

namespace rocebox::sdr {
namespace {

constexpr std::array<std::string_view, 6> kFigures = {"all", "3", "9", "10", "12", "13"};

class ModelOfSdr final : public ModelOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  std::vector<ModelFigure> figures(std::uint64_t seed) const override {
    std::vector<ModelFigure> all;
    const std::array makers = {&figure_3, &figure_9, &figure_10, &figure_12, &figure_13};
    for (std::size_t i = 0; i < makers.size(); i++) {
      if (config_.figure != 0 && config_.figure != static_cast<int>(i) + 1) continue;
      Random random(seed + i);  // the figures do not shift each other's draws
      for (ModelFigure& figure : makers[i](config_, random)) all.push_back(std::move(figure));
    }
    return all;
  }

 private:
  ModelConfig config_;
};

Channel channel_of(const ModelConfig& config, double drop, double rtt, double bits_per_second) {
  const double packets = static_cast<double>((config.chunk + config.packet - 1) / config.packet);
  return {bits_per_second > 0 ? bits_per_second : static_cast<double>(config.rate), rtt,
          static_cast<double>(config.chunk), chunk_drop(drop, packets)};
}

CodeShape shape_of(const ModelConfig& config, CodeKind kind) {
  return {kind, static_cast<unsigned>(config.data), static_cast<unsigned>(config.parity)};
}

}  // namespace

void ModelConfig::fields(Fields& f) {
  f.choice("figure", figure, kFigures, "the figure that is computed");
  f.rate("rate", rate, {1'000'000, 1'000'000'000'000'000}, "of the channel, where a figure does not vary it");
  f.duration("rtt", rtt, {kMicrosecond, 10 * kSecond}, "round-trip time, where a figure does not vary it");
  f.bytes("chunk", chunk, {64, 1ull << 30}, "bytes that one bit of the bitmap stands for");
  f.bytes("packet", packet, {64, 1ull << 30}, "bytes of a packet, of which drop rates are; a chunk is lost with any");
  f.fraction("alpha", alpha, {0, 1000}, "SR's RTO is RTT + alpha RTT");
  f.fraction("nack_rto", nack_rto, {0, 1000}, "RTO of SR NACK, in RTTs");
  f.fraction("beta", beta, {0, 1000}, "of EC's FTO, in RTTs: half of alpha");
  f.integer("data", data, {1, 1024}, "k: data chunks of a submessage");
  f.integer("parity", parity, {1, 1024}, "m: parity chunks of a submessage");
  f.integer("samples", samples, {1, 10'000'000}, "drawn for a mean that stands beside the analysis");
  f.integer("tail_samples", tail_samples, {1000, 10'000'000}, "drawn for a 99.9th percentile");
  if (parity > data) f.refuse("parity", "must not exceed `data`");
  if (chunk % packet != 0 && chunk > packet) f.refuse("chunk", "must be a multiple of `packet`");
}

Schemes::Schemes(const ModelConfig& config, double drop, double rtt, double bits_per_second)
    : channel(channel_of(config, drop, rtt, bits_per_second)),
      sr(channel, (1 + config.alpha) * rtt),
      nack(channel, config.nack_rto * rtt),
      mds(channel, shape_of(config, CodeKind::kMds), (1 + config.alpha) * rtt, config.beta),
      xor_code(channel, shape_of(config, CodeKind::kXor), (1 + config.alpha) * rtt, config.beta) {}

std::string factor_text(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", factor);
  return text;
}

}  // namespace rocebox::sdr

namespace rocebox {

Component sdr_model() {
  return model_component<sdr::ModelOfSdr>(
      "sdr", "completion time of Writes under Selective Repeat and erasure coding (SDR-RDMA, SC'25, figures 3 to 13)");
}

}  // namespace rocebox
