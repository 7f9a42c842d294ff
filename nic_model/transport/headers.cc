// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/transport/headers.h"

#include <nmmintrin.h>

#include <cstring>

#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {
namespace {

void store_be32(std::uint8_t* at, std::uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, sizeof value);
}
void store_be16(std::uint8_t* at, std::uint32_t value) {
  const std::uint16_t bytes = __builtin_bswap16(static_cast<std::uint16_t>(value));
  std::memcpy(at, &bytes, sizeof bytes);
}

}  // namespace

Headers::Headers(const roce::Underlay& underlay, std::uint16_t pkey) : ip_version_(underlay.ip_version) {
  std::uint8_t* at = bytes_.data();
  const auto put = [&at](const auto& header) {
    std::memcpy(at, &header, sizeof header);
    at += sizeof header;
  };
  roce::Ethernet ethernet{};
  std::copy(underlay.destination_mac.begin(), underlay.destination_mac.end(), ethernet.destination);
  std::copy(underlay.source_mac.begin(), underlay.source_mac.end(), ethernet.source);
  const std::uint16_t ip_type = ip_version_ == 4 ? roce::kEtherIpv4 : roce::kEtherIpv6;
  ethernet.type = underlay.vlans[0] ? roce::kEtherVlan : ip_type;
  put(ethernet);
  if (underlay.vlans[0]) {
    roce::VlanTag tag{};
    tag.tci = underlay.vlans[0];
    tag.type = ip_type;
    put(tag);
  }
  l3_offset_ = static_cast<std::uint8_t>(at - bytes_.data());
  if (ip_version_ == 4) {
    roce::Ipv4 ip{};
    ip.version_ihl = 0x45;
    ip.tos = underlay.tos;
    ip.flags_fragment = 0x4000;  // DF, as RDMA NICs set it
    ip.ttl = underlay.ttl;
    ip.protocol = roce::kIpProtocolUdp;
    std::copy_n(underlay.addresses.source.begin() + 12, 4, ip.source);
    std::copy_n(underlay.addresses.destination.begin() + 12, 4, ip.destination);
    for (unsigned i = 0; i < sizeof ip; i += 2) bytes_sum_ += roce::load_be16(reinterpret_cast<std::uint8_t*>(&ip) + i);
    put(ip);
  } else {
    roce::Ipv6 ip{};
    ip.version_class_label = 0x60000000u | std::uint32_t{underlay.tos} << 20;
    ip.next_header = roce::kIpProtocolUdp;
    ip.hop_limit = underlay.ttl;
    std::copy(underlay.addresses.source.begin(), underlay.addresses.source.end(), ip.source);
    std::copy(underlay.addresses.destination.begin(), underlay.addresses.destination.end(), ip.destination);
    put(ip);
  }
  roce::Udp udp{};
  udp.source_port = underlay.udp_source_port;
  udp.destination_port = roce::kRoceUdpPort;
  put(udp);
  bth_offset_ = static_cast<std::uint8_t>(at - bytes_.data());
  roce::Bth bth{};
  bth.pkey = pkey;
  put(bth);
}

// CRC-32C.
std::uint32_t Headers::digest(Packet packet) {
  const std::uint8_t* at = packet.data() + packet.meta().bth_offset;
  const std::uint8_t* const end = packet.data() + packet.meta().payload_offset;
  const auto load = [&](auto& word) {
    std::memcpy(&word, at, sizeof word);
    at += sizeof word;
  };
  std::uint64_t two;
  load(two);
  two |= std::uint64_t{0xFF} << 32;  // FECN, BECN and what is reserved beside them may change on the way
  std::uint64_t crc = _mm_crc32_u64(UINT32_MAX, two);
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof two)) {
    load(two);
    crc = _mm_crc32_u64(crc, two);
  }
  if (at == end) return static_cast<std::uint32_t>(crc);
  std::uint32_t last;
  load(last);
  return _mm_crc32_u32(static_cast<std::uint32_t>(crc), last);
}

void Headers::write(Packet packet, const PacketFields& fields, const Length& length) const {
  std::uint8_t* const data = packet.data();
  // Of a fixed length: a few moves of vectors, and what is beyond BTH is written anew or cut off.
  std::memcpy(data, bytes_.data(), kUsualBytes);
  if (bth_offset_ + sizeof(roce::Bth) > kUsualBytes)
    std::memcpy(data + kUsualBytes, bytes_.data() + kUsualBytes, kRoomBytes - kUsualBytes);
  const std::uint32_t frame = length.frame;
  std::uint8_t* const bth = data + bth_offset_;
  std::uint8_t* const udp = bth - sizeof(roce::Udp);
  if (fields.udp_source_port) store_be16(udp + offsetof(roce::Udp, source_port), fields.udp_source_port);
  store_be16(udp + offsetof(roce::Udp, length), frame - bth_offset_ + static_cast<std::uint32_t>(sizeof(roce::Udp)));
  std::uint8_t* const ip = data + l3_offset_;
  const std::uint32_t datagram = frame - l3_offset_;
  if (ip_version_ == 4) {
    store_be16(ip + offsetof(roce::Ipv4, total_length), datagram);
    std::uint32_t sum = bytes_sum_ + datagram;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    store_be16(ip + offsetof(roce::Ipv4, checksum), ~sum);
  } else {
    store_be16(ip + offsetof(roce::Ipv6, payload_length), datagram - static_cast<std::uint32_t>(sizeof(roce::Ipv6)));
  }
  const std::uint32_t pad = -fields.payload_bytes & 3;
  bth[0] = fields.opcode;
  bth[1] = static_cast<std::uint8_t>(fields.solicited_event << 7 | 1 << 6 | pad << 4);
  store_be32(bth + 4, fields.destination_qp & 0xFFFFFF);
  store_be32(bth + 8, std::uint32_t{fields.ack_req} << 31 | (fields.psn & 0xFFFFFF));
  PacketMeta& meta = packet.meta();
  meta.wire_bytes = meta.datagram_end = frame;
  meta.payload_bytes = fields.payload_bytes;
  meta.l3_offset = l3_offset_;
  meta.udp_offset = static_cast<std::uint16_t>(bth_offset_ - sizeof(roce::Udp));
  meta.bth_offset = bth_offset_;
  meta.payload_offset = static_cast<std::uint16_t>(length.head);
  meta.status = ParseStatus::kRoce;
  meta.opcode = fields.opcode;
  meta.ip_version = ip_version_;
  meta.pad_bytes = static_cast<std::uint8_t>(pad);
  if (pad && packet.size() == frame) std::memset(data + meta.payload_offset + fields.payload_bytes, 0, pad);
}

}  // namespace rocebox::nic_model
