// SPDX-License-Identifier: BSD-3-Clause
// What parse() finds beside the status.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/roce/parse.h"
#include "tests/unit/roce/frame_kit.h"
#include "tests/unit/roce/guarded_packet.h"

namespace rocebox::roce {
namespace {

TEST(Parse, TrimmedPacketsAreToldFromShortOnes) {
  test::GuardedPacket guarded;
  struct {
    const char* title;
    std::uint8_t opcode;
    std::size_t cut;     // bytes of transport that are left
    bool lengths_right;  // the switch that cut also wrote the IP and UDP lengths
    bool trimmed;
  } const cases[] = {
      {"behind BTH", IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 12, false, true},
      {"behind BTH, right lengths", IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 12, true, true},
      {"behind RETH", IBV_OPCODE_RC_RDMA_WRITE_ONLY, 28, false, true},
      {"behind RETH, right lengths", IBV_OPCODE_RC_RDMA_WRITE_ONLY, 28, true, true},
      {"inside BTH", IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 11, false, false},
      {"an ACK without its AETH", IBV_OPCODE_RC_ACKNOWLEDGE, 12, true, false},
      {"whole", IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 12 + 100 + 4, false, false},
  };
  for (const auto& c : cases) {
    Packet packet = guarded.parse(changed(frame(4, c.opcode, 100), [&](Bytes& b) {
      b.resize(kBth4 + c.cut);
      if (!c.lengths_right) return;
      put16(b, kUdp4 + 4, static_cast<unsigned>(8 + c.cut));
      put16(b, kNoTags + 2, static_cast<unsigned>(28 + c.cut));
    }));
    EXPECT_EQ(is_trimmed(packet), c.trimmed) << c.title;
  }
}

TEST(Parse, UnknownOpcodeKeepsItsBth) {
  test::GuardedPacket guarded;
  Packet packet = guarded.parse(frame(4, 0x1F, 21));
  EXPECT_EQ(packet.meta().bth_offset, kBth4);
  EXPECT_EQ(packet.meta().opcode, 0x1F);
  EXPECT_EQ(packet.meta().payload_offset, kBth4 + 12);
  EXPECT_EQ(packet.meta().payload_bytes, 24u) << "the pad is not ours to tell from payload";
}

TEST(Parse, ParsingAgainForgetsWhatWasFoundBefore) {
  Pool pool({.small = 16, .large = 16, .giant = 2});
  const Bytes bytes = frame(4);
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), packet->data());
  parse(*packet);
  ASSERT_TRUE(is_roce(*packet));
  put16(const_cast<Bytes&>(bytes), 12, 0x0806);
  std::copy(bytes.begin(), bytes.end(), packet->data());
  parse(*packet);
  const PacketMeta& meta = packet->meta();
  EXPECT_EQ(meta.status, ParseStatus::kNotIp);
  EXPECT_EQ(meta.bth_offset + meta.udp_offset + meta.payload_offset + meta.ip_version + meta.opcode + meta.pad_bytes,
            0);
  EXPECT_EQ(meta.payload_bytes + meta.datagram_end, 0u);
}

TEST(Parse, NamesAreCounterNamesAndDiffer) {
  std::set<std::string_view> names, sentences;
  for (int i = 0; i < static_cast<int>(ParseStatus::kCount); i++) {
    const std::string_view name = parse_status_name(static_cast<ParseStatus>(i));
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(sentences.insert(parse_status_sentence(static_cast<ParseStatus>(i))).second) << name;
  }
}

TEST(Parse, EcnOfBothFamilies) {
  test::GuardedPacket guarded;
  for (unsigned tos = 0; tos < 256; tos++) {
    for (std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
      PacketSpec spec;
      spec.underlay.ip_version = version;
      spec.underlay.tos = static_cast<std::uint8_t>(tos);
      EXPECT_EQ(ecn(guarded.parse(test::frame(spec))), tos & 3);
    }
  }
}

// Packets without a tag may be parsed by a shorter way. A VLAN tag in front of the same network header moves what is
// found by four bytes, and changes nothing else.
TEST(Parse, FindsTheSameWithAndWithoutATag) {
  test::GuardedPacket guarded;
  std::mt19937 random(11);
  std::set<ParseStatus> seen;
  for (int round = 0; round < 300'000; round++) {
    Bytes bytes = frame(4, static_cast<std::uint8_t>(random()), random() % 40);
    for (auto changes = random() % 3; changes > 0; changes--)
      bytes[12 + random() % (bytes.size() - 12)] = static_cast<std::uint8_t>(random() % 2 ? random() : random() % 4);
    if (bytes[12] == 0x81 || bytes[12] == 0x88 || bytes[12] == 0x91) continue;  // a tag now, or RoCE version 1
    const auto wire = static_cast<std::uint32_t>(bytes.size() + random() % 3 - 1);
    if (random() % 4 == 0) bytes.resize(14 + random() % (bytes.size() - 13));
    const PacketMeta plain = guarded.parse(bytes, wire).meta();
    insert(bytes, 12, {0x81, 0, 0, 5});
    PacketMeta tagged = guarded.parse(bytes, wire + 4).meta();
    ASSERT_EQ(plain.status, tagged.status)
        << parse_status_name(plain.status) << ' ' << parse_status_name(tagged.status);
    seen.insert(plain.status);
    ASSERT_EQ(tagged.l3_offset, plain.l3_offset + 4);
    for (auto [with, without] :
         {std::pair{tagged.udp_offset, plain.udp_offset}, std::pair{tagged.bth_offset, plain.bth_offset},
          std::pair{tagged.payload_offset, plain.payload_offset}})
      ASSERT_EQ(with, without ? without + 4 : 0);
    ASSERT_EQ(tagged.datagram_end, plain.datagram_end ? plain.datagram_end + 4 : 0);
    ASSERT_EQ(tagged.payload_bytes, plain.payload_bytes);
    ASSERT_EQ(tagged.opcode, plain.opcode);
    ASSERT_EQ(tagged.ip_version, plain.ip_version);
    ASSERT_EQ(tagged.pad_bytes, plain.pad_bytes);
  }
  EXPECT_GE(seen.size(), 18u) << "of the statuses that IPv4 has";
}

}  // namespace
}  // namespace rocebox::roce
