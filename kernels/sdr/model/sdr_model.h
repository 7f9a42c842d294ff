// SPDX-License-Identifier: BSD-3-Clause
// `rocebox model sdr`: figures 3, 9, 10, 12 and 13 of the SDR-RDMA paper.
#pragma once
#include "kernels/sdr/model/erasure_coding.h"
#include "runtime/kernel/model.h"

namespace rocebox {

/// The row of the registry.
Component sdr_model();

namespace sdr {

inline constexpr double kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
/// Of round trip: 3750 km are 25 ms in the paper, so light is as fast as in a vacuum.
inline constexpr double kSecondsAKm = 2 * 1e3 / 3e8;
/// P_drop where a figure varies something else.
inline constexpr double kUsualDrop = 1e-5;

/// What can be set, with the values of the paper's section 5.2.
struct ModelConfig {
  std::uint64_t rate = 400'000'000'000;
  Nanos rtt = 25 * kMillisecond;
  std::uint64_t chunk = 4096, packet = 4096;
  double alpha = 2, nack_rto = 1, beta = 1;  // factors of the RTT
  std::int64_t data = 32, parity = 8, samples = 1000, tail_samples = 20'000;
  int figure = 0;

  void fields(Fields& fields);
};

/// The schemes that are compared, on one channel.
class Schemes {
 public:
  /// `drop` is that of a packet.
  Schemes(const ModelConfig& config, double drop) : Schemes(config, drop, static_cast<double>(config.rtt) / 1e9) {}
  Schemes(const ModelConfig& config, double drop, double rtt, double bits_per_second = 0);

  Channel channel;
  SelectiveRepeat sr, nack;
  ErasureCoding mds, xor_code;
};

/// A mean and a share's time of samples, in seconds.
struct Sampled {
  double mean, p999;
};
/// Draws `count` times of `draw(random)`.
template <class Draw>
Sampled sampled(std::int64_t count, Random& random, std::vector<double>& space, Draw&& draw) {
  space.clear();
  double sum = 0;
  for (std::int64_t i = 0; i < count; i++) sum += space.emplace_back(draw(random));
  const auto place = static_cast<std::ptrdiff_t>(std::ceil(0.999 * static_cast<double>(count))) - 1;
  std::nth_element(space.begin(), space.begin() + place, space.end());
  return {sum / static_cast<double>(count), space[static_cast<std::size_t>(place)]};
}

/// "1.25", as statements show a factor.
std::string factor_text(double factor);

std::vector<ModelFigure> figure_3(const ModelConfig& config, Random& random);
std::vector<ModelFigure> figure_9(const ModelConfig& config, Random& random);
std::vector<ModelFigure> figure_10(const ModelConfig& config, Random& random);
std::vector<ModelFigure> figure_12(const ModelConfig& config, Random& random);
std::vector<ModelFigure> figure_13(const ModelConfig& config, Random& random);

}  // namespace sdr
}  // namespace rocebox
