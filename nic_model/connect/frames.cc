// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/connect/frames.h"

#include <cstring>

#include "runtime/roce/internet_checksum.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kNdBytesMin = 24, kNdBytes = kNdBytesMin + 8;  // ICMPv6 with a target; and with one option
constexpr std::uint32_t kIcmpBytesMin = 8;
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kHopLimitNd = 255;  // RFC 4861, 7.1: what has come through a router is not believed

// Of a frame of which it is known that it has room for this.
template <class T>
T& structure(Packet packet, std::uint32_t offset) {
  return *reinterpret_cast<T*>(packet.data() + offset);
}

// Of the ICMPv6 message behind `ip`, its pseudo header included (RFC 8200, 8.1).
std::uint16_t icmp6_sum(const roce::Ipv6& ip, const std::uint8_t* message, std::uint32_t bytes) {
  return roce::sum_with_addresses(ip.source, 32, kIpProtocolIcmp6, message, bytes);
}

void write_nd(Packet packet, const roce::Mac& mac, const roce::IpAddress& own, const roce::Mac& to_mac,
              const roce::IpAddress& to, std::uint8_t type, const roce::IpAddress& target) {
  std::memset(packet.data(), 0, packet.size());
  auto* ethernet = &structure<roce::Ethernet>(packet, 0);
  std::copy(to_mac.begin(), to_mac.end(), ethernet->destination);
  std::copy(mac.begin(), mac.end(), ethernet->source);
  ethernet->type = roce::kEtherIpv6;
  auto* ip = &structure<roce::Ipv6>(packet, sizeof(roce::Ethernet));
  ip->version_class_label = 0x60000000u;
  ip->payload_length = kNdBytes;
  ip->next_header = kIpProtocolIcmp6;
  ip->hop_limit = kHopLimitNd;
  std::copy(own.begin(), own.end(), ip->source);
  std::copy(to.begin(), to.end(), ip->destination);
  std::uint8_t* message = packet.data() + sizeof(roce::Ethernet) + sizeof(roce::Ipv6);
  const bool asks = type == kNeighborSolicitation;
  message[0] = type;
  if (!asks) message[4] = roce::is_multicast(to) ? 0x20 : 0x60;  // override; solicited
  std::copy(target.begin(), target.end(), message + 8);
  message[24] = asks ? 1 : 2;  // source or target link-layer address
  message[25] = 1;
  std::copy(mac.begin(), mac.end(), message + 26);
  reinterpret_cast<Icmp6*>(message)->checksum = static_cast<std::uint16_t>(~icmp6_sum(*ip, message, kNdBytes));
}

PacketPtr copy_turned(Context& context, Packet request, const roce::Mac& own) {
  PacketPtr reply = context.allocate(request.size());
  if (!reply) return reply;
  std::memcpy(reply->data(), request.data(), request.size());
  auto* ethernet = &structure<roce::Ethernet>(*reply, 0);
  std::copy_n(ethernet->source, 6, ethernet->destination);
  std::copy(own.begin(), own.end(), ethernet->source);
  return reply;
}

}  // namespace

void write_arp(Packet packet, std::uint16_t operation, const roce::Mac& sender_mac, const roce::IpAddress& sender,
               const roce::Mac& to, const roce::Mac& target_mac, const roce::IpAddress& target) {
  auto* arp = &structure<ArpFrame>(packet, 0);
  std::copy(to.begin(), to.end(), arp->ethernet.destination);
  std::copy(sender_mac.begin(), sender_mac.end(), arp->ethernet.source);
  arp->ethernet.type = kEtherArp;
  arp->hardware = 1;
  arp->protocol = roce::kEtherIpv4;
  arp->hardware_bytes = 6;
  arp->protocol_bytes = 4;
  arp->operation = operation;
  std::copy(sender_mac.begin(), sender_mac.end(), arp->sender_mac);
  std::copy_n(sender.begin() + 12, 4, arp->sender_ip);
  std::copy(target_mac.begin(), target_mac.end(), arp->target_mac);
  std::copy_n(target.begin() + 12, 4, arp->target_ip);
}

void write_solicitation(Packet packet, const roce::Mac& mac, const roce::IpAddress& own,
                        const roce::IpAddress& target) {
  // The target's solicited-node multicast address (RFC 4291, 2.7.1), and its MAC address (RFC 2464, 7).
  const roce::IpAddress group = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, target[13], target[14], target[15]};
  const roce::Mac group_mac = {0x33, 0x33, 0xFF, target[13], target[14], target[15]};
  write_nd(packet, mac, own, group_mac, group, kNeighborSolicitation, target);
}

void write_advertisement(Packet packet, const roce::Mac& mac, const roce::IpAddress& own, const roce::Mac& to_mac,
                         const roce::IpAddress& to) {
  write_nd(packet, mac, own, to_mac, to, kNeighborAdvertisement, own);
}

IcmpMessage icmp_of(Packet packet) {
  const std::uint32_t at = packet.meta().l3_offset;
  IcmpMessage icmp;
  if (packet.meta().ip_version == 4) {
    const auto* ip = packet.header<roce::Ipv4>(at);
    if (!ip || ip->protocol != kIpProtocolIcmp || (ip->flags_fragment & 0x3FFF) != 0) return icmp;
    icmp.offset = at + ip->header_bytes();
    const std::uint32_t end = at + static_cast<std::uint32_t>(ip->total_length);
    if (end < icmp.offset + kIcmpBytesMin || end > packet.size()) return icmp;
    icmp.bytes = end - icmp.offset;
    icmp.checksum_is_right = roce::folded(roce::add_words(packet.data() + icmp.offset, icmp.bytes)) == 0xFFFF;
  } else if (packet.meta().ip_version == 6) {
    const auto* ip = packet.header<roce::Ipv6>(at);
    if (!ip || ip->next_header != kIpProtocolIcmp6) return icmp;
    icmp.offset = at + static_cast<std::uint32_t>(sizeof(roce::Ipv6));
    const auto bytes = static_cast<std::uint32_t>(ip->payload_length);
    if (bytes < kIcmpBytesMin || icmp.offset + bytes > packet.size()) return icmp;
    icmp.bytes = bytes;
    icmp.checksum_is_right = icmp6_sum(*ip, packet.data() + icmp.offset, bytes) == 0xFFFF;
  }
  return icmp;
}

bool read_nd(Packet packet, NdMessage& message) {
  const std::uint32_t at = packet.meta().l3_offset;
  const auto* ip = packet.header<roce::Ipv6>(at);
  if (!ip || ip->hop_limit != kHopLimitNd || ip->payload_length < kNdBytesMin) return false;
  const std::uint8_t* bytes = packet.data() + at + sizeof(roce::Ipv6);
  std::copy_n(bytes + 8, 16, message.target.begin());
  if (ip->payload_length < kNdBytes || (bytes[24] != 1 && bytes[24] != 2) || bytes[25] != 1) return true;
  std::copy_n(bytes + 26, 6, message.mac.emplace().begin());
  return true;
}

PacketPtr echo_reply(Context& context, Packet request, const IcmpMessage& icmp, const roce::Mac& own,
                     const roce::IpAddress& own_address) {
  PacketPtr reply = copy_turned(context, request, own);
  if (!reply) return reply;
  const std::uint32_t at = request.meta().l3_offset;
  std::uint8_t* message = reply->data() + icmp.offset;
  const bool is_ipv4 = request.meta().ip_version == 4;
  message[0] = is_ipv4 ? kEchoReply4 : kEchoReply6;
  message[2] = message[3] = 0;
  std::uint16_t sum;
  if (is_ipv4) {
    auto* ip = &structure<roce::Ipv4>(*reply, at);
    std::copy_n(ip->source, 4, ip->destination);
    std::copy_n(own_address.begin() + 12, 4, ip->source);
    ip->ttl = kHopLimit;
    roce::store_ipv4_checksum(*ip);
    sum = roce::folded(roce::add_words(message, icmp.bytes));
  } else {
    auto* ip = &structure<roce::Ipv6>(*reply, at);
    std::copy_n(ip->source, 16, ip->destination);
    std::copy_n(own_address.begin(), 16, ip->source);
    ip->hop_limit = kHopLimit;
    sum = icmp6_sum(*ip, message, icmp.bytes);
  }
  const auto checksum = static_cast<std::uint16_t>(~sum);
  message[2] = static_cast<std::uint8_t>(checksum >> 8);
  message[3] = static_cast<std::uint8_t>(checksum);
  return reply;
}

}  // namespace rocebox::nic_model
