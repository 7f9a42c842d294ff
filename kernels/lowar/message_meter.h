// SPDX-License-Identifier: BSD-3-Clause
// How long a stream's messages are, as far as the choice of (r, c) needs it. Each message ends its coding block, so
// that short ones cost more than c / r; what they cost, and what they leave unrepaired, depends on all lengths, not on
// the mean.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/lowar/limits.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {

/// Repair packets for a data packet in long messages; 0 for uncoded.
inline double redundancy(Coding coding) { return coding.off() ? 0 : static_cast<double>(coding.c) / coding.r; }

/// A block of k packets has min(c, k) repair packets: as many as it has packets among its first c. So it is counted how
/// many packets of the newest 8,000 to 24,500 are among the first c of a block of r, for all powers of two. Fed with
/// the length of each message at its end; a packet costs nothing.
class MessageMeter {
 public:
  /// A message of so many packets has ended.
  void ended(std::uint32_t packets);
  /// No message is known: all are taken for long ones.
  bool empty() const { return packets_ == 0; }

  /// The share of packets that are among the first `c` of their block of `r`; powers of two, `c` at most `r`.
  double share(unsigned r, unsigned c) const;
  /// Repair packets for a data packet; 0 for uncoded. Exact where r and c are powers of two and
  /// nothing is sent again.
  double cost(Coding coding) const;

  /// Whether it is time to look(): 256 packets of whole messages have come, and 1024 since.
  bool due() const { return since_look_ >= kLookPackets; }
  /// Looks at the window, when due(). True: (r, c) is to be chosen again, as `current` costs more than
  /// `redundancy_max`, or messages have become twice as long, or half, since decided().
  bool look(Coding current, double redundancy_max);
  /// (r, c) has been chosen.
  void decided() { decided_ = static_cast<float>(share(kBlockPacketsMax, 1)); }

  /// A setting was left because it cost too much. For 131072 packets, twice as many each time, another one is taken up
  /// only where it leaves room, so that lengths about the bound do not move it to and fro.
  void retreat();
  /// What a setting may cost that is taken up now.
  double limit(double redundancy_max) const { return wait_ ? kRoom * redundancy_max : redundancy_max; }

 private:
  static constexpr std::uint16_t kLookPackets = 1024, kFirstLook = 256;
  static constexpr double kRoom = 0.75;
  static constexpr unsigned kLevels = 8;  // r = 2, 4... 256
  static_assert(1u << kLevels == kBlockPacketsMax);
  // Of r = 2^b and c = 2^a, a < b.
  static constexpr std::size_t index(unsigned b, unsigned a) { return b * (b - 1) / 2 + a; }

  std::uint16_t packets_ = 0;                                     // of the messages that count, times two
  std::array<std::uint16_t, kLevels*(kLevels + 1) / 2> first_{};  // of these, among the first c of a block, times two
  std::uint16_t since_look_ = kLookPackets - kFirstLook;          // packets
  std::uint8_t retreats_ = 0;
  std::uint32_t wait_ = 0;  // packets
  float decided_ = 0;       // blocks of 256 for a packet
};

}  // namespace rocebox::lowar
