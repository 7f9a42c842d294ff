// SPDX-License-Identifier: BSD-3-Clause
// UDP datagrams of the NIC's own beside RoCE: probes, and messages of observers.
#pragma once
#include <cstdint>
#include <span>

#include "nic_model/core.h"
#include "runtime/roce/parse.h"

namespace rocebox::nic_model {

struct DatagramTo {
  roce::IpAddress address;
  roce::Mac mac;  ///< of the next hop
  std::uint8_t traffic_class;
  std::uint16_t source_port, destination_port;
};

/// With right checksums, before all queue pairs' packets. False: no packet buffer, or too many of the NIC's own wait;
/// either is counted.
bool send_datagram(Context& context, Core& core, const DatagramTo& to, std::span<const std::uint8_t> payload);

/// The UDP header of a packet that is no fragment, for reading; null: there is none that is held.
const roce::Udp* udp_of(Packet packet);
/// Whether that datagram has so many bytes of payload, all held, and its checksum is right.
bool is_whole_datagram(Packet packet, const roce::Udp& udp, std::uint32_t payload_bytes);

}  // namespace rocebox::nic_model
