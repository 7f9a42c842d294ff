// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/icrc.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/roce/build.h"
#include "tests/unit/harness.h"

namespace rocebox::roce {
namespace {

// The definition, bit by bit: CRC-32 over 8 bytes of ones, then masked headers (annex A17.3.3). Written apart from
// icrc.cc and with no table.
std::uint32_t reference_icrc(Packet packet) {
  const PacketMeta& meta = packet.meta();
  std::vector<std::uint8_t> bytes(8, 0xFF);
  for (std::uint32_t at = meta.l3_offset; at + 4 < meta.datagram_end; at++) {
    std::uint8_t byte = packet.data()[at];
    const std::uint32_t ip = at - meta.l3_offset;
    if (meta.ip_version == 4 && (ip == 1 || ip == 8 || ip == 10 || ip == 11)) byte = 0xFF;
    if (meta.ip_version == 6 && ip == 0) byte |= 0x0F;
    if (meta.ip_version == 6 && ((ip >= 1 && ip <= 3) || ip == 7)) byte = 0xFF;
    if (at == meta.udp_offset + 6u || at == meta.udp_offset + 7u || at == meta.bth_offset + 4u) byte = 0xFF;
    bytes.push_back(byte);
  }
  std::uint32_t crc = 0xFFFFFFFFu;
  for (std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

PacketSpec random_spec(std::mt19937& random, std::vector<std::uint8_t>& payload) {
  PacketSpec spec;
  spec.underlay.ip_version = random() % 2 ? 4 : 6;
  spec.underlay.addresses.source = ipv4(10, 0, 0, 1);
  spec.underlay.addresses.destination = ipv4(10, 0, 0, static_cast<std::uint8_t>(random()));
  if (random() % 3 == 0) spec.underlay.vlans = {100, random() % 2 ? std::uint16_t{200} : std::uint16_t{0}};
  spec.underlay.tos = static_cast<std::uint8_t>(random());
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_MIDDLE;
  spec.psn = random() & 0xFFFFFF;
  spec.destination_qp = random() & 0xFFFFFF;
  payload.resize(random() % (random() % 2 ? 4097 : 48));
  for (auto& byte : payload) byte = static_cast<std::uint8_t>(random());
  spec.payload = payload;
  return spec;
}

TEST(Icrc, FullAgreesWithTheDefinitionBitByBit) {
  Pool pool(test::kPoolSizes);
  const std::vector<std::uint8_t> next(8192);
  std::mt19937 random(1);
  for (int round = 0; round < 500; round++) {
    std::vector<std::uint8_t> payload;
    const PacketSpec spec = random_spec(random, payload);
    PacketPtr packet = pool.allocate(built_bytes(spec));
    build(*packet, spec);
    ASSERT_EQ(icrc_compute(*packet), reference_icrc(*packet));
    ASSERT_EQ(icrc_check(*packet), IcrcStatus::kGood);
    const Ahead ahead{next.data(), static_cast<std::uint32_t>(random() % (next.size() + 1))};  // shorter and longer
    ASSERT_EQ(icrc_check(*packet, ahead), IcrcStatus::kGood);
    packet->data()[packet->meta().payload_offset] ^= 1;
    ASSERT_EQ(icrc_check(*packet), IcrcStatus::kBad) << "of the payload, or without one of the ICRC itself";
    ASSERT_EQ(icrc_check(*packet, ahead), icrc_check(*packet));
  }
}

std::uint16_t ipv4_checksum_sum(Packet packet) {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 20; i += 2)
    sum += static_cast<std::uint32_t>(packet.data()[packet.meta().l3_offset + i] << 8 |
                                      packet.data()[packet.meta().l3_offset + i + 1]);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// Sum over pseudo header and datagram; 0xFFFF when the checksum is right.
std::uint16_t udp_checksum_sum(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const std::uint32_t length = meta.datagram_end - meta.udp_offset;
  std::vector<std::uint8_t> bytes(packet.data() + meta.udp_offset, packet.data() + meta.datagram_end);
  const std::uint32_t addresses = meta.l3_offset + (meta.ip_version == 4 ? 12 : 8),
                      size = meta.ip_version == 4 ? 8 : 32;
  bytes.insert(bytes.begin(), packet.data() + addresses, packet.data() + addresses + size);
  if (bytes.size() % 2) bytes.push_back(0);
  std::uint32_t sum = 17 + length;
  for (std::size_t i = 0; i < bytes.size(); i += 2) sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

TEST(Icrc, EditsKeepEveryCheckRight) {
  Pool pool(test::kPoolSizes);
  std::mt19937 random(2);
  for (int round = 0; round < 3000; round++) {
    std::vector<std::uint8_t> payload;
    const PacketSpec spec = random_spec(random, payload);
    PacketPtr packet = pool.allocate(built_bytes(spec));
    build(*packet, spec);
    const PacketMeta& meta = packet->meta();
    auto* udp = packet->header<Udp>(meta.udp_offset);
    const bool checksummed = random() % 2;
    if (checksummed) {
      udp->checksum = static_cast<std::uint16_t>(~udp_checksum_sum(*packet));
      if (udp->checksum == 0) udp->checksum = 0xFFFF;
    }
    // Any bytes between the IP header and the ICRC but those that say lengths or where headers are.
    const auto size = static_cast<std::uint32_t>(1 + random() % 16);
    const std::uint32_t starts[] = {meta.l3_offset + (meta.ip_version == 4 ? 12u : 8u),
                                    meta.udp_offset + 0u,
                                    meta.bth_offset + 4u,
                                    meta.payload_offset + 0u,
                                    meta.l3_offset + (meta.ip_version == 4 ? 8u : 7u),  // TTL, hop limit
                                    meta.l3_offset + 1u};                               // ToS, or class and label
    const auto which = static_cast<unsigned>(random() % 6);
    std::uint32_t length = which == 1 ? std::min(size, 2u) : which == 2 ? std::min(size, 8u) : which >= 4 ? 1 : size;
    if (which == 0) length = std::min(length, meta.ip_version == 4 ? 8u : 16u);
    if (starts[which] + length > meta.datagram_end - 4) continue;
    std::uint8_t value[16];
    for (auto& byte : value) byte = static_cast<std::uint8_t>(random());
    edit(*packet, starts[which], {value, length});
    ASSERT_EQ(icrc_check(*packet), IcrcStatus::kGood) << "place " << which << ", " << length << " bytes";
    ASSERT_EQ(std::memcmp(packet->data() + starts[which], value, length), 0);
    if (meta.ip_version == 4) {
      ASSERT_EQ(ipv4_checksum_sum(*packet), 0xFFFF);
    }
    if (checksummed) {
      ASSERT_EQ(udp_checksum_sum(*packet), 0xFFFF) << "place " << which;
    } else {
      ASSERT_EQ(udp->checksum, 0u);
    }
  }
}

TEST(Icrc, EditKeepsAWrongIcrcWrong) {
  Pool pool(test::kPoolSizes);
  std::mt19937 random(3);
  for (int round = 0; round < 500; round++) {
    std::vector<std::uint8_t> payload;
    const PacketSpec spec = random_spec(random, payload);
    PacketPtr packet = pool.allocate(built_bytes(spec));
    build(*packet, spec);
    if (payload.empty()) continue;
    packet->data()[packet->meta().payload_offset + random() % payload.size()] ^=
        static_cast<std::uint8_t>(1u << random() % 8);
    const std::uint32_t error = icrc_compute(*packet) ^ icrc_stored(*packet);
    edit_number<3>(*packet, packet->meta().bth_offset + 9, random());
    ASSERT_EQ(icrc_check(*packet), IcrcStatus::kBad);
    ASSERT_EQ(icrc_compute(*packet) ^ icrc_stored(*packet), error) << "the same error, no more and no less";
  }
}

TEST(Icrc, ASnappedPacketIsUnverifiableAndEditLeavesItsBytes) {
  Pool pool(test::kPoolSizes);
  std::vector<std::uint8_t> payload(512);
  PacketSpec spec;
  spec.payload = payload;
  PacketPtr packet = pool.allocate(built_bytes(spec));
  build(*packet, spec);
  rte_pktmbuf_trim(packet->mbuf(), 100);
  parse(*packet);
  ASSERT_EQ(packet->meta().status, ParseStatus::kRoce);
  EXPECT_EQ(icrc_check(*packet), IcrcStatus::kUnverifiable);
  edit_number<3>(*packet, packet->meta().bth_offset + 9, 77);
  EXPECT_EQ(bth(*packet).psn, 77u);
}

}  // namespace
}  // namespace rocebox::roce
