// SPDX-License-Identifier: BSD-3-Clause
// Frames below RoCE that a NIC reads and makes: ARP, ICMP echo, neighbour discovery.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/kernel/kernel.h"
#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/parse.h"

namespace rocebox::nic_model {

inline constexpr std::uint16_t kEtherArp = 0x0806, kArpRequest = 1, kArpReply = 2;
inline constexpr std::uint8_t kIpProtocolIcmp = 1, kIpProtocolIcmp6 = 58;
inline constexpr std::uint8_t kEchoRequest4 = 8, kEchoReply4 = 0, kEchoRequest6 = 128, kEchoReply6 = 129;
inline constexpr std::uint8_t kNeighborSolicitation = 135, kNeighborAdvertisement = 136;

struct ArpFrame {
  roce::Ethernet ethernet;
  roce::Be16 hardware, protocol;
  std::uint8_t hardware_bytes, protocol_bytes;
  roce::Be16 operation;
  std::uint8_t sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
};
static_assert(sizeof(ArpFrame) == 42);

struct Icmp6 {
  std::uint8_t type, code;
  roce::Be16 checksum;
};
/// A neighbour solicitation or advertisement with the option of its sender's MAC address.
inline constexpr std::uint32_t kNdFrameBytes = sizeof(roce::Ethernet) + sizeof(roce::Ipv6) + 24 + 8;

/// An IPv4 address as ::ffff:a.b.c.d.
inline roce::IpAddress mapped(const std::uint8_t* ip) { return roce::ipv4(ip[0], ip[1], ip[2], ip[3]); }

void write_arp(Packet packet, std::uint16_t operation, const roce::Mac& sender_mac, const roce::IpAddress& sender,
               const roce::Mac& to, const roce::Mac& target_mac, const roce::IpAddress& target);
void write_solicitation(Packet packet, const roce::Mac& mac, const roce::IpAddress& own, const roce::IpAddress& target);
/// To a group: to nobody who has asked for a neighbour.
void write_advertisement(Packet packet, const roce::Mac& mac, const roce::IpAddress& own, const roce::Mac& to_mac,
                         const roce::IpAddress& to);
/// Where an ICMP or ICMPv6 message lies in a frame.
struct IcmpMessage {
  std::uint32_t offset = 0, bytes = 0;
  bool checksum_is_right = false;
  bool is_one() const { return bytes > 0; }
};
/// That of a packet: none where it is a fragment, or is not all there.
IcmpMessage icmp_of(Packet packet);
/// A neighbour solicitation or advertisement.
struct NdMessage {
  roce::IpAddress target{};
  std::optional<roce::Mac> mac;  ///< that its option names
};
/// False: it is none.
bool read_nd(Packet packet, NdMessage& message);
/// The answer to an echo request, from the node that has these addresses. Empty: the pool is dry.
PacketPtr echo_reply(Context& context, Packet request, const IcmpMessage& icmp, const roce::Mac& own,
                     const roce::IpAddress& own_address);

}  // namespace rocebox::nic_model
