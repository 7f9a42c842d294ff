// SPDX-License-Identifier: BSD-3-Clause
// What nic_fuzz.cc sends to a side that is not RoCE's: probes of round-trip times, messages of observers, pauses, ARP
// and neighbour discovery, queries for members of groups.
#pragma once
#include <vector>

#include "nic_model/connect/frames.h"
#include "nic_model/rate/peer_messages.h"
#include "nic_model/rate/rtt.h"
#include "runtime/roce/internet_checksum.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/roce/membership.h"
#include "tests/fuzz/nic_hosts.h"

namespace rocebox::fuzz::nic_bed {

class FrameForger {
 public:
  explicit FrameForger(Input& input) : input_(input) {}

  PacketPtr packet(unsigned side, unsigned pair, Side& victim, Side& peer) {
    const std::uint8_t drawn = input_.take();
    switch (drawn % 8) {
      case 0:
      case 1:
      case 2:
        return probe(side, victim.qp(pair), peer.qp(pair).number(), drawn % 8 == 0);
      case 3:
      case 4:
        return peer_message(side, victim.qp(pair), peer.qp(pair).number());
      case 5:
        return pause();
      case 6:
        return arp(side);
      default:
        return query(side);
    }
  }

 private:
  static void put(std::vector<std::uint8_t>& bytes, std::uint64_t value, unsigned count) {
    while (count-- > 0) bytes.push_back(static_cast<std::uint8_t>(value >> 8 * count));
  }
  PacketPtr of(std::span<const std::uint8_t> bytes) {
    PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(bytes.size()));
    require(static_cast<bool>(packet), "the pool is large enough");
    std::copy(bytes.begin(), bytes.end(), packet->data());
    return packet;
  }
  std::uint32_t disguised(std::uint32_t qpn, std::uint8_t drawn) const {
    return drawn < 0xE0 ? qpn : qpn ^ 1u << drawn % 24;
  }
  PacketPtr probe(unsigned side, const nic_model::Qp& qp, std::uint32_t peer_qpn, bool asks) {
    const std::uint8_t who = input_.take(), serial = input_.take(), times = input_.take();
    std::vector<std::uint8_t> bytes = {'R', 'B', 'R', 'T', 1, std::uint8_t(asks ? 1 : 2), 0, 0};
    put(bytes, disguised(qp.number(), who), 4);
    put(bytes, disguised(peer_qpn, who & 1 ? 0 : who), 4);
    put(bytes, qp.rtt_serial - serial % 12, 4);
    put(bytes, 0, 4);
    for (unsigned i = 0; i < 3; i++) put(bytes, times & 1 << i ? times * 1000u : 0ull - times, 8);
    bytes.resize(80, times);
    if (who % 16 == 15) bytes[serial % bytes.size()] ^= times;
    const std::uint16_t other = static_cast<std::uint16_t>(times == 0xFF ? nic_model::kRttUdpPort : 0xC000 + times);
    return datagram(side, asks ? other : nic_model::kRttUdpPort, asks ? nic_model::kRttUdpPort : other, bytes);
  }
  PacketPtr peer_message(unsigned side, const nic_model::Qp& qp, std::uint32_t peer_qpn) {
    const std::uint8_t who = input_.take(), time = input_.take();
    std::vector<std::uint8_t> bytes = {'R', 'B', 'P', 'M', 1, 0, 0, 0};
    put(bytes, disguised(qp.number(), who), 4);
    put(bytes, disguised(peer_qpn, who & 1 ? 0 : who), 4);
    put(bytes, qp.peer_message_seen + time - 8, 8);
    bytes.resize(128, time);
    std::fill_n(bytes.begin() + 24, 8, std::uint8_t{0});
    if (who % 16 == 15) bytes[time % bytes.size()] ^= 1;
    return datagram(side, 0xC000, nic_model::kPeerMessageUdpPort, bytes);
  }
  PacketPtr datagram(unsigned side, std::uint16_t source_port, std::uint16_t destination_port,
                     std::span<const std::uint8_t> payload) {
    const std::uint8_t drawn = input_.take();
    const auto udp_bytes = static_cast<std::uint16_t>(sizeof(roce::Udp) + payload.size());
    std::vector<std::uint8_t> bytes(sizeof(roce::Ethernet) + sizeof(roce::Ipv4) + udp_bytes);
    auto* ethernet = reinterpret_cast<roce::Ethernet*>(bytes.data());
    std::ranges::copy(mac_of(side), ethernet->destination);
    std::ranges::copy(mac_of(1 - side), ethernet->source);
    ethernet->type = roce::kEtherIpv4;
    auto* ip = reinterpret_cast<roce::Ipv4*>(ethernet + 1);
    ip->version_ihl = 0x45;
    ip->total_length = static_cast<std::uint16_t>(sizeof *ip + udp_bytes);
    ip->ttl = drawn;
    ip->protocol = roce::kIpProtocolUdp;
    const roce::IpAddress from = drawn < 0xE0 ? address_of(1 - side) : drawn & 1 ? kStranger : address_of(side);
    std::copy_n(from.begin() + 12, 4, ip->source);
    std::copy_n(address_of(side).begin() + 12, 4, ip->destination);
    roce::store_ipv4_checksum(*ip);
    auto* udp = reinterpret_cast<roce::Udp*>(ip + 1);
    udp->source_port = source_port, udp->destination_port = destination_port, udp->length = udp_bytes;
    std::ranges::copy(payload, reinterpret_cast<std::uint8_t*>(udp + 1));
    const std::uint16_t sum =
        roce::sum_with_addresses(ip->source, 8, roce::kIpProtocolUdp, reinterpret_cast<std::uint8_t*>(udp), udp_bytes);
    udp->checksum = static_cast<std::uint16_t>(drawn % 16 == 15 ? 1 : ~sum);
    return of(bytes);
  }
  PacketPtr pause() {
    const std::uint8_t drawn = input_.take(), quanta = input_.take();
    std::vector<std::uint8_t> bytes = {0x01, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
    put(bytes, drawn & 1 ? 0x0101 : 0x0001, 2);
    put(bytes, drawn & 1 ? drawn : quanta * 255u, 2);
    for (unsigned i = 0; i < 8; i++) put(bytes, quanta * 255u, 2);
    bytes.resize(60);
    return of(bytes);
  }
  PacketPtr arp(unsigned side) {
    const std::uint8_t drawn = input_.take();
    if ((drawn & 0xC0) == 0x40) return neighbour(side, drawn);
    PacketPtr packet = pool->allocate(sizeof(nic_model::ArpFrame));
    require(static_cast<bool>(packet), "the pool is large enough");
    const roce::IpAddress senders[] = {kStranger, address_of(1 - side), address_of(side), roce::ipv4(0, 0, 0, 0)};
    const roce::IpAddress targets[] = {address_of(side), kStranger, address_of(1 - side), address_of(side)};
    roce::Mac mac = mac_of(1 - side);
    if (drawn >= 0xE0) mac[drawn % 6] ^= drawn;
    nic_model::write_arp(*packet, drawn & 16 ? nic_model::kArpRequest : nic_model::kArpReply, mac, senders[drawn & 3],
                         drawn & 32 ? mac_of(side) : roce::Mac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, mac_of(side),
                         targets[drawn >> 2 & 3]);
    return packet;
  }
  // The same of IPv6.
  PacketPtr neighbour(unsigned side, std::uint8_t drawn) {
    const auto of_side = [](unsigned number) {
      return roce::IpAddress{0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(number + 1)};
    };
    PacketPtr packet = pool->allocate(nic_model::kNdFrameBytes);
    require(static_cast<bool>(packet), "the pool is large enough");
    const roce::Mac mac = mac_of(drawn & 4 ? side : 1 - side);
    const roce::IpAddress from = of_side(drawn & 1 ? 1 - side : drawn >> 1 & 1);
    if (drawn & 16)
      nic_model::write_solicitation(*packet, mac, from, of_side(side));
    else
      nic_model::write_advertisement(*packet, mac, from, mac_of(side), of_side(side));
    if (drawn & 8) packet->data()[packet->size() - 1] ^= 1;
    return packet;
  }
  PacketPtr query(unsigned side) {
    const std::uint8_t drawn = input_.take();
    const roce::IpAddress group = group_of(drawn % kGroups);
    roce::MembershipFrame frame;
    frame.is_mld = drawn % kGroups == 2;
    frame.version = static_cast<std::uint8_t>((frame.is_mld ? 1 : 2) + (drawn >> 3 & 1));
    frame.source_mac = mac_of(1 - side);
    frame.source = frame.is_mld ? roce::link_local(mac_of(1 - side)) : address_of(1 - side);
    if (drawn & 16) frame.groups = {&group, 1};
    frame.response_time = (drawn >> 5) * 300 * kMillisecond;
    std::uint8_t bytes[roce::kMembershipBytesMax];
    const std::uint32_t size = roce::write_membership(bytes, frame);
    if (drawn == 0xFF) bytes[size - 1] ^= 1;
    return of({bytes, size});
  }

  Input& input_;
};

}  // namespace rocebox::fuzz::nic_bed
