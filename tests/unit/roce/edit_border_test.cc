// SPDX-License-Identifier: BSD-3-Clause
// edit() across the border of two headers, and in headers that the UDP pseudo header does not cover.
#include <gtest/gtest.h>

#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "tests/unit/roce/frame_kit.h"

namespace rocebox::roce {
namespace {

std::uint16_t sum16(const Bytes& bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); i++) sum += std::uint32_t{bytes[i]} << (i % 2 ? 0 : 8);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}
std::uint16_t ip_sum(Packet p) {
  const PacketMeta& m = p.meta();
  return sum16(Bytes(p.data() + m.l3_offset, p.data() + m.l3_offset + p.header<Ipv4>(m.l3_offset)->header_bytes()));
}
std::uint16_t udp_sum(Packet p) {
  const PacketMeta& m = p.meta();
  const std::uint32_t at = m.l3_offset + (m.ip_version == 4 ? 12u : 8u), size = m.ip_version == 4 ? 8u : 32u;
  Bytes bytes(p.data() + at, p.data() + at + size);
  bytes.insert(bytes.end(), p.data() + m.udp_offset, p.data() + m.datagram_end);
  return sum16(bytes, 17 + m.datagram_end - m.udp_offset);
}

// A frame with `between` inserted behind the fixed IP header (IPv4 options or IPv6 extension), checksums right.
PacketPtr checksummed(Pool& pool, std::uint8_t version, const Bytes& between = {}) {
  PacketSpec spec;
  spec.underlay.ip_version = version;
  spec.underlay.addresses = {ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2)};
  Bytes bytes = test::frame(spec);
  bytes.insert(bytes.begin() + (version == 4 ? 34 : 54), between.begin(), between.end());
  if (version == 4) {
    bytes[14] = static_cast<std::uint8_t>(0x45 + between.size() / 4);
    bytes[17] = static_cast<std::uint8_t>(bytes[17] + between.size());
  } else if (!between.empty()) {
    bytes[19] = static_cast<std::uint8_t>(bytes[19] + between.size());
    bytes[20] = 60;  // destination options
  }
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), packet->data());
  parse(*packet);
  EXPECT_TRUE(is_roce(*packet)) << parse_status_name(packet->meta().status);
  const PacketMeta& meta = packet->meta();
  if (version == 4) {
    auto* ip = packet->header<Ipv4>(meta.l3_offset);
    ip->checksum = 0;
    ip->checksum = static_cast<std::uint16_t>(~ip_sum(*packet));
  }
  icrc_store(*packet);
  auto* udp = packet->header<Udp>(meta.udp_offset);
  udp->checksum = static_cast<std::uint16_t>(~udp_sum(*packet));
  EXPECT_EQ(udp_sum(*packet), 0xFFFF);
  return packet;
}

// NAT in one call: destination address and ports are neighbours. The IPv4 checksum must not take the ports in.
TEST(EditBorder, AcrossTheEndOfTheIpv4Header) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = checksummed(pool, 4);
  const Bytes value = {192, 168, 7, 9, 0xC1, 0x23};
  edit(*packet, packet->meta().l3_offset + 16, value);
  EXPECT_EQ(ip_sum(*packet), 0xFFFF) << "IPv4 checksum";
  EXPECT_EQ(udp_sum(*packet), 0xFFFF) << "UDP checksum";
  EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
}

TEST(EditBorder, Ipv4OptionIsNotInTheUdpChecksum) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = checksummed(pool, 4, {1, 1, 1, 0});
  edit_number<1>(*packet, packet->meta().l3_offset + 21, 0);
  EXPECT_EQ(ip_sum(*packet), 0xFFFF) << "IPv4 checksum";
  EXPECT_EQ(udp_sum(*packet), 0xFFFF) << "UDP checksum";
  EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
}

TEST(EditBorder, Ipv6ExtensionIsNotInTheUdpChecksum) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = checksummed(pool, 6, {17, 0, 1, 4, 0, 0, 0, 0});
  edit_number<1>(*packet, packet->meta().l3_offset + 45, 0x42);
  EXPECT_EQ(udp_sum(*packet), 0xFFFF) << "UDP checksum";
  EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
}

// Hop limit and source address in one call: the pseudo header holds the address.
TEST(EditBorder, AcrossTheBeginningOfTheAddresses) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = checksummed(pool, 6);
  const Bytes value = {63, 0x20, 0x01, 0x0D, 0xB8};
  edit(*packet, packet->meta().l3_offset + 7, value);
  EXPECT_EQ(udp_sum(*packet), 0xFFFF) << "UDP checksum";
  EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
}

}  // namespace
}  // namespace rocebox::roce
