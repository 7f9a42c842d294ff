// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/key.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/hop_fields.h"
#include "runtime/roce/parse.h"

namespace rocebox::switch_model::acl {
namespace {

constexpr std::uint32_t kPortsBytes = 4;

// What the IP header says; gives where it leads.
roce::IpPayload read_ip(Packet packet, Key& key) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  const roce::IpPayload payload = roce::ip_payload(packet);
  key.ip_version = meta.ip_version;
  key.flags = kIsIp;
  key.tos = roce::tos(packet);
  key.protocol = payload.protocol;
  if (meta.ip_version == 4) {
    const auto& header = *reinterpret_cast<const roce::Ipv4*>(ip);
    std::copy_n(header.source, 4, key.source.begin() + 12);
    std::copy_n(header.destination, 4, key.destination.begin() + 12);
  } else {
    const auto& header = *reinterpret_cast<const roce::Ipv6*>(ip);
    std::copy_n(header.source, 16, key.source.begin());
    std::copy_n(header.destination, 16, key.destination.begin());
  }
  return payload;
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
  const roce::IpPayload ip = read_ip(packet, key);
  if ((key.protocol == kTcp || key.protocol == roce::kIpProtocolUdp) && !ip.later_fragment &&
      packet.size() >= ip.offset + kPortsBytes) {
    key.flags |= kHasPorts;
    std::memcpy(key.source_port.data(), packet.data() + ip.offset, 2);
    std::memcpy(key.destination_port.data(), packet.data() + ip.offset + 2, 2);
  }
  if (meta.bth_offset == 0) return;
  key.flags |= kHasBth;
  key.opcode = meta.opcode;
  if (!roce::has_qpn_and_psn(packet)) return;
  key.flags |= kHasQp;
  std::memcpy(key.destination_qp.data(), roce::bth(packet).destination_qp.bytes, 3);
}

}  // namespace rocebox::switch_model::acl
