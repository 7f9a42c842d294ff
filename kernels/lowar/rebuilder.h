// SPDX-License-Identifier: BSD-3-Clause
// Packet decoding (LoWAR, section IV-B): a lost packet is the XOR of a repair packet with all others that it covers.
// Those that were handed over are in a coding unit, those that wait in the reordering buffer.
#pragma once
#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/received_stream.h"
#include "kernels/lowar/reordering_buffer.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::lowar {

/// What became of a repair packet.
enum class RepairOutcome : std::uint8_t {
  kUnused,  ///< nothing that it covers is missing
  kUsed,    ///< it rebuilt what was missing
  kWaits,   ///< more than one is missing, which may only be late
  kShort,   ///< some of what it covers is not known
  kFailed,  ///< what was rebuilt does not prove right, or there was no packet to be had
  kFull,    ///< there was no place in which the rebuilt packet could wait
};

class Rebuilder {
 public:
  struct Attempt {
    RepairOutcome outcome;
    PacketPtr rebuilt;  ///< when kUsed
  };

  /// Looks into the two, and counts.
  Rebuilder(const ReorderingBuffer& buffer, const CodingUnits& units, DecodeCounters& count)
      : buffer_(buffer), units_(units), count_(count) {}

  /// Rebuilds what is missing of the packets that a repair packet covers. Nothing that it says is believed before the
  /// rebuilt packet proves right. The stream is not changed.
  Attempt attempt(Context& context, const ReceivedStream& stream, Packet repair, const RepairHeader& header) const;

 private:
  PacketPtr rebuild(Context& context, Packet repair, const RepairHeader& header, const Share& share,
                    std::uint16_t unit) const;
  PacketPtr prove(Context& context, PacketPtr rebuilt, Packet repair, const RepairHeader& header, Sums sums,
                  const CodedPrefix& prefix, std::uint32_t psn) const;

  const ReorderingBuffer& buffer_;
  const CodingUnits& units_;
  DecodeCounters& count_;
};

}  // namespace rocebox::lowar
