// SPDX-License-Identifier: BSD-3-Clause
// The completion-time model against itself two ways, against brute force, and against small cases done by hand.
// tests/sim/sdr_model_test.py judges the command's figures by a model of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/sdr/model/erasure_coding.h"
#include "kernels/sdr/model/ring.h"

namespace rocebox::sdr_model_test {
namespace {

using sdr::Channel, sdr::CodeKind, sdr::CodeShape, sdr::ErasureCoding, sdr::Random, sdr::SelectiveRepeat;

constexpr double kRtt = 25e-3;
Channel channel(double drop) { return {400e9, kRtt, 4096, drop}; }

TEST(SdrModel, WithoutLossAMessageTakesItsInjectionAndAnRtt) {
  const Channel none = channel(0);
  EXPECT_DOUBLE_EQ(none.injection(), 4096 * 8 / 400e9);
  EXPECT_DOUBLE_EQ(SelectiveRepeat(none, 3 * kRtt).mean(1000), 1000 * none.injection() + kRtt);
  const ErasureCoding ec(none, {CodeKind::kMds, 32, 8}, 3 * kRtt, 1);
  EXPECT_DOUBLE_EQ(ec.mean(1024), 1280 * none.injection() + kRtt);
  EXPECT_DOUBLE_EQ(ec.mean(33), (33 + 9) * none.injection() + kRtt);
  EXPECT_EQ(ec.fallback(1024), 0);
}

// One chunk: T = T_INJ + RTT + O (Y - 1), and E[Y - 1] = p / (1 - p).
TEST(SdrModel, OneChunkIsAGeometricVariable) {
  const Channel lossy = channel(0.2);
  const double overhead = 3 * kRtt + lossy.injection();
  const SelectiveRepeat sr(lossy, 3 * kRtt);
  EXPECT_NEAR(sr.mean(1), lossy.lossless(1) + overhead * 0.25, overhead * 1e-3);
  EXPECT_NEAR(sr.within(lossy.lossless(1) + overhead * 1.5, 1), 1 - 0.04, 1e-9);
  EXPECT_NEAR(sr.quantile(0.99, 1), lossy.lossless(1) + 2 * overhead, overhead * 1e-3);
}

// As 4.2.2 has it, chunk by chunk.
double brute_force(const Channel& c, double rto, unsigned chunks, Random& random) {
  double latest = 0;
  for (unsigned i = 1; i <= chunks; i++) {
    double at = i * c.injection();
    while (random.uniform() <= c.drop) at += rto + c.injection();
    latest = std::max(latest, at);
  }
  return latest + c.rtt;
}

TEST(SdrModel, SamplesAreDistributedAsThoseDrawnChunkByChunk) {
  Random random(7);
  for (const double drop : {0.002, 0.05, 0.3}) {
    // Slow, so that injection takes longer than an RTO: retransmissions of early chunks are hidden.
    const Channel slow{1e8, kRtt, 4096, drop};
    for (const double rto : {kRtt, 3 * kRtt}) {
      const SelectiveRepeat sr(slow, rto);
      constexpr unsigned kChunks = 400, kSamples = 3000;
      double slow_sum = 0, fast_sum = 0, below = 0;
      const double median = sr.quantile(0.5, kChunks);
      for (unsigned i = 0; i < kSamples; i++) {
        slow_sum += brute_force(slow, rto, kChunks, random);
        const double drawn = sr.sample(kChunks, random);
        fast_sum += drawn;
        below += drawn <= median ? 1 : 0;
      }
      const double mean = sr.mean(kChunks);
      EXPECT_NEAR(slow_sum / kSamples / mean, 1, 0.03) << drop;
      EXPECT_NEAR(fast_sum / kSamples / mean, 1, 0.03) << drop;
      EXPECT_GT(below / kSamples, 0.45) << drop;
    }
  }
}

// Each way to lose some of them, weighed.
double enumerated(CodeKind kind, unsigned data, unsigned parity, double drop) {
  double sum = 0;
  for (unsigned lost = 0; lost < 1u << (data + parity); lost++) {
    double weight = 1;
    std::vector<unsigned> of_group(parity, 0);
    for (unsigned i = 0; i < data + parity; i++) {
      weight *= lost >> i & 1 ? drop : 1 - drop;
      of_group[i < data ? i % parity : i - data] += lost >> i & 1;
    }
    const unsigned all = static_cast<unsigned>(__builtin_popcount(lost));
    const bool well = kind == CodeKind::kMds ? all <= parity : *std::max_element(of_group.begin(), of_group.end()) <= 1;
    if (well) sum += weight;
  }
  return sum;
}

TEST(SdrModel, RecoveryProbabilitiesAreThoseOfEveryPatternOfLosses) {
  for (const CodeKind kind : {CodeKind::kMds, CodeKind::kXor})
    for (const auto& [data, parity] : {std::pair(8u, 2u), {7u, 3u}, {4u, 4u}, {6u, 1u}})
      for (const double drop : {0.001, 0.1, 0.5})
        EXPECT_NEAR(sdr::recovery_probability(kind, data, parity, drop), enumerated(kind, data, parity, drop), 1e-9)
            << data << ' ' << parity << ' ' << drop;
}

// What the paper claims of its own model: 1000 samples within 5%.
TEST(SdrModel, TheMeanOfAThousandSamplesIsWithinFivePercentOfTheAnalysis) {
  Random random(1);
  for (const double drop : {1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2})
    for (const double chunks : {1., 32., 4096., 32768., 2097152.}) {
      const Channel c = channel(drop);
      const SelectiveRepeat rto(c, 3 * kRtt), nack(c, kRtt);
      const ErasureCoding mds(c, {CodeKind::kMds, 32, 8}, 3 * kRtt, 1), xors(c, {CodeKind::kXor, 32, 8}, 3 * kRtt, 1);
      const auto mean_of = [&](const auto& scheme) {
        double sum = 0;
        for (int i = 0; i < 1000; i++) sum += scheme.sample(chunks, random);
        return sum / 1000;
      };
      EXPECT_NEAR(mean_of(rto) / rto.mean(chunks), 1, 0.05) << drop << ' ' << chunks;
      EXPECT_NEAR(mean_of(nack) / nack.mean(chunks), 1, 0.05) << drop << ' ' << chunks;
      EXPECT_NEAR(mean_of(mds) / mds.mean(chunks), 1, 0.05) << drop << ' ' << chunks;
      EXPECT_NEAR(mean_of(xors) / xors.mean(chunks), 1, 0.05) << drop << ' ' << chunks;
      // The sum as it is published takes a concave function of a mean: it is a little more.
      EXPECT_GE(mds.published_mean(chunks), mds.mean(chunks) * 0.999) << drop << ' ' << chunks;
    }
}

// Appendix C: an AllReduce costs no less than its stages one after the other, and exactly that where none varies.
TEST(SdrModel, ARingCostsAtLeastItsStages) {
  std::vector<double> done;
  EXPECT_DOUBLE_EQ(sdr::sample_ring(5, done, [] { return 2.0; }), 2.0 * 8);
  Random random(3);
  const SelectiveRepeat sr(channel(1e-4), 3 * kRtt);
  double sum = 0;
  for (int i = 0; i < 500; i++) sum += sdr::sample_ring(4, done, [&] { return sr.sample(8192, random); });
  EXPECT_GE(sum / 500, 6 * sr.mean(8192));
  unsigned draws = 0;  // one late Write of a stage is late for its neighbor, a stage later
  const double late = sdr::sample_ring(3, done, [&] { return draws++ == 0 ? 10.0 : 1.0; });
  EXPECT_DOUBLE_EQ(late, 10 + 3);
}

}  // namespace
}  // namespace rocebox::sdr_model_test
