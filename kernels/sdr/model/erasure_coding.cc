// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/model/erasure_coding.h"

#include <algorithm>
#include <random>

namespace rocebox::sdr {
namespace {

double choose_log(double all, double some) {
  return std::lgamma(all + 1) - std::lgamma(some + 1) - std::lgamma(all - some + 1);
}

// P(at most `most` of `all` are lost).
double at_most(unsigned most, unsigned all, double drop) {
  if (drop <= 0 || most >= all) return 1;
  if (drop >= 1) return 0;
  double sum = 0;
  for (unsigned lost = 0; lost <= most; lost++)
    sum += std::exp(choose_log(all, lost) + lost * std::log(drop) + (all - lost) * std::log1p(-drop));
  return std::min(1.0, sum);
}

// P(more than `most` of `all` are lost), which keeps its digits where it is small.
double more_than(unsigned most, unsigned all, double drop) {
  if (drop <= 0 || most >= all) return 0;
  if (drop >= 1) return 1;
  double sum = 0;
  for (unsigned lost = most + 1; lost <= all; lost++)
    sum += std::exp(choose_log(all, lost) + lost * std::log(drop) + (all - lost) * std::log1p(-drop));
  return std::min(1.0, sum);
}

double failure_probability(CodeKind kind, unsigned data, unsigned parity, double drop) {
  if (kind == CodeKind::kMds) return more_than(parity, data + parity, drop);
  double log_all = 0;
  for (unsigned group = 0; group < parity; group++) {
    const unsigned members = data / parity + (group < data % parity ? 1 : 0);
    if (members > 0) log_all += std::log1p(-more_than(1, members + 1, drop));
  }
  return -std::expm1(log_all);
}

}  // namespace

double recovery_probability(CodeKind kind, unsigned data, unsigned parity, double drop) {
  if (kind == CodeKind::kMds) return at_most(parity, data + parity, drop);
  return 1 - failure_probability(kind, data, parity, drop);
}

ErasureCoding::ErasureCoding(const Channel& channel, const CodeShape& shape, double rto, double beta)
    : channel_(channel),
      shape_(shape),
      repeat_(channel, rto),
      beta_(beta),
      failure_(failure_probability(shape.kind, shape.data, shape.parity, channel.drop)) {}

ErasureCoding::Split ErasureCoding::split(double chunks) const {
  const double whole = std::floor(chunks / shape_.data);
  return {whole, static_cast<unsigned>(chunks - whole * shape_.data)};
}

unsigned ErasureCoding::tail_parity(unsigned tail) const {
  return (tail * shape_.parity + shape_.data - 1) / shape_.data;
}

double ErasureCoding::tail_failure(unsigned tail) const {
  return tail == 0 ? 0 : failure_probability(shape_.kind, tail, tail_parity(tail), channel_.drop);
}

double ErasureCoding::base(double chunks) const {
  return (chunks + std::ceil(chunks * shape_.parity / shape_.data)) * channel_.injection();
}

double ErasureCoding::fallback(double chunks) const {
  const Split parts = split(chunks);
  if (failure_ >= 1) return 1;
  return -std::expm1(parts.whole * std::log1p(-failure_) + std::log1p(-std::min(tail_failure(parts.tail), 1 - 1e-16)));
}

double ErasureCoding::expected_failed_chunks(double chunks) const {
  const Split parts = split(chunks);
  return parts.whole * failure_ * shape_.data + tail_failure(parts.tail) * parts.tail;
}

double ErasureCoding::mean(double chunks) const {
  const double fails = fallback(chunks), rtt = channel_.rtt;
  if (fails <= 0) return base(chunks) + rtt;
  const double repeated = expected_failed_chunks(chunks) / fails;  // where any is
  return base(chunks) + (1 - fails) * rtt + fails * (rtt + beta_ * rtt + repeat_.mean(repeated));
}

double ErasureCoding::published_mean(double chunks) const {
  return base(chunks) + fallback(chunks) * (1 + beta_) * channel_.rtt + repeat_.mean(expected_failed_chunks(chunks));
}

double ErasureCoding::sample(double chunks, Random& random) const {
  const Split parts = split(chunks);
  double failed = 0;
  if (failure_ >= 1)
    failed = parts.whole * shape_.data;
  else if (failure_ > 0 && parts.whole > 0)
    failed = static_cast<double>(
                 std::binomial_distribution<std::int64_t>(static_cast<std::int64_t>(parts.whole), failure_)(random)) *
             shape_.data;
  if (parts.tail > 0 && random.uniform() <= tail_failure(parts.tail)) failed += parts.tail;
  if (failed == 0) return base(chunks) + channel_.rtt;
  return base(chunks) + (1 + beta_) * channel_.rtt + repeat_.sample(failed, random);
}

}  // namespace rocebox::sdr
