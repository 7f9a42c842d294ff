// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/build.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/roce/icrc.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::roce {
namespace {

// Writes wire structures one behind the other.
class Cursor {
 public:
  explicit Cursor(std::uint8_t* at) : at_(at) {}
  template <class T>
  T& put() {
    T* header = reinterpret_cast<T*>(at_);
    std::memset(static_cast<void*>(header), 0, sizeof(T));
    at_ += sizeof(T);
    return *header;
  }
  void put(std::span<const std::uint8_t> bytes) {
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void zero(std::uint32_t count) {
    std::memset(at_, 0, count);
    at_ += count;
  }
  std::uint8_t* at() const { return at_; }

 private:
  std::uint8_t* at_;
};

std::uint32_t pad_bytes(const PacketSpec& spec) { return (4 - spec.payload.size() % 4) % 4; }
unsigned vlan_count(const Underlay& underlay) { return (underlay.vlans[0] != 0) + (underlay.vlans[1] != 0); }

std::uint32_t transport_bytes(const PacketSpec& spec) {
  return static_cast<std::uint32_t>(sizeof(Bth) + opcode_info(spec.opcode).extension_bytes + spec.payload.size() +
                                    pad_bytes(spec) + kIcrcBytes);
}

void put_ethernet(Cursor& cursor, const Underlay& underlay) {
  const std::uint16_t ip_type = underlay.ip_version == 4 ? kEtherIpv4 : kEtherIpv6;
  auto& ethernet = cursor.put<Ethernet>();
  std::copy(underlay.destination_mac.begin(), underlay.destination_mac.end(), ethernet.destination);
  std::copy(underlay.source_mac.begin(), underlay.source_mac.end(), ethernet.source);
  Be16* type = &ethernet.type;
  const unsigned tags = vlan_count(underlay);
  for (unsigned i = 0, left = tags; i < 2; i++) {
    if (underlay.vlans[i] == 0) continue;
    *type = left-- == 2 ? kEtherQinq : kEtherVlan;
    auto& tag = cursor.put<VlanTag>();
    tag.tci = underlay.vlans[i];
    type = &tag.type;
  }
  *type = ip_type;
}

void put_ipv4(Cursor& cursor, const Underlay& underlay, std::uint32_t udp_bytes) {
  const auto header_bytes = static_cast<std::uint32_t>(sizeof(Ipv4) + underlay.ip_extension.size());
  assert(header_bytes % 4 == 0 && header_bytes <= 60);
  auto& ip = cursor.put<Ipv4>();
  cursor.put(underlay.ip_extension);
  ip.version_ihl = static_cast<std::uint8_t>(0x40 | header_bytes / 4);
  ip.tos = underlay.tos;
  ip.total_length = header_bytes + udp_bytes;
  ip.identification = underlay.ip_identification;
  ip.flags_fragment = 0x4000;  // DF, as RDMA NICs set it
  ip.ttl = underlay.ttl;
  ip.protocol = kIpProtocolUdp;
  std::copy_n(underlay.addresses.source.begin() + 12, 4, ip.source);
  std::copy_n(underlay.addresses.destination.begin() + 12, 4, ip.destination);
  store_ipv4_checksum(ip);
}

// The chain of extension headers as given, but that the last one leads to UDP.
void put_ipv6_extensions(Cursor& cursor, std::span<const std::uint8_t> extensions) {
  std::uint8_t* first = cursor.at();
  cursor.put(extensions);
  std::size_t last = 0;
  for (std::size_t at = 0; at + 8 <= extensions.size(); at += 8 * (std::size_t{extensions[at + 1]} + 1)) last = at;
  if (!extensions.empty()) first[last] = kIpProtocolUdp;
}

void put_ipv6(Cursor& cursor, const Underlay& underlay, std::uint32_t udp_bytes) {
  assert(underlay.ip_extension.size() % 8 == 0);
  auto& ip = cursor.put<Ipv6>();
  ip.version_class_label = 0x60000000u | static_cast<std::uint32_t>(underlay.tos) << 20;
  ip.payload_length = static_cast<std::uint32_t>(underlay.ip_extension.size()) + udp_bytes;
  ip.next_header = underlay.ip_extension.empty() ? kIpProtocolUdp : underlay.ip_extension_type;
  ip.hop_limit = underlay.ttl;
  std::copy(underlay.addresses.source.begin(), underlay.addresses.source.end(), ip.source);
  std::copy(underlay.addresses.destination.begin(), underlay.addresses.destination.end(), ip.destination);
  put_ipv6_extensions(cursor, underlay.ip_extension);
}

void put_bth(Cursor& cursor, const PacketSpec& spec) {
  auto& bth = cursor.put<Bth>();
  bth.opcode = spec.opcode;
  bth.se_m_pad_tver = static_cast<std::uint8_t>(spec.solicited_event << 7 | spec.mig_req << 6 | pad_bytes(spec) << 4);
  bth.pkey = spec.pkey;
  bth.fecn_becn_resv6 = static_cast<std::uint8_t>(spec.fecn << 7 | spec.becn << 6);
  bth.destination_qp = spec.destination_qp;
  bth.ack_req_resv7 = static_cast<std::uint8_t>(spec.ack_req << 7);
  bth.psn = spec.psn;
}

void put_extensions(Cursor& cursor, const PacketSpec& spec) {
  const OpcodeInfo& info = opcode_info(spec.opcode);
  if (info.has(kHasDeth)) {
    auto& deth = cursor.put<Deth>();
    deth.qkey = spec.qkey;
    deth.source_qp = spec.source_qp;
  }
  if (info.has(kHasReth)) {
    auto& reth = cursor.put<Reth>();
    reth.virtual_address = spec.virtual_address;
    reth.rkey = spec.rkey;
    reth.dma_length = spec.dma_length;
  }
  if (info.has(kHasAtomicEth)) {
    auto& atomic = cursor.put<AtomicEth>();
    atomic.virtual_address = spec.virtual_address;
    atomic.rkey = spec.rkey;
    atomic.swap_add = spec.swap_add;
    atomic.compare = spec.compare;
  }
  if (info.has(kHasAeth)) {
    auto& aeth = cursor.put<Aeth>();
    aeth.syndrome = spec.syndrome;
    aeth.msn = spec.msn;
  }
  if (info.has(kHasAtomicAckEth)) cursor.put<AtomicAckEth>().original = spec.original;
  if (info.has(kHasImmDt)) cursor.put<ImmDt>().data = spec.immediate;
  if (info.has(kHasIeth)) cursor.put<Ieth>().rkey = spec.rkey;
  if (spec.opcode == kOpcodeCnp) cursor.put<Cnp>();
}

}  // namespace

std::uint32_t built_bytes(const PacketSpec& spec) {
  const std::size_t ip = spec.underlay.ip_version == 4 ? sizeof(Ipv4) : sizeof(Ipv6);
  return static_cast<std::uint32_t>(sizeof(Ethernet) + vlan_count(spec.underlay) * sizeof(VlanTag) + ip +
                                    spec.underlay.ip_extension.size() + sizeof(Udp)) +
         transport_bytes(spec);
}

void build(Packet packet, const PacketSpec& spec) {
  assert(packet.size() == built_bytes(spec));
  const std::uint32_t udp_bytes = static_cast<std::uint32_t>(sizeof(Udp)) + transport_bytes(spec);
  Cursor cursor(packet.data());
  put_ethernet(cursor, spec.underlay);
  if (spec.underlay.ip_version == 4)
    put_ipv4(cursor, spec.underlay, udp_bytes);
  else
    put_ipv6(cursor, spec.underlay, udp_bytes);
  auto& udp = cursor.put<Udp>();
  udp.source_port = spec.underlay.udp_source_port;
  udp.destination_port = kRoceUdpPort;
  udp.length = udp_bytes;  // checksum 0: unused, as RDMA NICs send it (annex A17.3.2)
  put_bth(cursor, spec);
  put_extensions(cursor, spec);
  cursor.put(spec.payload);
  cursor.zero(pad_bytes(spec) + kIcrcBytes);
  packet.meta().wire_bytes = packet.size();
  parse(packet);
  assert(packet.meta().bth_offset);
  icrc_store(packet);
}

Underlay reversed_underlay(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const auto* ethernet = packet.header<Ethernet>(0);
  Underlay result;
  std::copy_n(ethernet->destination, 6, result.source_mac.begin());
  std::copy_n(ethernet->source, 6, result.destination_mac.begin());
  unsigned tag = 0;
  for (std::uint32_t at = sizeof(Ethernet); at + sizeof(VlanTag) <= meta.l3_offset && tag < 2; at += sizeof(VlanTag))
    result.vlans[tag++] = static_cast<std::uint16_t>(packet.header<VlanTag>(at)->tci);
  result.ip_version = meta.ip_version;
  const Addresses request = addresses(packet);
  result.addresses = {request.destination, request.source};
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  result.tos = meta.ip_version == 4 ? ip[1] : static_cast<std::uint8_t>(ip[0] << 4 | ip[1] >> 4);
  result.udp_source_port = static_cast<std::uint16_t>(packet.header<Udp>(meta.udp_offset)->source_port);
  return result;
}

}  // namespace rocebox::roce
