// SPDX-License-Identifier: BSD-3-Clause
// The encoder against the paper's own examples (figures 6, 7 and 14, algorithm 1), and its units.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/lowar/coding_units.h"
#include "runtime/config/describe.h"
#include "runtime/config/fields_reader.h"
#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

// One repair packet: its block's first PSN, ISN, and the PSNs that it covers.
struct Repair {
  std::uint32_t base, isn;
  std::vector<std::uint32_t> covers;
  bool first, last;
  bool operator==(const Repair&) const = default;
};
void PrintTo(const Repair& repair, std::ostream* out) {
  *out << "base " << repair.base << " ISN " << repair.isn << " first " << repair.first << " last " << repair.last
       << " of";
  for (std::uint32_t psn : repair.covers) *out << " " << psn;
}

std::vector<Repair> repairs(const std::vector<Crossing>& crossings) {
  std::vector<Repair> result;
  for (const Crossing& crossing : crossings) {
    if (!crossing.repair) continue;
    const Block& block = crossing.repair->block;
    Repair repair{block.base_psn, crossing.repair->isn, {}, block.has_first, block.has_last};
    for (unsigned i = repair.isn; i < block.packets; i += block.coding.c)
      repair.covers.push_back(roce::psn_add(block.base_psn, i));
    result.push_back(repair);
  }
  return result;
}

TEST(LowarEncoder, Figure6MessagesOf1And5And61PacketsWithLowar8And2) {
  Gateway near(coding(8, 2));
  Sender sender;
  std::vector<Frame> frames = sender.write(1);
  append(frames, sender.write(5));
  append(frames, sender.write(61));
  const std::vector<Crossing> crossings = near.encode(frames);
  std::vector<Repair> wanted = {
      {0, 0, {0}, true, true},        // A, a duplicate of packet 0
      {1, 0, {1, 3, 5}, true, true},  // B
      {1, 1, {2, 4}, true, true},     // C
  };
  for (std::uint32_t base = 6; base < 62; base += 8) {  // seven whole blocks
    wanted.push_back({base, 0, {base, base + 2, base + 4, base + 6}, base == 6, false});
    wanted.push_back({base, 1, {base + 1, base + 3, base + 5, base + 7}, base == 6, false});
  }
  wanted.push_back({62, 0, {62, 64, 66}, false, true});
  wanted.push_back({62, 1, {63, 65}, false, true});
  EXPECT_EQ(repairs(crossings), wanted);
  EXPECT_EQ(wanted.size(), 19u);

  // Repair packets stand right behind the packet that ends their block.
  std::uint32_t last_psn = 0;
  for (const Crossing& crossing : crossings) {
    if (crossing.data) last_psn = crossing.psn;
    if (!crossing.repair) continue;
    EXPECT_EQ(last_psn, crossing.repair->block.base_psn + crossing.repair->block.packets - 1u);
  }
  EXPECT_EQ(near.count("encode_blocks"), 10u);
  EXPECT_EQ(near.count("encode_repairs"), 19u);
  EXPECT_EQ(near.count("encode_packets"), 67u);
  EXPECT_EQ(near.count("encode_units_max"), 2u);
}

// A repair packet of one packet is that packet XORed with zero, behind the prefix.
TEST(LowarEncoder, AnOnlyPacketIsRepeated) {
  Gateway near(coding(8, 2));
  Sender sender(5);
  const std::vector<Frame> frames = sender.write(1, 100);
  const std::vector<Crossing> crossings = near.encode(frames);
  ASSERT_EQ(crossings.size(), 3u);
  const Frame& repair = crossings[2].bytes;
  const std::size_t bth = 14 + 20 + 8, at = bth + sizeof(HeaderBytes) + sizeof(CodedPrefix);
  EXPECT_EQ(Frame(repair.begin() + static_cast<std::ptrdiff_t>(at), repair.end() - 4),
            Frame(frames[0].begin() + static_cast<std::ptrdiff_t>(bth), frames[0].end()));
  EXPECT_EQ(repair.size() - frames[0].size(), kRepairExtraBytes);
}

// Figure 7: interleaved connections do not disturb each other, each with units of its own.
TEST(LowarEncoder, InterleavedConnectionsAreIndependent) {
  std::vector<std::vector<Frame>> messages;
  std::vector<std::vector<Repair>> alone;
  for (std::uint32_t qpn = 2; qpn <= 4; qpn++) {
    Sender sender(qpn * 100, qpn);
    messages.push_back(sender.write(20));
    Gateway near(coding(6, 3));
    alone.push_back(repairs(near.encode(messages.back())));
  }
  std::vector<Frame> mixed;
  for (unsigned i = 0; i < 20; i++)
    for (const auto& message : messages) mixed.push_back(message[i]);
  Gateway near(coding(6, 3));
  std::map<std::uint32_t, std::vector<Crossing>> of;
  for (const Crossing& crossing : near.encode(mixed))
    if (crossing.repair) of[crossing.repair->qpn].push_back(crossing);
  for (std::uint32_t qpn = 2; qpn <= 4; qpn++) EXPECT_EQ(repairs(of[qpn]), alone[qpn - 2]);
  EXPECT_EQ(near.count("encode_units_max"), 9u);
}

TEST(LowarEncoder, AJumpEndsTheBlockAndBeginsAnother) {
  Gateway near(coding(8, 1));
  Sender sender(0xFFFFFC);
  const std::vector<Frame> message = sender.write(12);
  std::vector<Frame> frames(message.begin(), message.begin() + 6);
  frames.insert(frames.end(), message.begin() + 3, message.end());  // go-back-N to the fourth
  const std::vector<Repair> wanted = {{0xFFFFFC, 0, {0xFFFFFC, 0xFFFFFD, 0xFFFFFE, 0xFFFFFF, 0, 1}, true, false},
                                      {0xFFFFFF, 0, {0xFFFFFF, 0, 1, 2, 3, 4, 5, 6}, false, false},
                                      {7, 0, {7}, false, true}};
  const std::vector<Crossing> crossings = near.encode(frames);
  EXPECT_EQ(repairs(crossings), wanted);
  EXPECT_EQ(near.count("encode_blocks_cut"), 1u);
  std::vector<bool> anew;
  for (const Crossing& crossing : crossings)
    if (crossing.repair) anew.push_back(crossing.repair->block.anew);
  EXPECT_EQ(anew, (std::vector<bool>{true, true, false}));
}

TEST(LowarEncoder, EveryMadePacketIsWhole) {
  for (const std::uint8_t ip : {std::uint8_t{4}, std::uint8_t{6}}) {
    Gateway near(coding(4, 2));
    Sender sender(7, 0xFEDCBA);  // a QPN that would be a wrong version of BTH
    sender.ip_version = ip;
    sender.tos = 3;
    near.encode(sender.write(9));
    unsigned made = 0;
    for (const test::Out& o : near.out) {
      PacketPtr packet = near.pool.allocate(static_cast<std::uint32_t>(o.bytes.size()));
      std::copy(o.bytes.begin(), o.bytes.end(), packet->data());
      roce::parse(*packet);
      ASSERT_NE(packet->meta().bth_offset, 0);
      EXPECT_EQ(packet->meta().datagram_end, packet->size());
      EXPECT_EQ(roce::icrc_check(*packet), roce::IcrcStatus::kGood);
      if (packet->meta().status == ParseStatus::kRoce) continue;
      made++;
      EXPECT_EQ(roce::ecn(*packet), roce::kEcnEct0) << "the mark was for the data packet";
      if (ip == 6) continue;
      std::uint32_t sum = 0;
      for (unsigned i = 14; i < 34; i += 2) sum += static_cast<std::uint32_t>(o.bytes[i] << 8 | o.bytes[i + 1]);
      EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFu);
    }
    EXPECT_EQ(made, 1 + 2 + 2 + 1);
    EXPECT_EQ(near.count("encode_repairs"), 5u);
  }
}

TEST(LowarEncoder, WhatIsNotProtectedPassesAndIsCounted) {
  Config config = coding(4, 2);
  config.units = 3, config.streams = 2, config.roce_mtu = 1;  // 512
  Gateway near(config);
  Sender a(0, 1), b(0, 2), c(0, 3);
  near.encode({a.one(IBV_OPCODE_RC_RDMA_WRITE_FIRST, 256), a.one(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 256)});
  EXPECT_EQ(repairs(near.encode(b.write(2))), (std::vector<Repair>{{0, 0, {0}, true, true}})) << "one unit was left";
  EXPECT_EQ(near.count("encode_unprotected_units"), 1u);
  const std::vector<Frame> third = c.write(3);
  EXPECT_EQ(near.encode(third).size(), 3u);
  EXPECT_EQ(near.count("encode_unprotected_streams"), 3u);
  EXPECT_EQ(near.encode({b.one(IBV_OPCODE_RC_SEND_ONLY, 600)}).size(), 1u);
  EXPECT_EQ(near.count("encode_unprotected_size"), 1u);

  Frame wrong = b.one(IBV_OPCODE_RC_SEND_ONLY, 100);
  wrong[100] ^= 1;
  const std::vector<Crossing> passed = near.encode({wrong});
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].bytes, wrong);
  EXPECT_EQ(near.count("encode_unprotected_icrc"), 1u);
  near.out.clear();
  const Frame whole = b.one(IBV_OPCODE_RC_SEND_ONLY, 100);
  near.send(near.clock += 1000, kHost, std::span(whole).first(80), static_cast<std::uint32_t>(whole.size()));
  EXPECT_EQ(near.out.size(), 1u);
  EXPECT_EQ(near.count("encode_unprotected_snapped"), 1u);
  EXPECT_EQ(near.encode({a.one(roce::kOpcodeCnp), a.one(IBV_OPCODE_RC_ACKNOWLEDGE), a.one(IBV_OPCODE_UD_SEND_ONLY, 9)})
                .size(),
            3u)
      << "not protected";
}

TEST(LowarEncoder, ARepairPacketThatDoesNotFitTheLinkIsNotMade) {
  Config config = coding(4, 1);
  config.roce_mtu = 2;  // 1024
  config.link_mtu = 1124;
  for (const std::uint8_t ip : {std::uint8_t{4}, std::uint8_t{6}}) {
    Gateway near(config);
    Sender sender;
    sender.mtu = 1024, sender.ip_version = ip;
    const std::vector<Crossing> crossings = near.encode(sender.write(4, 1024));
    EXPECT_EQ(repairs(crossings).size(), ip == 4 ? 1u : 0u) << "IPv6 has 20 bytes more";
    EXPECT_EQ(near.count("encode_link_mtu"), ip == 4 ? 0u : 1u);
    for (const Crossing& crossing : crossings) EXPECT_LE(crossing.bytes.size(), 14 + 1124u);
  }
}

std::string mistakes_of(Config& config, const std::string& yaml) {
  config::Mistakes mistakes("lowar.yaml");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader fields(&node, mistakes);
  config.fields(fields);
  fields.finish();
  return mistakes.text();
}

TEST(LowarEncoder, TheLeastLinkMtuThatIsAcceptedFitsAllRepairPackets) {
  Config config = coding(1, 1);
  EXPECT_NE(mistakes_of(config, "{r: 1, roce_mtu: 1024, link_mtu: 1127B}").find("have 1128 bytes"), std::string::npos);
  ASSERT_EQ(mistakes_of(config, "{r: 1, roce_mtu: 1024, link_mtu: 1128B}"), "");
  Gateway near(config);
  Sender sender;
  std::size_t longest = 0;
  for (const std::uint8_t opcode :
       {IBV_OPCODE_RC_RDMA_WRITE_ONLY, IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, IBV_OPCODE_RC_SEND_ONLY,
        IBV_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE, IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
        IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY})
    for (const Crossing& crossing : near.encode({sender.one(opcode, 1024)}))
      if (crossing.repair) longest = std::max(longest, crossing.bytes.size());
  EXPECT_EQ(longest, 14 + 1128u);
  EXPECT_EQ(near.count("encode_link_mtu"), 0u);
  EXPECT_EQ(near.count("encode_repairs"), 6u);
}

TEST(LowarUnits, Figure14UnitsAreGivenInTheOrderInWhichTheyBecameFree) {
  CodingUnits units(3, 100);
  const std::uint16_t a = units.bind(), b = units.bind(), c = units.bind();
  EXPECT_EQ((std::vector<std::uint16_t>{a, b, c}), (std::vector<std::uint16_t>{1, 2, 3}));
  EXPECT_EQ(units.bind(), CodingUnits::kNone);
  units.release(b);
  units.release(a);
  EXPECT_EQ(units.bound(), 1u);
  EXPECT_EQ(units.bind(), b);
  units.release(c);
  EXPECT_EQ(units.bind(), a);
  EXPECT_EQ(units.bind(), c);
  EXPECT_EQ(units.bind(), CodingUnits::kNone);
}

TEST(LowarUnits, XorOfAnyLengthAtAnyAddress) {
  std::vector<std::uint8_t> to(700), from(700), wanted;
  for (std::size_t i = 0; i < to.size(); i++)
    to[i] = static_cast<std::uint8_t>(i * 7), from[i] = static_cast<std::uint8_t>(i * 13 + 5);
  for (std::size_t count = 0; count < 300; count++) {
    const std::size_t a = count % 37, b = count % 61;
    wanted = to;
    for (std::size_t i = 0; i < count; i++) wanted[a + i] ^= from[b + i];
    xor_into(to.data() + a, from.data() + b, count);
    ASSERT_EQ(to, wanted) << count;
  }
}

}  // namespace
}  // namespace rocebox::lowar
