// SPDX-License-Identifier: BSD-3-Clause
// The repair header's bits, and what is not one.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/lowar/limits.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {
namespace {

using Bytes = std::vector<std::uint8_t>;

RepairHeader sample() {
  RepairHeader header;
  header.qpn = 0xABCDEF;
  header.block = {{300 & 0xFF, 8}, 0xFFFFFE, 20, 0x0124, true, true, false, true};
  header.isn = 3;
  header.hop_sum = 0x5678;
  header.set_sum = 0x9ABCDEF1;
  header.sent = 0xC7;
  return header;
}

Bytes with_image(const HeaderBytes& header, std::size_t transport = 1060) {
  Bytes bytes(sizeof(HeaderBytes) + sizeof(CodedPrefix) + transport);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(LowarHeader, RepairBitByBit) {
  const Bytes bytes = with_image(encode(sample()));
  const Bytes wanted = {0x1F, 0xAB, 0xCD, 0xEF, 0x5A, 0x3B, 0x00, 0x2C, 0x08, 0xFF, 0xFF, 0xFE,
                        0x03, 0xC7, 0x00, 0x14, 0x01, 0x24, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF1};
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + 24), wanted);
  EXPECT_EQ(parse_repair(bytes), sample());
}

TEST(LowarHeader, NegotiationBitByBit) {
  const NegotiationHeader header{0x12, NegotiationKind::kStatus, {64, 8}, 0x010203, true, 0x0405, 0x06070809, 0x1718};
  const HeaderBytes raw = encode(header);
  Bytes bytes(sizeof raw);
  std::memcpy(bytes.data(), &raw, sizeof raw);
  EXPECT_EQ(bytes, (Bytes{0x1F, 0, 0, 0x12, 0xA5, 0x34, 0, 64, 8, 1, 2, 3, 3, 0, 4, 5, 0x17, 0x18, 0, 0, 6, 7, 8, 9}));
  EXPECT_EQ(parse_negotiation(bytes), header);
  for (std::size_t at : {13u, 18u, 19u}) {
    Bytes bad = bytes;
    bad[at] = 1;
    EXPECT_FALSE(parse_negotiation(bad)) << at;
  }
  for (const std::uint8_t kind : {std::uint8_t{0}, std::uint8_t{4}}) {
    Bytes bad = bytes;
    bad[12] = kind;
    EXPECT_FALSE(parse_negotiation(bad));
  }
  Bytes request = bytes;
  request[12] = 2;
  EXPECT_FALSE(parse_negotiation(request)) << "it counts no packets";
  request[16] = request[17] = 0;
  EXPECT_TRUE(parse_negotiation(request));
  Bytes uncoded = bytes;
  uncoded[7] = uncoded[8] = 0;
  ASSERT_TRUE(parse_negotiation(uncoded));
  EXPECT_TRUE(parse_negotiation(uncoded)->coding.off());
  uncoded[7] = 1;
  EXPECT_FALSE(parse_negotiation(uncoded)) << "(1, 0)";
  bytes.push_back(0);
  EXPECT_FALSE(parse_negotiation(bytes)) << "longer";
  bytes.resize(23);
  EXPECT_FALSE(parse_negotiation(bytes)) << "shorter";
}

TEST(LowarHeader, EveryFieldOfEveryBlockComesBack) {
  std::mt19937 random(1);
  for (unsigned i = 0; i < 5000; i++) {
    RepairHeader header;
    header.qpn = random() & 0xFFFFFF;
    Block& block = header.block;
    block.coding.c = static_cast<std::uint8_t>(1 + random() % kInterleavingMax);
    block.coding.r = static_cast<std::uint16_t>(block.coding.c + random() % (kBlockPacketsMax + 1 - block.coding.c));
    block.base_psn = random() & 0xFFFFFF;
    block.packets = static_cast<std::uint16_t>(1 + random() % block.coding.r);
    block.has_first = random() % 2, block.has_last = random() % 2, block.responses = random() % 2;
    block.anew = random() % 2;
    block.last_bytes = static_cast<std::uint16_t>(block.has_last ? 16 + random() % 1000 : 0);
    header.isn = static_cast<std::uint8_t>(random() % std::min<unsigned>(block.coding.c, block.packets));
    header.hop_sum = static_cast<std::uint16_t>(random());
    header.sent = static_cast<std::uint8_t>(random());
    header.set_sum = static_cast<std::uint32_t>(random());
    ASSERT_EQ(parse_repair(with_image(encode(header))), header);
    ASSERT_FALSE(parse_negotiation(with_image(encode(header))));
  }
}

TEST(LowarHeader, ImpossibleFieldsAreRefused) {
  const struct {
    const char* what;
    void (*change)(HeaderBytes&);
  } kCases[] = {
      {"opcode", [](HeaderBytes& h) { h.opcode = 0x04; }},
      {"type", [](HeaderBytes& h) { h.type = 0x5B; }},
      {"version 0", [](HeaderBytes& h) { h.version_flags &= 0x0F; }},
      {"version 1", [](HeaderBytes& h) { h.version_flags ^= 0x20; }},
      {"version 2", [](HeaderBytes& h) { h.version_flags ^= 0x10; }},
      {"r 0", [](HeaderBytes& h) { h.r = 0; }},
      {"r too large", [](HeaderBytes& h) { h.r = kBlockPacketsMax + 1; }},
      {"r below c", [](HeaderBytes& h) { h.r = 7, h.packets = 7; }},
      {"c 0", [](HeaderBytes& h) { h.c = 0; }},
      {"c too large", [](HeaderBytes& h) { h.c = kInterleavingMax + 1; }},
      {"no packets", [](HeaderBytes& h) { h.packets = 0; }},
      {"more packets than r", [](HeaderBytes& h) { h.packets = 45; }},
      {"ISN of no unit", [](HeaderBytes& h) { h.isn = 8; }},
      {"ISN beyond the packets", [](HeaderBytes& h) { h.packets = 3; }},
      {"last length without has_Last", [](HeaderBytes& h) { h.version_flags &= 0xFD; }},
      {"last length below BTH and ICRC", [](HeaderBytes& h) { h.last_bytes = 15; }},
      {"last length beyond the image", [](HeaderBytes& h) { h.last_bytes = 1061; }},
  };
  ASSERT_TRUE(parse_repair(with_image(encode(sample()))));
  for (const auto& c : kCases) {
    HeaderBytes header = encode(sample());
    c.change(header);
    EXPECT_FALSE(parse_repair(with_image(header))) << c.what;
  }
  const HeaderBytes header = encode(sample());
  EXPECT_FALSE(parse_repair(with_image(header, 15))) << "no room for a transport packet";
  EXPECT_FALSE(parse_repair(std::span(reinterpret_cast<const std::uint8_t*>(&header), 23))) << "cut";
}

TEST(LowarHeader, TypesAreFarApart) {
  // The ICRC does not see the byte of the type: one flipped bit must not make one type into the other.
  EXPECT_EQ(__builtin_popcount(kTypeRepair ^ kTypeNegotiation), 8);
}

}  // namespace
}  // namespace rocebox::lowar
