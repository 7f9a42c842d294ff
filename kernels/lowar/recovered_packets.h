// SPDX-License-Identifier: BSD-3-Clause
// The packets of a stream that were recovered last: their originals may still come, and must not be handed over again.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/lowar/limits.h"
#include "kernels/lowar/stream.h"

namespace rocebox::lowar {

class RecoveredPackets {
 public:
  /// A packet was rebuilt; its original is not late any more after `patience`, of UC, where nothing is sent again,
  /// after kHoldMax.
  void add(Packet rebuilt, Nanos now, Nanos patience);
  /// Whether `packet` is the original of a recovered packet. It comes once only: the record goes.
  bool take(Packet packet, Nanos now);
  /// Where the host goes on by `ahead` PSNs, as announced, forgets all if that is sent again, so that nothing of it is
  /// late. UC sends nothing again: up to `reorder` packets back, they overtook each other before the near gateway;
  /// farther, the connection has begun anew, perhaps with the same packets.
  void sequence_jumps(std::int32_t ahead, std::uint32_t reorder);

  /// The sequence has gone back, or is followed no more: originals of UC packets may come at any PSN from now on.
  void await_at_any_psn() { at_any_psn_ |= unreliable_; }
  /// Whether the original may come at any PSN, not only before the expected one.
  bool at_any_psn() const { return at_any_psn_; }
  /// Ends that when all records have expired.
  void expire(Nanos now);

 private:
  struct Record {
    std::uint32_t psn = kNoPsn, icrc, until_us;  // the time is modulo 2^32: each stream has many of these
    bool expired(Nanos now) const {
      return until_us - static_cast<std::uint32_t>(now / kMicrosecond) > kHoldMax / kMicrosecond;
    }
  };
  std::array<Record, kRecoveredKept> records_{};
  std::uint8_t next_ = 0;
  bool unreliable_ = false;  // of UC, as the last rebuilt packet said
  bool at_any_psn_ = false;
};

}  // namespace rocebox::lowar
