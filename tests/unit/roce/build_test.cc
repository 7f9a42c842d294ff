// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/build.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/roce/icrc.h"
#include "tests/unit/harness.h"

namespace rocebox::roce {
namespace {

// Every field has a value of its own, so that a swapped one shows.
PacketSpec full_spec(std::uint8_t opcode, std::uint8_t ip_version) {
  PacketSpec spec;
  spec.underlay.ip_version = ip_version;
  spec.underlay.source_mac = {2, 1, 1, 1, 1, 1};
  spec.underlay.destination_mac = {2, 2, 2, 2, 2, 2};
  if (ip_version == 4) {
    spec.underlay.addresses = {ipv4(10, 1, 2, 3), ipv4(172, 16, 5, 6)};
  } else {
    for (std::uint8_t i = 0; i < 16; i++) {
      spec.underlay.addresses.source[i] = static_cast<std::uint8_t>(0xA0 + i);
      spec.underlay.addresses.destination[i] = static_cast<std::uint8_t>(0xB0 + i);
    }
  }
  spec.underlay.tos = 0xB7;
  spec.underlay.ttl = 17;
  spec.underlay.ip_identification = 0x1234;
  spec.underlay.udp_source_port = 0xC0DE;
  spec.opcode = opcode;
  spec.solicited_event = spec.fecn = spec.ack_req = true;
  spec.pkey = 0x8765;
  spec.destination_qp = 0x123456;
  spec.psn = 0xFEDCBA;
  spec.virtual_address = 0x1122334455667788;
  spec.rkey = 0xAABBCCDD;
  spec.dma_length = 0x01020304;
  spec.swap_add = 0x99AABBCCDDEEFF00;
  spec.compare = 0x0F1E2D3C4B5A6978;
  spec.original = 0x1020304050607080;
  spec.syndrome = 0x63;
  spec.msn = 0xABCDEF;
  spec.immediate = 0xDEADBEEF;
  spec.qkey = 0x80010000;
  spec.source_qp = 0x654321;
  return spec;
}

std::uint16_t checksum_sum(Packet packet, std::uint32_t at, std::uint32_t size) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < size; i += 2)
    sum += static_cast<std::uint32_t>(packet.data()[at + i] << 8 | packet.data()[at + i + 1]);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

void expect_underlay(Packet packet, const PacketSpec& spec, unsigned tags) {
  const PacketMeta& meta = packet.meta();
  const Underlay& underlay = spec.underlay;
  EXPECT_EQ(meta.l3_offset, 14 + 4 * tags);
  EXPECT_EQ(std::memcmp(packet.data(), underlay.destination_mac.data(), 6), 0);
  EXPECT_EQ(std::memcmp(packet.data() + 6, underlay.source_mac.data(), 6), 0);
  for (unsigned i = 0, seen = 0; i < 2; i++) {
    if (!underlay.vlans[i]) continue;
    EXPECT_EQ(packet.header<Be16>(12 + 4 * seen)->get(), tags == 2 && seen == 0 ? 0x88A8u : 0x8100u);
    EXPECT_EQ(packet.header<Be16>(14 + 4 * seen)->get(), underlay.vlans[i]);
    seen++;
  }
  EXPECT_EQ(meta.ip_version, underlay.ip_version);
  EXPECT_EQ(addresses(packet), underlay.addresses);
  EXPECT_EQ(ecn(packet), 3);
  if (underlay.ip_version == 4) {
    const auto* ip = packet.header<Ipv4>(meta.l3_offset);
    EXPECT_EQ(checksum_sum(packet, meta.l3_offset, 20), 0xFFFF);
    EXPECT_EQ(ip->tos, 0xB7);
    EXPECT_EQ(ip->ttl, 17);
    EXPECT_EQ(ip->identification, 0x1234u);
    EXPECT_EQ(ip->total_length, packet.size() - meta.l3_offset);
    EXPECT_EQ(ip->flags_fragment, 0x4000u);
  } else {
    const auto* ip = packet.header<Ipv6>(meta.l3_offset);
    EXPECT_EQ(ip->version_class_label, 0x6B700000u);
    EXPECT_EQ(ip->hop_limit, 17);
    EXPECT_EQ(ip->payload_length, packet.size() - meta.l3_offset - 40);
  }
  const auto* udp = packet.header<Udp>(meta.udp_offset);
  EXPECT_EQ(udp->source_port, 0xC0DEu);
  EXPECT_EQ(udp->destination_port, 4791u);
  EXPECT_EQ(udp->length, packet.size() - meta.udp_offset);
  EXPECT_EQ(udp->checksum, 0u);
}

void expect_transport(Packet packet, const PacketSpec& spec) {
  const Bth& b = bth(packet);
  EXPECT_EQ(b.opcode, spec.opcode);
  EXPECT_TRUE(b.solicited_event() && b.fecn() && b.ack_req());
  EXPECT_FALSE(b.mig_req() || b.becn());
  EXPECT_EQ(b.pkey, 0x8765u);
  EXPECT_EQ(b.destination_qp, 0x123456u);
  EXPECT_EQ(b.psn, 0xFEDCBAu);
  EXPECT_EQ(b.transport_version(), 0u);
  if (const Deth* h = deth(packet)) {
    EXPECT_EQ(h->qkey, 0x80010000u);
    EXPECT_EQ(h->source_qp, 0x654321u);
    EXPECT_EQ(h->reserved, 0);
  }
  if (const Reth* h = reth(packet)) {
    EXPECT_EQ(h->virtual_address, 0x1122334455667788u);
    EXPECT_EQ(h->rkey, 0xAABBCCDDu);
    EXPECT_EQ(h->dma_length, 0x01020304u);
  }
  if (const AtomicEth* h = atomic_eth(packet)) {
    EXPECT_EQ(h->virtual_address, 0x1122334455667788u);
    EXPECT_EQ(h->rkey, 0xAABBCCDDu);
    EXPECT_EQ(h->swap_add, 0x99AABBCCDDEEFF00u);
    EXPECT_EQ(h->compare, 0x0F1E2D3C4B5A6978u);
  }
  if (const Aeth* h = aeth(packet)) {
    EXPECT_EQ(h->syndrome, 0x63);
    EXPECT_EQ(h->msn, 0xABCDEFu);
  }
  if (const AtomicAckEth* h = atomic_ack_eth(packet)) {
    EXPECT_EQ(h->original, 0x1020304050607080u);
  }
  if (const ImmDt* h = immdt(packet)) {
    EXPECT_EQ(h->data, 0xDEADBEEFu);
  }
  if (const Ieth* h = ieth(packet)) {
    EXPECT_EQ(h->rkey, 0xAABBCCDDu);
  }
}

TEST(Build, EveryOpcodeReadsBackThroughTheAccessors) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  constexpr std::array<std::uint16_t, 2> kTags[] = {{0, 0}, {100, 0}, {0, 200}, {0xA064, 300}};
  const std::vector<std::uint8_t> payload = {1, 2, 3, 4, 5};
  unsigned known = 0;
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    if (!opcode_info(static_cast<std::uint8_t>(opcode)).has(kIsKnown)) continue;
    known++;
    for (std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
      for (const auto& tags : kTags) {
        for (std::size_t size = 0; size <= payload.size(); size++) {
          PacketSpec spec = full_spec(static_cast<std::uint8_t>(opcode), version);
          spec.underlay.vlans = tags;
          spec.payload = std::span(payload).first(size);
          PacketPtr packet = pool.allocate(built_bytes(spec));
          std::memset(packet->data(), 0xEE, packet->size());
          build(*packet, spec);
          SCOPED_TRACE(testing::Message() << opcode_name(spec.opcode) << " v" << int{version} << " payload " << size);
          ASSERT_TRUE(is_roce(*packet)) << parse_status_name(packet->meta().status);
          EXPECT_EQ(packet->meta().payload_bytes, size);
          EXPECT_EQ(packet->meta().pad_bytes, (4 - size % 4) % 4);
          EXPECT_EQ(packet->meta().datagram_end, packet->size());
          EXPECT_EQ(std::memcmp(packet->data() + packet->meta().payload_offset, payload.data(), size), 0);
          for (unsigned i = 0; i < packet->meta().pad_bytes; i++)
            EXPECT_EQ(packet->data()[packet->meta().payload_offset + size + i], 0);
          EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
          expect_underlay(*packet, spec, (tags[0] != 0) + (tags[1] != 0));
          expect_transport(*packet, spec);
          const std::vector<std::uint8_t> bytes(packet->data(), packet->data() + packet->size());
          EXPECT_EQ(bytes, test::frame(spec)) << "the same bytes whatever was in the buffer";
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(known, 38u);
}

TEST(Build, KnownFrame) {
  // An RC ACK written out by hand; its last four bytes, the ICRC, come from tests/replay/wire.py (zlib.crc32).
  PacketSpec spec;
  spec.underlay.addresses = {ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2)};
  spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  spec.destination_qp = 0x11;
  spec.psn = 7;
  spec.syndrome = 0x1F;
  spec.msn = 3;
  const std::vector<std::uint8_t> expected = {
      0x02, 0,  0,    0,    0,    2,  0x02, 0,    0, 0,  0, 1, 0x08, 0x00, 0x45, 0,    0,    48,   0,    0,   0x40,
      0,    64, 17,   0x26, 0xBB, 10, 0,    0,    1, 10, 0, 0, 2,    0xC0, 0,    0x12, 0xB7, 0,    28,   0,   0,
      0x11, 0,  0xFF, 0xFF, 0,    0,  0,    0x11, 0, 0,  0, 7, 0x1F, 0,    0,    3,    0xAB, 0xB1, 0x70, 0x6C};
  const auto bytes = test::frame(spec);
  EXPECT_EQ(bytes, expected);
}

TEST(Build, TheWayBackSwapsAddressesAndKeepsTheRest) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  for (std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
    for (const auto& tags : {std::array<std::uint16_t, 2>{0, 0}, {7, 0}, {0xE007, 0x2008}}) {
      PacketSpec spec = full_spec(IBV_OPCODE_RC_SEND_ONLY, version);
      spec.underlay.vlans = tags;
      PacketPtr packet = pool.allocate(built_bytes(spec));
      build(*packet, spec);
      const Underlay back = reversed_underlay(*packet);
      EXPECT_EQ(back.source_mac, spec.underlay.destination_mac);
      EXPECT_EQ(back.destination_mac, spec.underlay.source_mac);
      EXPECT_EQ(back.addresses.source, spec.underlay.addresses.destination);
      EXPECT_EQ(back.addresses.destination, spec.underlay.addresses.source);
      EXPECT_EQ(back.vlans, tags);
      EXPECT_EQ(back.ip_version, version);
      EXPECT_EQ(back.tos, spec.underlay.tos);
      EXPECT_EQ(back.udp_source_port, spec.underlay.udp_source_port);
    }
  }
}

// Router alert and padding; hop-by-hop options, then destination options of 16 bytes.
TEST(Build, Ipv4OptionsAndIpv6ExtensionHeaders) {
  Pool pool(test::kPoolSizes);
  const std::vector<std::uint8_t> payload(40, 0x33);
  const std::vector<std::uint8_t> options = {0x94, 0x04, 0x00, 0x00, 0x01, 0x01, 0x01, 0x00};
  std::vector<std::uint8_t> extensions = {60, 0, 1, 4, 0, 0, 0, 0, 0xEE, 1, 1, 12};
  extensions.resize(24);
  for (std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
    PacketSpec spec;
    spec.underlay.ip_version = version;
    spec.underlay.ip_extension = version == 4 ? options : extensions;
    spec.underlay.ip_extension_type = 0;
    spec.payload = payload;
    PacketPtr packet = pool.allocate(built_bytes(spec));
    build(*packet, spec);
    const PacketMeta& meta = packet->meta();
    ASSERT_EQ(meta.status, ParseStatus::kRoce) << parse_status_name(meta.status);
    EXPECT_EQ(meta.udp_offset - meta.l3_offset, version == 4 ? 28 : 64);
    EXPECT_EQ(meta.datagram_end, packet->size());
    EXPECT_EQ(icrc_check(*packet), IcrcStatus::kGood);
    const std::uint8_t* ip = packet->data() + meta.l3_offset;
    EXPECT_EQ(ip[version == 4 ? 0 : 6], version == 4 ? 0x47 : 0);
    if (version == 6) {
      EXPECT_EQ(ip[40], 60) << "the chain is kept";
      EXPECT_EQ(ip[48], kIpProtocolUdp) << "its end leads to UDP";
      continue;
    }
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < 28; i += 2) sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
    EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFu);
  }
}

TEST(Build, BigEndianNumbers) {
  Be24 number{};
  number = 0x1FFEEDDull;
  EXPECT_EQ(number.get(), 0xFFEEDDu) << "cut to its bytes";
  EXPECT_EQ(number.bytes[0], 0xFF);
  EXPECT_EQ(number.bytes[2], 0xDD);
  Be64 wide{};
  wide = ~0ull;
  EXPECT_EQ(wide.get(), ~0ull);
}

}  // namespace
}  // namespace rocebox::roce
