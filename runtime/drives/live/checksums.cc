// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/checksums.h"

#include <rte_ip.h>

#include <cstring>

#include "runtime/roce/headers.h"

namespace rocebox {
namespace {

constexpr std::uint8_t kTcp = 6, kUdp = 17;

// Where the checksum stands behind the start of the transport header; 0 for other protocols.
std::uint32_t checksum_place(std::uint8_t protocol) { return protocol == kTcp ? 16 : protocol == kUdp ? 6 : 0; }

struct Segment {
  std::uint32_t offset, bytes;  // transport header and what it carries
  std::uint8_t protocol;
  std::uint16_t pseudo;  // sum over the pseudo header, not complemented
};

std::uint16_t load16(const std::uint8_t* p) {
  std::uint16_t value;
  std::memcpy(&value, p, 2);
  return value;
}

// The whole TCP segment or UDP datagram of a packet that is not a fragment; bytes 0 when there is none.
Segment find_segment(Packet packet) {
  std::uint32_t l3 = 0, type = 0;
  if (!roce::find_network(packet.data(), packet.size(), l3, type)) return {};
  if (type == roce::kEtherIpv4) {
    const auto* ip = packet.header<rte_ipv4_hdr>(l3);
    if (!ip) return {};
    const std::uint32_t header = (ip->version_ihl & 0xFu) * 4u, total = rte_be_to_cpu_16(ip->total_length);
    const bool fragment = (ip->fragment_offset & rte_cpu_to_be_16(0x3FFF)) != 0;
    if (header < 20 || total < header || l3 + total > packet.size() || fragment) return {};
    return {l3 + header, total - header, ip->next_proto_id, rte_ipv4_phdr_cksum(ip, 0)};
  }
  if (type == roce::kEtherIpv6) {
    const auto* ip = packet.header<rte_ipv6_hdr>(l3);
    if (!ip) return {};
    const std::uint32_t bytes = rte_be_to_cpu_16(ip->payload_len);
    if (l3 + 40 + bytes > packet.size()) return {};
    return {l3 + 40, bytes, ip->proto, rte_ipv6_phdr_cksum(ip, 0)};
  }
  return {};
}

}  // namespace

bool finish_checksum(Packet packet) {
  const Segment segment = find_segment(packet);
  const std::uint32_t place = checksum_place(segment.protocol);
  if (place == 0 || segment.bytes < place + 2) return false;
  std::uint8_t* field = packet.data() + segment.offset + place;
  // Linux folds the sum of the pseudo header into 16 bits and stores it as it is.
  if (load16(field) != segment.pseudo) return false;
  std::uint16_t sum = rte_raw_cksum(packet.data() + segment.offset, segment.bytes);
  // With the field as it is, the sum covers the pseudo header too: right already, by chance, when it is all ones.
  if (sum == 0xFFFF) return false;
  sum = static_cast<std::uint16_t>(~sum);
  if (sum == 0 && segment.protocol == kUdp) sum = 0xFFFF;
  std::memcpy(field, &sum, 2);
  return true;
}

void finish_checksum(Packet packet, const HostOffload& offload) {
  const std::uint32_t field = offload.checksum_start + offload.checksum_offset;
  if (field + 2u > packet.size() || offload.checksum_start >= packet.size()) return;
  auto sum = static_cast<std::uint16_t>(
      ~rte_raw_cksum(packet.data() + offload.checksum_start, packet.size() - offload.checksum_start));
  if (sum == 0) sum = 0xFFFF;  // 0 would mean that a UDP datagram has none; to TCP both are the same
  std::memcpy(packet.data() + field, &sum, 2);
}

}  // namespace rocebox
