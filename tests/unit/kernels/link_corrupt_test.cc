// SPDX-License-Identifier: BSD-3-Clause
// Corruption and duplication: which bytes change, and that the ICRC always tells.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "runtime/roce/icrc.h"
#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

// The places of all bits that differ.
std::vector<std::size_t> changed_bits(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  std::vector<std::size_t> bits;
  for (std::size_t i = 0; i < a.size(); i++)
    for (unsigned bit = 0; bit < 8; bit++)
      if ((a[i] ^ b[i]) >> bit & 1) bits.push_back(i * 8 + bit);
  return bits;
}

// Whether the ICRC is right, with the layout of the packet as it was sent: a flipped bit may have
// changed that.
bool icrc_right(std::span<const std::uint8_t> sent, std::span<const std::uint8_t> bytes) {
  static Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(packet->data(), sent.data(), sent.size());
  roce::parse(*packet);
  std::memcpy(packet->data(), bytes.data(), bytes.size());
  return roce::icrc_check(*packet) == roce::IcrcStatus::kGood;
}

roce::PacketSpec random_spec(auto& random, std::vector<std::uint8_t>& payload) {
  roce::PacketSpec spec;
  spec.underlay.ip_version = random() % 2 ? 4 : 6;
  if (random() % 3 == 0) spec.underlay.vlans = {100, 0};
  const std::uint8_t opcodes[] = {IBV_OPCODE_RC_RDMA_WRITE_FIRST, IBV_OPCODE_RC_ACKNOWLEDGE, IBV_OPCODE_UD_SEND_ONLY,
                                  roce::kOpcodeCnp};
  spec.opcode = opcodes[random() % 4];
  spec.psn = random() & 0xFFFFFF;
  payload.assign(random() % 64, 0x33);
  spec.payload = payload;
  return spec;
}

TEST(LinkCorrupt, OneBitBehindUdpAndTheIcrcIsAlwaysWrong) {
  link::Config config;
  config.forward.corrupt = 1;
  test::KernelBox box(with(config));
  auto random = [engine = std::mt19937(3)]() mutable { return static_cast<unsigned>(engine()); };
  std::set<std::size_t> bits_behind_bth;
  for (int round = 0; round < 5000; round++) {
    std::vector<std::uint8_t> payload;
    const auto sent = test::frame(random_spec(random, payload));
    box.send(round, 0, sent);
    const auto& got = box.out.back().bytes;
    ASSERT_EQ(got.size(), sent.size());
    const auto bits = changed_bits(sent, got);
    ASSERT_EQ(bits.size(), 1u);
    ASSERT_FALSE(icrc_right(sent, got));
    const std::size_t l3 = sent[12] == 0x81 ? 18 : 14;
    const std::size_t bth = l3 + (sent[l3] >> 4 == 4 ? 20 : 40) + 8;
    ASSERT_GE(bits[0] / 8, bth);
    ASSERT_NE(bits[0] / 8, bth + 4);
    bits_behind_bth.insert(bits[0] - bth * 8);
  }
  EXPECT_EQ(box.stats.read("forward_corrupted"), 5000u);
  for (std::size_t bit = 0; bit < 16 * 8; bit++)  // the shortest packet is longer
    EXPECT_EQ(bits_behind_bth.count(bit), bit / 8 == 4 ? 0u : 1u) << bit;
}

// Silent corruption: what came with a right ICRC leaves with a right one, what came with a wrong one with a wrong one.
TEST(LinkCorrupt, ARepairedIcrcHidesTheFlipAndNothingElse) {
  link::Config config;
  config.forward.corrupt = 1;
  config.forward.corrupt_icrc = link::Icrc::kRepaired;
  test::KernelBox box(with(config));
  auto random = [engine = std::mt19937(4)]() mutable { return static_cast<unsigned>(engine()); };
  for (int round = 0; round < 5000; round++) {
    std::vector<std::uint8_t> payload;
    auto sent = test::frame(random_spec(random, payload));
    const bool wrong = round % 2;
    if (wrong) sent[sent.size() - 1 - random() % 12] ^= 0x10;  // the ICRC or the bytes before it
    box.send(round, 0, sent);
    const auto& got = box.out.back().bytes;
    const auto bits = changed_bits({sent.data(), sent.size() - 4}, {got.data(), got.size() - 4});
    ASSERT_EQ(bits.size(), 1u);
    const std::size_t l3 = sent[12] == 0x81 ? 18 : 14;
    const std::size_t bth = l3 + (sent[l3] >> 4 == 4 ? 20 : 40) + 8;
    ASSERT_GE(bits[0] / 8, bth);
    ASSERT_EQ(icrc_right(sent, got), !wrong);
  }
  EXPECT_EQ(box.stats.read("forward_corrupted"), 5000u);
  EXPECT_EQ(box.stats.read("forward_corrupted_icrc_repaired"), 5000u);
}

TEST(LinkCorrupt, WhereTheIcrcCannotBeRepairedNothingIsFlipped) {
  link::Config config;
  config.forward.corrupt = 1;
  config.forward.corrupt_icrc = link::Icrc::kRepaired;
  test::KernelBox box(with(config));
  auto sent = test::frame({});
  const auto wire_bytes = static_cast<std::uint32_t>(sent.size());
  sent.resize(sent.size() - 1);
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08, arp[13] = 0x06;
  box.send(0, 0, sent, wire_bytes);
  box.send(0, 0, arp);
  EXPECT_EQ(box.out.at(0).bytes, sent);
  EXPECT_EQ(box.out.at(1).bytes, arp);
  EXPECT_EQ(box.stats.read("forward_corrupted"), 0u);
}

TEST(LinkCorrupt, AnEventRepairsFromBthToBeforeTheIcrc) {
  const std::vector<std::uint8_t> payload(64, 7);
  roce::PacketSpec spec;
  spec.payload = payload;
  const auto sent = test::frame(spec);
  link::Config config;
  for (std::int64_t offset = 0; offset < std::ssize(sent) + 2; offset++) {
    link::Event& event = config.forward.events.emplace_back();
    event.packet = offset + 1;
    event.action = link::Action::kCorrupt;
    event.icrc = link::Icrc::kRepaired;
    event.offset = offset;
    event.mask = 0xFF;
  }
  test::KernelBox box(with(config));
  std::uint64_t not_applied = 0;
  for (std::size_t offset = 0; offset < sent.size() + 2; offset++) {
    box.send(0, 0, sent);
    const auto& got = box.out.back().bytes;
    const bool inside = offset >= 42 && offset < sent.size() - 4;
    not_applied += !inside;
    ASSERT_EQ(got != sent, inside) << offset;
    ASSERT_TRUE(icrc_right(sent, got)) << offset;
    if (inside) {
      ASSERT_EQ(got[offset], sent[offset] ^ 0xFF);
    }
  }
  EXPECT_EQ(box.stats.read("forward_events_not_applied"), not_applied);
}

TEST(LinkCorrupt, MetadataFollowsTheBytes) {
  link::Config config;
  config.forward.corrupt = 1;
  test::KernelBox box(with(config));
  const auto sent = test::frame({});
  bool status_changed = false;
  for (int i = 0; i < 2000; i++) {
    box.send(i, 0, sent);
    const test::Out& out = box.out.back();
    PacketPtr again = box.pool.allocate(static_cast<std::uint32_t>(out.bytes.size()));
    std::memcpy(again->data(), out.bytes.data(), out.bytes.size());
    roce::parse(*again);
    ASSERT_EQ(again->meta().status, out.meta.status);
    ASSERT_EQ(again->meta().opcode, out.meta.opcode);
    status_changed |= out.meta.status != ParseStatus::kRoce;
  }
  EXPECT_TRUE(status_changed) << "some bits make the opcode unknown";
}

TEST(LinkCorrupt, OtherTrafficBehindTheEthernetHeader) {
  link::Config config;
  config.forward.corrupt = 1;
  test::KernelBox box(with(config));
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08, arp[13] = 0x06;
  std::set<std::size_t> bytes;
  for (int i = 0; i < 3000; i++) {
    box.send(i, 0, arp);
    const auto bits = changed_bits(arp, box.out.back().bytes);
    ASSERT_EQ(bits.size(), 1u);
    bytes.insert(bits[0] / 8);
  }
  EXPECT_EQ(*bytes.begin(), 14u);
  EXPECT_EQ(bytes.size(), 46u);
}

TEST(LinkCorrupt, OfSnappedPacketsOnlyTheBytesHeld) {
  link::Config config;
  config.forward.corrupt = 1;
  test::KernelBox box(with(config));
  const std::vector<std::uint8_t> payload(1000, 9);
  roce::PacketSpec spec;
  spec.payload = payload;
  auto sent = test::frame(spec);
  const auto wire_bytes = static_cast<std::uint32_t>(sent.size());
  for (std::size_t held : {64u, 54u, 30u, 14u, 6u, 1u}) {
    sent.resize(held);
    for (int i = 0; i < 50; i++) {
      box.send(0, 0, sent, wire_bytes);
      ASSERT_EQ(changed_bits(sent, box.out.back().bytes).size(), held > 14 ? 1u : 0u);
      ASSERT_EQ(box.out.back().wire_bytes, wire_bytes);
    }
  }
  EXPECT_EQ(box.stats.read("forward_corrupted"), 150u);
}

TEST(LinkDuplicate, CopiesAreEqualAndRightBehind) {
  link::Config config;
  config.forward.duplicate = 0.3;
  config.forward.corrupt = 0.2;  // a corrupted packet has corrupted copies
  for (Nanos delay : {0, 5000}) {
    config.forward.delay = delay;
    test::KernelBox box(with(config));
    for (std::uint32_t i = 0; i < 3000; i++) {
      roce::PacketSpec spec;
      spec.psn = i;
      box.send(i * 100, 0, spec);
    }
    box.drain();
    const std::uint64_t copies = box.stats.read("forward_duplicated");
    EXPECT_NEAR(static_cast<double>(copies), 900, 120);
    ASSERT_EQ(box.out.size(), 3000 + copies);
    std::uint64_t equal = 0;
    for (std::size_t i = 1; i < box.out.size(); i++) {
      ASSERT_GE(box.out[i].meta.identity, box.out[i - 1].meta.identity);
      if (box.out[i].meta.identity != box.out[i - 1].meta.identity) continue;
      equal++;
      ASSERT_TRUE(box.out[i] == box.out[i - 1]);
    }
    EXPECT_EQ(equal, copies);
  }
}

TEST(LinkDuplicate, ADryPoolIsCounted) {
  link::Config config;
  config.forward.duplicate = 1;
  config.forward.delay = 1'000'000;
  test::KernelBox box(with(config));
  std::vector<PacketPtr> hoard;
  const auto bytes = test::frame({});
  for (;;) {
    PacketPtr packet = box.pool.allocate(64);
    if (!packet) break;
    hoard.push_back(std::move(packet));
  }
  hoard.pop_back();
  box.send(0, 0, bytes);
  EXPECT_EQ(box.stats.read("forward_copy_failed"), 1u);
  EXPECT_EQ(box.stats.read("forward_duplicated"), 0u);
  hoard.clear();
  box.drain();
  EXPECT_EQ(box.out.size(), 1u);
}

}  // namespace
}  // namespace rocebox
