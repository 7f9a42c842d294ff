// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/repair_packet.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/build.h"
#include "runtime/roce/hop_fields.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::lowar {
namespace {

// The headers below BTH of `like`, with lengths for `behind_udp` bytes; the IPv4 checksum is left to the caller.
roce::Udp& copy_headers(Packet packet, Packet like, std::uint32_t behind_udp) {
  const PacketMeta& meta = like.meta();
  std::memcpy(packet.data(), like.data(), meta.bth_offset);
  const std::uint32_t datagram = datagram_bytes(like, behind_udp);
  std::uint8_t* ip = packet.data() + meta.l3_offset;
  if (meta.ip_version == 4)
    reinterpret_cast<roce::Ipv4*>(ip)->total_length = datagram;
  else
    reinterpret_cast<roce::Ipv6*>(ip)->payload_length = datagram - sizeof(roce::Ipv6);
  auto& udp = *reinterpret_cast<roce::Udp*>(packet.data() + meta.udp_offset);
  udp.length = sizeof(roce::Udp) + behind_udp;
  udp.checksum = 0;  // unused, as RDMA NICs send it
  return udp;
}

}  // namespace

PacketPtr make_packet(Context& context, Packet like, const HeaderBytes& header, std::span<const std::uint8_t> image,
                      roce::Ahead ahead) {
  const std::uint32_t behind_udp = lowar_packet_bytes(image.size());
  PacketPtr made = context.allocate(like.meta().bth_offset + behind_udp);
  if (!made) return made;
  const Packet packet = *made;
  copy_headers(packet, like, behind_udp);
  std::uint8_t* ip = packet.data() + like.meta().l3_offset;
  if (like.meta().ip_version == 4) roce::store_ipv4_checksum(*reinterpret_cast<roce::Ipv4*>(ip));
  std::uint8_t* at = packet.data() + like.meta().bth_offset;
  std::memcpy(at, &header, sizeof header);
  if (!image.empty()) std::memcpy(at + sizeof header, image.data(), image.size());
  packet.meta().wire_bytes = packet.size();
  roce::parse(packet);
  const std::uint8_t tos = roce::tos(packet);
  if ((tos & roce::kEcnMask) == roce::kEcnCe)
    roce::set_tos(packet, static_cast<std::uint8_t>((tos & ~roce::kEcnMask) | roce::kEcnEct0));
  roce::icrc_store(packet, ahead);
  return made;
}

namespace {

template <class Header, unsigned Bytes>
void swap_fields(Header* header, std::uint8_t (Header::*a)[Bytes], std::uint8_t (Header::*b)[Bytes]) {
  std::swap_ranges(std::begin(header->*a), std::end(header->*a), header->*b);
}
constexpr std::uint8_t kTimeToLive = 64;

}  // namespace

PacketPtr make_packet_back(Context& context, Packet like, const HeaderBytes& header) {
  PacketPtr made = make_packet(context, like, header);
  if (!made) return made;
  const Packet packet = *made;
  swap_fields(reinterpret_cast<roce::Ethernet*>(packet.data()), &roce::Ethernet::destination, &roce::Ethernet::source);
  std::uint8_t* ip = packet.data() + like.meta().l3_offset;
  if (like.meta().ip_version == 4) {
    auto& ipv4 = *reinterpret_cast<roce::Ipv4*>(ip);
    swap_fields(&ipv4, &roce::Ipv4::source, &roce::Ipv4::destination);
    ipv4.ttl = kTimeToLive;
    roce::store_ipv4_checksum(ipv4);
  } else {
    auto& ipv6 = *reinterpret_cast<roce::Ipv6*>(ip);
    swap_fields(&ipv6, &roce::Ipv6::source, &roce::Ipv6::destination);
    ipv6.hop_limit = kTimeToLive;
  }
  roce::icrc_store(packet);
  return made;
}

void put_headers(Packet packet, Packet like, const CodedPrefix& prefix, bool hops_known) {
  roce::Udp& udp = copy_headers(packet, like, static_cast<std::uint32_t>(prefix.transport_bytes));
  udp.source_port = prefix.udp_source_port;
  if (hops_known) udp.checksum = prefix.udp_checksum;
  std::uint8_t* ip = packet.data() + like.meta().l3_offset;
  if (like.meta().ip_version == 4) {
    auto& header = *reinterpret_cast<roce::Ipv4*>(ip);
    header.identification = prefix.ip_word >> 16;
    header.flags_fragment = prefix.ip_word & 0xFFFF;
    if (hops_known) {
      header.ttl = prefix.hop_limit;
      header.tos = prefix.tos;
    }
    roce::store_ipv4_checksum(header);
  } else if (hops_known) {
    auto& header = *reinterpret_cast<roce::Ipv6*>(ip);
    header.version_class_label = 0x60000000u | (prefix.ip_word & 0x0FFFFFFF);
    header.hop_limit = prefix.hop_limit;
  }
  packet.meta().wire_bytes = packet.size();
  roce::parse(packet);
}

}  // namespace rocebox::lowar
