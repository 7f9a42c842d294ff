// SPDX-License-Identifier: BSD-3-Clause
// Completion time of a Write under erasure coding with fallback to Selective Repeat (4.2.3).
#pragma once
#include <cstdint>

#include "kernels/sdr/erasure/code_shape.h"
#include "kernels/sdr/model/selective_repeat.h"

namespace rocebox::sdr {

/// P_EC(k,m): the probability that `data` chunks with `parity` chunks are recovered, each of all of them being lost
/// with probability `drop`.
double recovery_probability(CodeKind kind, unsigned data, unsigned parity, double drop);

/// T_EC(M). A message that is no multiple of k ends in a short submessage, with parity in proportion.
class ErasureCoding {
 public:
  /// `rto` is that of the Selective Repeat fallen back to; `beta` the factor of the FTO.
  ErasureCoding(const Channel& channel, const CodeShape& shape, double rto, double beta);

  /// P_fallback of a message of so many chunks.
  double fallback(double chunks) const;
  /// Base, fallback and retransmission, as 4.2.3 adds them, with what is repeated taken where something is: see
  /// ../MODEL.md.
  double mean(double chunks) const;
  /// The sum as 4.2.3 has it: E[T_SR(E[failures] k)] in it always.
  double published_mean(double chunks) const;
  double sample(double chunks, Random& random) const;
  /// Until data and parity are injected; an RTT later the ACK is here when all could be recovered.
  double base(double chunks) const;

 private:
  struct Split {
    double whole;   // submessages of k chunks
    unsigned tail;  // chunks of the short one; 0: there is none
  };
  Split split(double chunks) const;
  unsigned tail_parity(unsigned tail) const;
  double tail_failure(unsigned tail) const;
  double expected_failed_chunks(double chunks) const;

  Channel channel_;
  CodeShape shape_;
  SelectiveRepeat repeat_;
  double beta_, failure_;  // of a whole submessage
};

}  // namespace rocebox::sdr
