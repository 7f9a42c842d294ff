// SPDX-License-Identifier: BSD-3-Clause
// RttProber: out-of-band round-trip times (SCR, 4.3.1): a request to a queue pair's peer, which its NIC answers with
// its own times and what its observer writes. README.md has the packets.
#pragma once
#include <cstdint>

#include "nic_model/core.h"
#include "nic_model/rate/observer.h"

namespace rocebox::nic_model {

inline constexpr std::uint16_t kRttUdpPort = 49791;

class RttProber {
 public:
  RttProber(Core& core, Stats& stats);

  /// False: the queue pair is not connected, or its next hop is not known yet.
  bool request(Context& context, Qp& qp, std::uint16_t udp_source_port);
  /// A packet that is not RoCE. Null: it is no probe; else what its end is counted as.
  Counter* on_packet(Context& context, Packet packet);

 private:
  struct Probe;
  Counter& on_request(Context& context, Packet packet, const Probe& probe, std::uint16_t udp_source_port);
  static RttRequest request_of(Packet packet, std::uint32_t qpn);
  Counter& on_response(Context& context, Packet packet, const Probe& probe);
  bool send(Context& context, const roce::IpAddress& to, const roce::Mac& mac, std::uint8_t traffic_class,
            std::uint16_t source_port, std::uint16_t destination_port, const Probe& probe);

  Core& core_;
  Counter &requests_sent_, &responses_sent_, &responses_received_, &drop_;
};

}  // namespace rocebox::nic_model
