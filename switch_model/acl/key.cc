// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/key.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/hop_fields.h"
#include "runtime/roce/parse.h"

namespace rocebox::switch_model::acl {
namespace {

constexpr std::uint32_t kPortsBytes = 4;
constexpr unsigned kFragmentOffset = 0x1FFF;

constexpr unsigned kExtensionsMax = 8;
enum Extension : std::uint8_t { kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51, kOptions = 60 };

// Behind IPv6's extension headers, as far as they are held (RFC 8200, 4; RFC 4302, 2.2): where what follows is, and
// what.
std::uint32_t skip_extensions(Packet packet, std::uint32_t at, std::uint8_t& protocol, bool& later) {
  for (unsigned passed = 0; passed < kExtensionsMax && packet.size() >= at + 8; passed++) {
    const std::uint8_t* header = packet.data() + at;
    std::uint32_t bytes = (header[1] + 1u) * 8;
    if (protocol == kFragment) {
      bytes = 8;
      later = later || (header[2] << 8 | (header[3] & 0xF8)) != 0;
    } else if (protocol == kAuthentication) {
      bytes = (header[1] + 2u) * 4;
    } else if (protocol != kHopByHop && protocol != kRouting && protocol != kOptions) {
      break;
    }
    protocol = header[0];
    at += bytes;
  }
  return at;
}

// Where the transport header of an IP packet is, and whether this is a fragment that has none.
std::uint32_t read_ip(Packet packet, Key& key, bool& later) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  key.ip_version = meta.ip_version;
  key.flags = kIsIp;
  key.tos = roce::tos(packet);
  if (meta.ip_version == 4) {
    const auto& header = *reinterpret_cast<const roce::Ipv4*>(ip);
    std::copy_n(header.source, 4, key.source.begin() + 12);
    std::copy_n(header.destination, 4, key.destination.begin() + 12);
    key.protocol = header.protocol;
    later = (static_cast<unsigned>(header.flags_fragment) & kFragmentOffset) != 0;
    return meta.l3_offset + header.header_bytes();
  }
  const auto& header = *reinterpret_cast<const roce::Ipv6*>(ip);
  std::copy_n(header.source, 16, key.source.begin());
  std::copy_n(header.destination, 16, key.destination.begin());
  key.protocol = header.next_header;
  return skip_extensions(packet, meta.l3_offset + static_cast<std::uint32_t>(sizeof header), key.protocol, later);
}

}  // namespace

void read_key(const PacketState& p, Key& key) {
  const Packet packet = p.packet;
  const PacketMeta& meta = packet.meta();
  key = {};
  key.ingress_port = p.ingress_port;
  std::uint32_t network, type;
  if (const auto* ethernet = packet.header<roce::Ethernet>(0)) {
    std::copy_n(ethernet->destination, 6, key.destination_mac.begin());
    std::copy_n(ethernet->source, 6, key.source_mac.begin());
    type = static_cast<std::uint32_t>(ethernet->type);
    if (roce::find_network(packet.data(), packet.size(), network, type) && network > sizeof(roce::Ethernet)) {
      const auto tci = static_cast<unsigned>(packet.header<roce::VlanTag>(sizeof(roce::Ethernet))->tci);
      key.vlan = {static_cast<std::uint8_t>(tci >> 8 & 0x0F), static_cast<std::uint8_t>(tci)};
    }
    key.ethertype = {static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type)};
  }
  if (meta.ip_version == 0) return;
  bool later = false;
  const std::uint32_t transport = read_ip(packet, key, later);
  if ((key.protocol == kTcp || key.protocol == roce::kIpProtocolUdp) && !later &&
      packet.size() >= transport + kPortsBytes) {
    key.flags |= kHasPorts;
    std::memcpy(key.source_port.data(), packet.data() + transport, 2);
    std::memcpy(key.destination_port.data(), packet.data() + transport + 2, 2);
  }
  if (meta.bth_offset == 0) return;
  key.flags |= kHasBth;
  key.opcode = meta.opcode;
  if (!roce::has_qpn_and_psn(packet)) return;
  key.flags |= kHasQp;
  std::memcpy(key.destination_qp.data(), roce::bth(packet).destination_qp.bytes, 3);
}

}  // namespace rocebox::switch_model::acl
