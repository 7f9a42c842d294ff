// SPDX-License-Identifier: BSD-3-Clause
// Completion time of a Write under Selective Repeat (4.2.2): its distribution, its mean, samples of it.
#pragma once
#include "kernels/sdr/model/channel.h"
#include "kernels/sdr/model/random.h"

namespace rocebox::sdr {

/// T_SR(M) = RTT + max over chunks i of (i T_INJ + O (Y_i - 1)), with O = RTO + T_INJ and Y_i geometric. ../MODEL.md
/// derives what is computed here.
class SelectiveRepeat {
 public:
  /// `rto` in seconds: 3 RTT of the timeout variant, 1 RTT of the NACK variant.
  SelectiveRepeat(const Channel& channel, double rto) : channel_(channel), overhead_(rto + channel.injection()) {}

  /// The probability that a message of so many chunks is complete within `time`. `chunks` may be fractional: the
  /// expected size of what an erasure code left.
  double within(double time, double chunks) const;
  /// E[T_SR(M)], to within a thousandth of O.
  double mean(double chunks) const;
  /// The least time within which a share of messages is complete, such as 0.999.
  double quantile(double share, double chunks) const;
  /// One draw of T_SR(M), of a whole number of chunks.
  double sample(double chunks, Random& random) const;

 private:
  Channel channel_;
  double overhead_;
};

}  // namespace rocebox::sdr
