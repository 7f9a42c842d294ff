// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"

namespace rocebox {
namespace {

constexpr PoolSizes kTiny{.small = 4, .large = 3, .giant = 2};

// How many packets of `bytes` can be had from a full pool.
unsigned capacity(Pool& pool, std::uint32_t bytes) {
  std::vector<PacketPtr> packets;
  while (PacketPtr packet = pool.allocate(bytes)) packets.push_back(std::move(packet));
  return static_cast<unsigned>(packets.size());
}

TEST(Pool, SizeClassesAndFallThroughWhenDry) {
  Pool pool(kTiny);
  struct Row {
    std::uint32_t bytes;
    unsigned packets;
  };
  constexpr Row kRows[] = {{0, 9},
                           {1, 9},
                           {2048, 9},
                           {2049, 5},
                           {9728, 5},
                           {9729, 2},
                           {kPacketBytesMax, 2},
                           {kPacketBytesMax + 1, 0},
                           {65535, 0},
                           {65536, 0},
                           {65536 + 64, 0},
                           {0xFFFFFFFF, 0}};
  for (const Row& row : kRows) {
    EXPECT_EQ(capacity(pool, row.bytes), row.packets) << row.bytes;
    EXPECT_EQ(pool.in_use(), 0u);
  }
}

TEST(Pool, AFreshPacketHasItsLengthAndFreshMetadata) {
  Pool pool(kTiny);
  for (std::uint32_t bytes : {0u, 64u, 2048u, 9728u, kPacketBytesMax}) {
    for (int again = 0; again < 12; again++) {  // often enough to meet a used buffer
      PacketPtr packet = pool.allocate(bytes);
      ASSERT_TRUE(packet);
      EXPECT_EQ(packet->size(), bytes);
      EXPECT_EQ(packet->wire_bytes(), bytes);
      PacketMeta fresh;
      fresh.wire_bytes = bytes;
      EXPECT_EQ(std::memcmp(&packet->meta(), &fresh, sizeof fresh), 0);
      std::memset(packet->data(), 0xFF, bytes);
      std::memset(static_cast<void*>(&packet->meta()), 0xFF, sizeof(PacketMeta));
    }
  }
}

TEST(Pool, PacketsDoNotOverlap) {
  Pool pool(kTiny);
  std::vector<PacketPtr> packets;
  while (PacketPtr packet = pool.allocate(2048)) packets.push_back(std::move(packet));
  for (std::size_t i = 0; i < packets.size(); i++) std::memset(packets[i]->data(), static_cast<int>(i), 2048);
  for (std::size_t i = 0; i < packets.size(); i++)
    EXPECT_TRUE(
        std::all_of(packets[i]->bytes().begin(), packets[i]->bytes().end(), [&](std::uint8_t b) { return b == i; }));
}

// Headers of a burst share no set of a first-level cache (64 lines of 64 bytes) more often than they must.
TEST(Pool, HeadersSpreadOverTheCache) {
  Pool pool({.small = 1024, .large = 16, .giant = 2});
  std::vector<PacketPtr> packets;
  std::set<std::uintptr_t> lines;
  for (unsigned i = 0; i < kBatchMax; i++) {
    packets.push_back(pool.allocate(1));
    const rte_mbuf* mbuf = packets.back()->mbuf();
    lines.insert(reinterpret_cast<std::uintptr_t>(mbuf) / RTE_CACHE_LINE_SIZE % 64);
    EXPECT_EQ(mbuf->buf_iova, reinterpret_cast<std::uintptr_t>(mbuf->buf_addr)) << "devices address it as we do";
    EXPECT_FALSE(mbuf->pool->flags & (RTE_MEMPOOL_F_NON_IO | RTE_MEMPOOL_F_NO_IOVA_CONTIG)) << "devices may use it";
  }
  EXPECT_GE(lines.size(), 48u);
}

TEST(Pool, ByPagesNoPacketLiesAcrossTwo) {
  Pool pool({.small = 64, .large = 1, .giant = 1}, PacketsInMemory::kByPages);
  std::vector<PacketPtr> packets;
  for (unsigned i = 0; i < 64; i++) {
    packets.push_back(pool.allocate(2048));
    const auto first = reinterpret_cast<std::uintptr_t>(packets.back()->mbuf());
    const auto last = reinterpret_cast<std::uintptr_t>(packets.back()->data() + 2047);
    EXPECT_EQ(first / 4096, last / 4096);
  }
}

// Of four packets with the same bytes, let go in every order, and one that gets its own in between.
TEST(Pool, SharedBytesLastAsLongAsOnePacketHasThem) {
  for (const PacketsInMemory how : {PacketsInMemory::kPacked, PacketsInMemory::kByPages}) {
    Pool pool({.small = 8, .large = 6, .giant = 5}, how);
    for (const std::uint32_t bytes : {300u, 9000u, 60000u}) {
      std::array<unsigned, 4> order{0, 1, 2, 3};
      do {
        std::array<PacketPtr, 4> packets{pool.allocate(bytes)};
        std::memset(packets[0]->data(), static_cast<int>(bytes & 0x7F), bytes);
        packets[0]->meta().wire_bytes = bytes + 100;
        EXPECT_FALSE(packets[0]->is_shared());
        for (unsigned i = 1; i < 4; i++) packets[i] = pool.share(*packets[i - 1]);
        for (unsigned gone = 0; gone < 4; gone++) {
          for (const PacketPtr& packet : packets) {
            if (!packet) continue;
            ASSERT_EQ(packet->size(), bytes);
            ASSERT_EQ(packet->wire_bytes(), bytes + 100);
            ASSERT_EQ(packet->data()[0], bytes & 0x7F);
            ASSERT_EQ(packet->data()[bytes - 1], bytes & 0x7F);
            ASSERT_EQ(packet->is_shared(), gone < 3);
          }
          PacketPtr& next = packets[order[gone]];
          if (gone == 1) {  // three have them: this one writes
            Packet own = next.release();
            ASSERT_TRUE(pool.own(own));
            EXPECT_FALSE(own.is_shared());
            std::memset(own.data(), 0xEE, bytes);
            next = PacketPtr(own);
          }
          next = PacketPtr();
        }
        EXPECT_EQ(pool.in_use(), 0u);
      } while (std::ranges::next_permutation(order).found);
    }
    // Who had others' bytes has its own buffer again.
    EXPECT_EQ(capacity(pool, 60000), 5u);
    std::vector<PacketPtr> all;
    while (PacketPtr packet = pool.allocate(64)) {
      const auto* mbuf = reinterpret_cast<const std::uint8_t*>(packet->mbuf());
      EXPECT_EQ(packet->data(), mbuf + sizeof(rte_mbuf) + sizeof(PacketMeta) + RTE_PKTMBUF_HEADROOM);
      EXPECT_GE(rte_pktmbuf_tailroom(packet->mbuf()), 2048u - 64u);
      all.push_back(std::move(packet));
    }
    EXPECT_EQ(all.size(), 19u);
  }
}

TEST(Pool, ATraceIsNoSharer) {
  Pool pool(kTiny);
  PacketPtr packet = pool.allocate(64);
  { const PacketPtr replica = pool.share(*packet); }
  rte_mbuf_refcnt_update(packet->mbuf(), 1);
  packet->meta().watched = 1;
  EXPECT_FALSE(packet->is_shared());
  const PacketPtr replica = pool.share(*packet);
  EXPECT_TRUE(packet->is_shared());
  EXPECT_TRUE(replica->is_shared());
  EXPECT_EQ(replica->meta().watched, 0);
  packet->meta().watched = 0;
  rte_pktmbuf_free(packet->mbuf());
}

TEST(Pool, CopyKeepsBytesAndMetadataAndIsApart) {
  Pool pool(kTiny);
  PacketPtr packet = pool.allocate(300);
  for (std::uint32_t i = 0; i < 300; i++) packet->data()[i] = static_cast<std::uint8_t>(i * 7);
  PacketMeta& meta = packet->meta();
  meta.wire_bytes = 1500;
  meta.arrival = 77;
  meta.identity = 5;
  meta.status = ParseStatus::kNotUdp;
  meta.input = 3;
  meta.traced = 1;
  PacketPtr copy = pool.copy(*packet);
  ASSERT_TRUE(copy);
  EXPECT_EQ(pool.in_use(), 2u);
  EXPECT_TRUE(std::equal(copy->bytes().begin(), copy->bytes().end(), packet->bytes().begin(), packet->bytes().end()));
  EXPECT_EQ(std::memcmp(&copy->meta(), &meta, sizeof meta), 0);
  copy->data()[0] = 0xEE;
  copy->meta().identity = 0;
  EXPECT_EQ(packet->data()[0], 0);
  EXPECT_EQ(meta.identity, 5u);
}

TEST(Pool, CopyOfADryPoolIsEmpty) {
  Pool pool(kTiny);
  std::vector<PacketPtr> packets;
  while (PacketPtr packet = pool.allocate(1)) packets.push_back(std::move(packet));
  EXPECT_EQ(pool.in_use(), 9u);
  EXPECT_FALSE(pool.copy(*packets[0]));
  EXPECT_EQ(pool.in_use(), 9u);
}

TEST(Pool, AllOfALargePoolCanBeHadDespiteTheCache) {
  Pool pool({.small = 1024, .large = 16, .giant = 2});
  EXPECT_EQ(capacity(pool, 1), 1024u + 16 + 2);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(PacketPtr, MovesItsPacketOnceAndFreesItOnce) {
  Pool pool(kTiny);
  PacketPtr a = pool.allocate(10);
  rte_mbuf* mbuf = a->mbuf();
  PacketPtr b(std::move(a));
  EXPECT_FALSE(a);  // NOLINT: that a moved-from owner is empty is the point
  EXPECT_EQ(b->mbuf(), mbuf);
  {
    PacketPtr c = pool.allocate(10);
    c = std::move(b);
    EXPECT_EQ(c->mbuf(), mbuf);
  }
  b = PacketPtr();
  EXPECT_EQ(pool.in_use(), 0u) << "both packets are back";
}

TEST(PacketPtr, AssigningItselfKeepsThePacket) {
  Pool pool(kTiny);
  PacketPtr a = pool.allocate(10);
  PacketPtr& same = a;
  a = std::move(same);
  EXPECT_TRUE(a);
  EXPECT_EQ(pool.in_use(), 1u);
}

TEST(PacketPtr, ReleaseHandsOver) {
  Pool pool(kTiny);
  PacketPtr a = pool.allocate(10);
  Packet packet = a.release();
  EXPECT_FALSE(a);
  EXPECT_FALSE(a.release());
  EXPECT_EQ(pool.in_use(), 1u);
  PacketPtr{packet};
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Packet, TrimCutsBytesAndWireLengthAndNeverGrows) {
  Pool pool(kTiny);
  PacketPtr packet = pool.allocate(100);
  packet->meta().wire_bytes = 1500;
  packet->trim_to(1600);
  EXPECT_EQ(packet->size(), 100u);
  EXPECT_EQ(packet->wire_bytes(), 1500u);
  packet->trim_to(64);
  EXPECT_EQ(packet->size(), 64u);
  EXPECT_EQ(packet->wire_bytes(), 64u);
  EXPECT_EQ(packet->mbuf()->pkt_len, 64u);
  packet->trim_to(80);
  EXPECT_EQ(packet->size(), 64u);
  EXPECT_EQ(packet->wire_bytes(), 64u);
  packet->trim_to(0);
  EXPECT_EQ(packet->size(), 0u);
}

TEST(Packet, HeaderIsNullWhereItDoesNotFit) {
  Pool pool(kTiny);
  struct Four {
    std::uint8_t bytes[4];
  };
  PacketPtr packet = pool.allocate(10);
  EXPECT_NE(packet->header<Four>(0), nullptr);
  EXPECT_NE(packet->header<Four>(6), nullptr);
  EXPECT_EQ(packet->header<Four>(7), nullptr);
  EXPECT_EQ(packet->header<Four>(10), nullptr);
  EXPECT_EQ(packet->header<Four>(0xFFFFFFFF), nullptr);
}

TEST(Pool, TooLargeIsAConfigErrorThatLeavesNothingBehind) {
  EXPECT_THROW(Pool({.small = 1u << 24, .large = 16, .giant = 2}), ConfigError);
  Pool pool(kTiny);
  EXPECT_EQ(capacity(pool, 1), 9u);
}

}  // namespace
}  // namespace rocebox
