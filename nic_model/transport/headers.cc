// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/transport/headers.h"

#include <nmmintrin.h>

#include <cstring>

#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {
namespace {

std::uint32_t pad_of(std::uint32_t payload_bytes) { return (4 - payload_bytes % 4) % 4; }

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
  l3_offset_ = static_cast<std::uint16_t>(at - bytes_.data());
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
  bth_offset_ = static_cast<std::uint16_t>(at - bytes_.data());
  roce::Bth bth{};
  bth.pkey = pkey;
  put(bth);
}

std::uint32_t Headers::head_bytes(std::uint8_t opcode) const {
  return bth_offset_ + static_cast<std::uint32_t>(sizeof(roce::Bth)) + roce::opcode_info(opcode).extension_bytes;
}

std::uint32_t Headers::frame_bytes(std::uint8_t opcode, std::uint32_t payload_bytes) const {
  return head_bytes(opcode) + payload_bytes + pad_of(payload_bytes) + roce::kIcrcBytes;
}

// CRC-32C.
std::uint32_t Headers::digest(Packet packet) {
  const std::uint8_t* at = packet.data() + packet.meta().bth_offset;
  const std::uint8_t* const end = packet.data() + packet.meta().payload_offset;
  std::uint32_t words[3];
  std::memcpy(words, at, sizeof words);
  words[1] |= 0xFF;  // FECN, BECN and what is reserved beside them may change on the way
  std::uint32_t crc = UINT32_MAX;
  for (const std::uint32_t word : words) crc = _mm_crc32_u32(crc, word);
  for (at += sizeof words; at < end; at += sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u32(crc, word);
  }
  return crc;
}

void Headers::write(Packet packet, const PacketFields& fields) const {
  std::uint8_t* const data = packet.data();
  std::memcpy(data, bytes_.data(), bth_offset_ + sizeof(roce::Bth));
  const std::uint32_t pad = pad_of(fields.payload_bytes);
  const std::uint32_t frame = frame_bytes(fields.opcode, fields.payload_bytes);
  auto* udp = reinterpret_cast<roce::Udp*>(data + bth_offset_ - sizeof(roce::Udp));
  udp->length = frame - bth_offset_ + sizeof(roce::Udp);
  if (fields.udp_source_port) udp->source_port = fields.udp_source_port;
  if (ip_version_ == 4) {
    auto* ip = reinterpret_cast<roce::Ipv4*>(data + l3_offset_);
    const std::uint32_t length = frame - l3_offset_;
    ip->total_length = length;
    std::uint32_t sum = bytes_sum_ + length;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    ip->checksum = ~sum & 0xFFFF;
  } else {
    reinterpret_cast<roce::Ipv6*>(data + l3_offset_)->payload_length =
        frame - l3_offset_ - static_cast<std::uint32_t>(sizeof(roce::Ipv6));
  }
  auto* bth = reinterpret_cast<roce::Bth*>(data + bth_offset_);
  bth->opcode = fields.opcode;
  bth->se_m_pad_tver = static_cast<std::uint8_t>(fields.solicited_event << 7 | 1 << 6 | pad << 4);
  bth->destination_qp = fields.destination_qp;
  bth->ack_req_resv7 = static_cast<std::uint8_t>(fields.ack_req << 7);
  bth->psn = fields.psn;
  PacketMeta& meta = packet.meta();
  meta.wire_bytes = meta.datagram_end = frame;
  meta.payload_bytes = fields.payload_bytes;
  meta.l3_offset = l3_offset_;
  meta.udp_offset = static_cast<std::uint16_t>(bth_offset_ - sizeof(roce::Udp));
  meta.bth_offset = bth_offset_;
  meta.payload_offset = static_cast<std::uint16_t>(head_bytes(fields.opcode));
  meta.status = ParseStatus::kRoce;
  meta.opcode = fields.opcode;
  meta.ip_version = ip_version_;
  meta.pad_bytes = static_cast<std::uint8_t>(pad);
  if (packet.size() == frame && pad) std::memset(data + meta.payload_offset + fields.payload_bytes, 0, pad);
}

}  // namespace rocebox::nic_model
