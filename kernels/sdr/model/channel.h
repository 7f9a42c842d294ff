// SPDX-License-Identifier: BSD-3-Clause
// The channel of the completion-time model (4.2.1): one sender, one receiver, chunks that are lost independently.
#pragma once
#include <cmath>
#include <cstdint>

namespace rocebox::sdr {

/// Times are in seconds, as the theory's are: real numbers, not the nanoseconds of a run.
struct Channel {
  double bits_per_second = 400e9;
  double rtt = 25e-3;
  double chunk_bytes = 4096;
  double drop = 1e-5;  ///< P_drop of a chunk

  /// T_INJ: what it takes to put a chunk on the line.
  double injection() const { return chunk_bytes * 8 / bits_per_second; }
  /// M: the chunks of a message, the last one perhaps short.
  double chunks(double bytes) const { return std::ceil(bytes / chunk_bytes); }
  /// Completion of a message where nothing is lost: injection, and an RTT until the last ACK is here.
  double lossless(double message_chunks) const { return message_chunks * injection() + rtt; }
};

/// P_drop of a chunk of so many packets, each lost with probability `packet_drop` (5.4.2).
inline double chunk_drop(double packet_drop, double packets) { return -std::expm1(packets * std::log1p(-packet_drop)); }

}  // namespace rocebox::sdr
