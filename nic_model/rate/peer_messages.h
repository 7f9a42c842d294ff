// SPDX-License-Identifier: BSD-3-Clause
// PeerMessages: what observers at both ends of a queue pair tell each other (SCR, 4.3.1): datagrams without connection
// or repetition. README.md has the packets.
#pragma once
#include <cstdint>
#include <span>

#include "nic_model/core.h"
#include "nic_model/rate/observer.h"

namespace rocebox::nic_model {

inline constexpr std::uint16_t kPeerMessageUdpPort = 49792;

class PeerMessages {
 public:
  PeerMessages(Core& core, Stats& stats);

  /// False: the queue pair is not connected, or its next hop is not known yet.
  bool send(Context& context, Qp& qp, std::span<const std::uint8_t, kPeerMessageBytes> message);
  /// A packet that is not RoCE. Null: it is no such message; else what its end is counted as.
  Counter* on_packet(Context& context, Packet packet);

 private:
  Core& core_;
  Counter &sent_, &received_, &drop_damaged_, &drop_stranger_, &drop_old_, &drop_unwanted_;
};

}  // namespace rocebox::nic_model
