// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/frames.h"

#include <rte_ip.h>

#include <algorithm>

#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::switch_model {

std::uint32_t put_ethernet(std::uint8_t* at, const roce::Underlay& underlay, std::uint16_t type) {
  auto& ethernet = *reinterpret_cast<roce::Ethernet*>(at);
  std::ranges::copy(underlay.destination_mac, ethernet.destination);
  std::ranges::copy(underlay.source_mac, ethernet.source);
  ethernet.type = type;
  if (underlay.vlans[0] == 0) return sizeof ethernet;
  ethernet.type = roce::kEtherVlan;
  auto& tag = *reinterpret_cast<roce::VlanTag*>(at + sizeof ethernet);
  tag.tci = underlay.vlans[0];
  tag.type = type;
  return sizeof ethernet + sizeof tag;
}

std::uint32_t put_ip(std::uint8_t* at, const roce::Underlay& underlay, std::uint8_t protocol, std::uint32_t bytes) {
  const roce::Addresses& addresses = underlay.addresses;
  if (underlay.ip_version == 6) {
    auto& ip = *reinterpret_cast<roce::Ipv6*>(at);
    ip.version_class_label = 0x60000000u | static_cast<std::uint32_t>(underlay.tos) << 20;
    ip.payload_length = bytes - sizeof ip;
    ip.next_header = protocol;
    ip.hop_limit = underlay.ttl;
    std::copy_n(addresses.source.begin(), 16, ip.source);
    std::copy_n(addresses.destination.begin(), 16, ip.destination);
    return sizeof ip;
  }
  auto& ip = *reinterpret_cast<roce::Ipv4*>(at);
  ip.version_ihl = 0x45;
  ip.tos = underlay.tos;
  ip.total_length = bytes;
  ip.ttl = underlay.ttl;
  ip.protocol = protocol;
  std::copy_n(addresses.source.begin() + 12, 4, ip.source);
  std::copy_n(addresses.destination.begin() + 12, 4, ip.destination);
  roce::store_ipv4_checksum(ip);
  return sizeof ip;
}

void put_udp(std::uint8_t* at, const std::uint8_t* ip, std::uint8_t ip_version, std::uint16_t source_port,
             std::uint16_t destination_port, std::uint32_t bytes) {
  auto& udp = *reinterpret_cast<roce::Udp*>(at);
  udp.source_port = source_port;
  udp.destination_port = destination_port;
  udp.length = bytes;
  udp.checksum = 0;
  const std::uint16_t sum = ip_version == 6 ? rte_ipv6_udptcp_cksum(reinterpret_cast<const rte_ipv6_hdr*>(ip), at)
                                            : rte_ipv4_udptcp_cksum(reinterpret_cast<const rte_ipv4_hdr*>(ip), at);
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&sum), 2, udp.checksum.bytes);  // it is in network order
}

}  // namespace rocebox::switch_model
