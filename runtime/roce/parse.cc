// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/parse.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/limits.h"
#include "runtime/packet/prefetch.h"

namespace rocebox::roce {
namespace {

constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51, kDestinationOptions = 60;

ParseStatus read_ipv4(Packet packet, const std::uint8_t* data, std::uint32_t offset, IpPayload& ip) {
  const std::uint32_t size = packet.size();
  if (size < offset + sizeof(Ipv4)) return ParseStatus::kSnappedIp;
  const auto* header = reinterpret_cast<const Ipv4*>(data + offset);
  if (header->version_ihl >> 4 != 4) return ParseStatus::kBadIpVersion;
  const std::uint32_t header_bytes = header->header_bytes();
  if (header_bytes < sizeof(Ipv4)) return ParseStatus::kBadIpHeaderLength;
  const auto total = static_cast<std::uint32_t>(header->total_length);
  if (total < header_bytes) return ParseStatus::kBadIpLength;
  packet.meta().ip_version = 4;
  ip.protocol = header->protocol;
  ip.offset = offset + header_bytes;
  ip.end = offset + total;
  const auto fragment = static_cast<std::uint32_t>(header->flags_fragment);
  ip.later_fragment = (fragment & 0x1FFF) != 0;
  ip.first_fragment = !ip.later_fragment && (fragment & 0x2000);
  return size < ip.offset ? ParseStatus::kSnappedIp : ParseStatus::kUnparsed;
}

ParseStatus read_ipv6(Packet packet, const std::uint8_t* data, std::uint32_t offset, IpPayload& ip) {
  const std::uint32_t size = packet.size();
  if (size < offset + sizeof(Ipv6)) return ParseStatus::kSnappedIp;
  const auto* header = reinterpret_cast<const Ipv6*>(data + offset);
  if (data[offset] >> 4 != 6) return ParseStatus::kBadIpVersion;
  packet.meta().ip_version = 6;
  ip.protocol = header->next_header;
  ip.offset = offset + static_cast<std::uint32_t>(sizeof(Ipv6));
  ip.end = ip.offset + static_cast<std::uint32_t>(header->payload_length);
  for (unsigned walked = 0;; walked++) {
    const bool extension = ip.protocol == kHopByHop || ip.protocol == kRouting || ip.protocol == kFragment ||
                           ip.protocol == kAuthentication || ip.protocol == kDestinationOptions;
    if (!extension || ip.later_fragment) return ParseStatus::kUnparsed;
    if (walked == kIpv6ExtensionsMax) return ParseStatus::kBadIpv6Extension;
    if (ip.offset + 8 > ip.end) return ParseStatus::kBadIpv6Extension;
    if (ip.offset + 8 > size) return ParseStatus::kSnappedIp;
    const std::uint8_t* extension_header = data + ip.offset;
    std::uint32_t bytes = (extension_header[1] + 1u) * 8u;
    if (ip.protocol == kFragment) {
      bytes = 8;
      const std::uint32_t fragment = load_be16(extension_header + 2);
      ip.later_fragment = (fragment & 0xFFF8) != 0;
      ip.first_fragment = !ip.later_fragment && (fragment & 1);
    } else if (ip.protocol == kAuthentication) {
      bytes = (extension_header[1] + 2u) * 4u;
    }
    if (ip.offset + bytes > ip.end) return ParseStatus::kBadIpv6Extension;
    if (ip.offset + bytes > size) return ParseStatus::kSnappedIp;
    ip.protocol = extension_header[0];
    ip.offset += bytes;
  }
}

ParseStatus read_transport(Packet packet, const std::uint8_t* data, std::uint32_t datagram_bytes) {
  PacketMeta& meta = packet.meta();
  const std::uint32_t offset = meta.udp_offset + static_cast<std::uint32_t>(sizeof(Udp));
  if (datagram_bytes < sizeof(Udp) + sizeof(Bth)) return ParseStatus::kNoRoomForBth;
  if (packet.size() < offset + sizeof(Bth)) return ParseStatus::kSnappedBth;
  const auto* header = reinterpret_cast<const Bth*>(data + offset);
  // What stands behind the reserved opcode is not a BTH: it has no version there.
  if (header->transport_version() != 0 && header->opcode != kOpcodeReserved) return ParseStatus::kBadTransportVersion;
  meta.bth_offset = static_cast<std::uint16_t>(offset);
  meta.opcode = header->opcode;
  const OpcodeInfo& info = kOpcodes[header->opcode];
  const std::uint32_t payload = offset + static_cast<std::uint32_t>(sizeof(Bth)) + info.extension_bytes;
  meta.payload_offset = static_cast<std::uint16_t>(payload);
  meta.pad_bytes = static_cast<std::uint8_t>(header->pad_count());
  const std::uint32_t header_bytes = static_cast<std::uint32_t>(sizeof(Bth)) + info.extension_bytes;
  if (datagram_bytes < sizeof(Udp) + header_bytes + kIcrcBytes) return ParseStatus::kNoRoomForExtension;
  const std::uint32_t transport_bytes = datagram_bytes - static_cast<std::uint32_t>(sizeof(Udp)) - kIcrcBytes;
  if (!info.has(kIsKnown)) {
    meta.payload_bytes = transport_bytes - header_bytes;
    if (header->opcode == kOpcodeReserved) return ParseStatus::kReservedOpcode;
    return is_unsupported(info.service) ? ParseStatus::kUnsupportedService : ParseStatus::kUnknownOpcode;
  }
  if (transport_bytes < header_bytes + meta.pad_bytes) return ParseStatus::kBadPadCount;
  meta.payload_bytes = transport_bytes - header_bytes - meta.pad_bytes;
  if (packet.size() < payload) return ParseStatus::kSnappedExtension;
  return ParseStatus::kRoce;
}

std::uint32_t load_word(const std::uint8_t* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The form that nearly all RoCEv2 has: no VLAN tag, IPv4 without options or fragments, a known opcode, all headers
// held, lengths that agree. False, and nothing is done, when anything is otherwise: parse_one() says what it is. What
// both take they find alike.
[[gnu::always_inline]] inline bool parse_usual(Packet packet) {
  constexpr std::uint32_t kIp = sizeof(Ethernet), kUdp = kIp + sizeof(Ipv4), kBth = kUdp + sizeof(Udp);
  const std::uint32_t size = packet.size();
  if (size < kBth + sizeof(Bth)) return false;
  const std::uint8_t* data = packet.data();
  const auto& ip = *reinterpret_cast<const Ipv4*>(data + kIp);
  const auto& udp = *reinterpret_cast<const Udp*>(data + kUdp);
  const auto& bth = *reinterpret_cast<const Bth*>(data + kBth);
  const auto total = static_cast<std::uint32_t>(ip.total_length), datagram = static_cast<std::uint32_t>(udp.length);
  // What must have one value, differences from it gathered for one branch: EtherType, version and header length; that
  // it is no fragment, and the protocol, with the TTL between; the port; the lengths; the transport version.
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint32_t kTypeAndVersion = 0x450008, kProtocol = std::uint32_t{kIpProtocolUdp} << 24;
  const std::uint32_t differences =
      ((load_word(data + kIp - 2) & 0xFFFFFF) ^ kTypeAndVersion) |
      ((load_word(data + kIp + offsetof(Ipv4, flags_fragment)) & 0xFF00FF3F) ^ kProtocol) |
      (static_cast<std::uint32_t>(udp.destination_port) ^ kRoceUdpPort) | ((datagram + sizeof(Ipv4)) ^ total) |
      bth.transport_version();
  const OpcodeInfo& info = kOpcodes[bth.opcode];
  if (differences != 0 || !info.has(kIsKnown)) return false;
  const std::uint32_t header_bytes = static_cast<std::uint32_t>(sizeof(Bth)) + info.extension_bytes;
  const std::uint32_t pad = bth.pad_count();
  const std::uint32_t around = static_cast<std::uint32_t>(sizeof(Udp)) + header_bytes + pad + kIcrcBytes;
  PacketMeta& meta = packet.meta();
  if (datagram < around || size < kBth + header_bytes || meta.wire_bytes < kIp + total) return false;
  meta.payload_bytes = datagram - around;
  meta.datagram_end = kIp + total;
  meta.l3_offset = kIp;
  meta.udp_offset = kUdp;
  meta.bth_offset = kBth;
  meta.payload_offset = static_cast<std::uint16_t>(kBth + header_bytes);
  meta.status = ParseStatus::kRoce;
  meta.opcode = bth.opcode;
  meta.ip_version = 4;
  meta.pad_bytes = static_cast<std::uint8_t>(pad);
  return true;
}

ParseStatus parse_one(Packet packet) {
  PacketMeta& meta = packet.meta();
  const std::uint8_t* data = packet.data();
  std::uint32_t offset = 0, type = 0;
  meta.bth_offset = meta.udp_offset = meta.payload_offset = 0;
  meta.payload_bytes = meta.datagram_end = 0;
  meta.ip_version = meta.pad_bytes = meta.opcode = 0;
  if (!find_network(data, packet.size(), offset, type)) return ParseStatus::kSnappedEthernet;
  meta.l3_offset = static_cast<std::uint16_t>(offset);
  IpPayload ip;
  ParseStatus status;
  if (type == kEtherIpv4)
    status = read_ipv4(packet, data, offset, ip);
  else if (type == kEtherIpv6)
    status = read_ipv6(packet, data, offset, ip);
  else
    return type == kEtherRoceV1 ? ParseStatus::kRoceV1 : ParseStatus::kNotIp;
  if (status != ParseStatus::kUnparsed) return status;
  meta.datagram_end = ip.end;
  if (ip.protocol != kIpProtocolUdp) return ParseStatus::kNotUdp;
  if (ip.later_fragment) return ParseStatus::kLaterFragment;
  if (packet.size() < ip.offset + sizeof(Udp))
    return ip.end < ip.offset + sizeof(Udp) ? ParseStatus::kBadUdpLength : ParseStatus::kSnappedUdp;
  const auto* udp = reinterpret_cast<const Udp*>(data + ip.offset);
  if (udp->destination_port != kRoceUdpPort) return ParseStatus::kOtherUdpPort;
  if (ip.first_fragment) return ParseStatus::kFirstFragment;
  meta.udp_offset = static_cast<std::uint16_t>(ip.offset);
  if (udp->length < sizeof(Udp) || udp->length != ip.end - ip.offset) return ParseStatus::kBadUdpLength;
  status = read_transport(packet, data, ip.end - ip.offset);
  const bool well_formed = status == ParseStatus::kRoce || status == ParseStatus::kSnappedExtension;
  if (well_formed && meta.wire_bytes < ip.end) return ParseStatus::kShorterThanIpLength;
  return status;
}

void parse_unusual(Packet packet) {
  PacketMeta& meta = packet.meta();
  ParseStatus status = parse_one(packet);
  // Headers end early although no byte of the frame is missing here: then it was cut on the wire, not snapped.
  if (status >= ParseStatus::kSnappedIp && status <= ParseStatus::kSnappedExtension && meta.wire_bytes <= packet.size())
    status = ParseStatus::kShorterThanIpLength;
  meta.status = status;
}

}  // namespace

void parse(Packet packet) {
  if (!parse_usual(packet)) parse_unusual(packet);
}

namespace {

template <bool kLook>
void parse_burst(std::span<const Packet> packets) {
  constexpr std::size_t kAhead = 4;
  for (std::size_t i = 0; i < packets.size(); i++) {
    const Packet ahead = packets[std::min(i + kAhead, packets.size() - 1)];
    prefetch_line(ahead.data());
    prefetch_line(&ahead.meta());
    if (kLook && packets[i].meta().status != ParseStatus::kUnparsed) continue;
    if (!parse_usual(packets[i])) [[unlikely]]
      parse_unusual(packets[i]);
  }
}

}  // namespace

void parse(std::span<const Packet> packets) { parse_burst<false>(packets); }

void parse_new(std::span<const Packet> packets) { parse_burst<true>(packets); }

std::string_view parse_status_name(ParseStatus status) {
  constexpr std::string_view kNames[] = {"unparsed",
                                         "roce",
                                         "not_ip",
                                         "not_udp",
                                         "other_udp_port",
                                         "roce_v1",
                                         "first_fragment",
                                         "later_fragment",
                                         "snapped_ethernet",
                                         "snapped_ip",
                                         "snapped_udp",
                                         "snapped_bth",
                                         "snapped_extension",
                                         "shorter_than_ip_length",
                                         "unsupported_service",
                                         "reserved_opcode",
                                         "bad_ip_version",
                                         "bad_ip_header_length",
                                         "bad_ip_length",
                                         "bad_ipv6_extension",
                                         "bad_udp_length",
                                         "no_room_for_bth",
                                         "bad_transport_version",
                                         "unknown_opcode",
                                         "no_room_for_extension",
                                         "bad_pad_count"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(ParseStatus::kCount));
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view parse_status_sentence(ParseStatus status) {
  constexpr std::string_view kSentences[] = {"not looked at",
                                             "RoCEv2 with a known opcode",
                                             "neither IPv4 nor IPv6",
                                             "IP, but not UDP",
                                             "UDP to another port than 4791",
                                             "RoCE version 1 (EtherType 0x8915)",
                                             "first IP fragment of a RoCEv2 datagram",
                                             "later IP fragment of a UDP datagram",
                                             "bytes held end inside the Ethernet header or its tags",
                                             "bytes held end inside the IP header",
                                             "bytes held end inside the UDP header",
                                             "bytes held end inside the base transport header",
                                             "bytes held end inside an extended transport header",
                                             "the frame on the wire ends before its IP datagram: trimmed or cut",
                                             "BTH opcode of RD, XRC or a manufacturer; only its BTH is read",
                                             "opcode 0x1F, which gateways send each other",
                                             "IP version does not match the EtherType",
                                             "IPv4 header length below 20 bytes",
                                             "IPv4 total length below the header length",
                                             "IPv6 extension header beyond the datagram, or too many",
                                             "UDP length disagrees with the IP length",
                                             "no room for BTH in the datagram",
                                             "BTH transport version is not 0",
                                             "BTH opcode is reserved",
                                             "no room for the opcode's extended headers and the ICRC in the datagram",
                                             "pad count exceeds the payload"};
  static_assert(std::size(kSentences) == static_cast<std::size_t>(ParseStatus::kCount));
  return kSentences[static_cast<std::size_t>(status)];
}

IpPayload ip_payload(Packet packet) {
  const PacketMeta& meta = packet.meta();
  IpPayload ip;
  (meta.ip_version == 4 ? read_ipv4 : read_ipv6)(packet, packet.data(), meta.l3_offset, ip);
  return ip;
}

std::uint8_t ecn(Packet packet) {
  const std::uint8_t* header = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version == 4) return header[1] & kEcnMask;
  return header[1] >> 4 & kEcnMask;
}

}  // namespace rocebox::roce
