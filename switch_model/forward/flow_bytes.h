// SPDX-License-Identifier: BSD-3-Clause
// The bytes that tell flows apart.
#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/packet/packet.h"
#include "runtime/roce/headers.h"
#include "switch_model/hash.h"
#include "switch_model/next_hops.h"

namespace rocebox::switch_model::forward {

/// Both IPv6 addresses, protocol, both ports.
inline constexpr unsigned kFlowBytesMax = 32 + 1 + 4;

/// Of any packet; see flow_bytes().
unsigned any_flow_bytes(Packet packet, std::uint8_t* bytes);

/// Writes addresses, protocol and, of TCP and UDP that is not fragmented, ports; of what is not IP both MAC addresses
/// and the type. Gives how many bytes.
inline unsigned flow_bytes(Packet packet, std::uint8_t* bytes) {
  constexpr unsigned kAddresses = 8, kPorts = 4;
  const PacketMeta& meta = packet.meta();
  if (meta.ip_version != 4 || meta.udp_offset == 0) return any_flow_bytes(packet, bytes);
  // RoCEv2 on IPv4: its UDP header is held, and it is no fragment.
  const std::uint8_t* data = packet.data();
  std::memcpy(bytes, data + meta.l3_offset + offsetof(roce::Ipv4, source), kAddresses);
  bytes[kAddresses] = roce::kIpProtocolUdp;
  std::memcpy(bytes + kAddresses + 1, data + meta.udp_offset, kPorts);
  return kAddresses + 1 + kPorts;
}

/// A unit that hashes flow_bytes() as ECMP does; next_hops has the algorithm and the seed.
HashUnit flow_hash(Layout& layout, std::string_view name, At at, const NextHops& next_hops);

}  // namespace rocebox::switch_model::forward
