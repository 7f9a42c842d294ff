// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a reliable message tell each other (4.1): datagrams, which may be lost. All numbers are in
// network byte order:
//
//     0   kind: 1 ACK, 2 done, 3 NACK, 4 probe
//     4   ACK: bits of the bitmap that follow; NACK: submessages; else 0
//     8   number of the part (8 bytes), counted from 0 at each end
//     16  ACK: cumulative ACK; 20 missing below, as SelectiveAck
//     24  ACK: the bitmap from the cumulative ACK on, lowest bit of the first byte first; NACK: one bit a submessage
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/sdr/limits.h"
#include "kernels/sdr/reliability/selective_repeat.h"

namespace rocebox::sdr {

struct Datagram {
  enum class Kind : std::uint8_t {
    kAck = 1,  ///< `ack`
    kDone,     ///< the part is here
    kNack,     ///< `failed`
    kProbe,    ///< by the sender: what has come of it?
  };
  Kind kind;
  std::uint64_t part;
  SelectiveAck ack{};
  std::vector<std::uint32_t> failed{};  ///< numbers of submessages
};

/// Submessages that one NACK has room for.
inline constexpr std::uint32_t kNackBits = (kDatagramBytes - 24) * 8;

/// `submessages`: of the part, for a NACK; at most kNackBits.
std::vector<std::uint8_t> encode(const Datagram& datagram, std::uint32_t submessages = 0);
/// Empty: that is no such thing.
std::optional<Datagram> decode(std::span<const std::uint8_t> bytes);

}  // namespace rocebox::sdr
