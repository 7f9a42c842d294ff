// SPDX-License-Identifier: BSD-3-Clause
// Keys of every kind: who may do what, and where bytes go.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "nic_model/memory/memory.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct MemoryTest : testing::Test {
  Memory memory;
  std::uint32_t domain = memory.new_domain();
  std::array<std::uint8_t, 256> bytes{};
  std::uint64_t address = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::uint32_t key = memory.add(domain, bytes.data(), bytes.size(), kAll | IBV_ACCESS_MW_BIND);
};

// As ibv_reg_mr: EINVAL without the local right to write.
TEST_F(MemoryTest, PeersWriteOnlyWhatTheHostMayWrite) {
  const std::size_t before = memory.regions();
  for (const std::uint32_t access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC})
    for (const std::uint32_t local : {0u, std::uint32_t{IBV_ACCESS_LOCAL_WRITE}}) {
      EXPECT_EQ(memory.add(domain, bytes.data(), bytes.size(), access | local) != 0, local != 0);
      EXPECT_EQ(memory.add_without_bytes(domain, 0, bytes.size(), access | local) != 0, local != 0);
      EXPECT_EQ(memory.add_indirect(domain, 0, {}, access | local) != 0, local != 0);
      EXPECT_EQ(memory.add_table(domain, 1, 64, access | local) != 0, local != 0);
    }
  EXPECT_EQ(memory.regions() - before, 8u);
  EXPECT_NE(memory.add(domain, bytes.data(), bytes.size(), IBV_ACCESS_REMOTE_READ), 0u);
}

TEST_F(MemoryTest, RegionsAreCheckedByDomainBoundsAndRights) {
  const Accessor own{domain}, other{memory.new_domain()};
  EXPECT_EQ(memory.check(key, own, address, 256, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
  EXPECT_EQ(memory.check(key, own, address + 1, 256, 0), MemoryError::kOutOfBounds);
  EXPECT_EQ(memory.check(key, own, address - 1, 1, 0), MemoryError::kOutOfBounds);
  EXPECT_EQ(memory.check(key, own, address, UINT64_MAX, 0), MemoryError::kOutOfBounds);
  EXPECT_EQ(memory.check(key, own, address, 8, IBV_ACCESS_REMOTE_ATOMIC), MemoryError::kNoRight);
  EXPECT_EQ(memory.check(key, other, address, 8, 0), MemoryError::kWrongDomain);
  EXPECT_EQ(memory.check(key ^ 1, own, address, 8, 0), MemoryError::kNoKey);
  EXPECT_TRUE(memory.remove(key));
  EXPECT_EQ(memory.check(key, own, address, 8, 0), MemoryError::kNoKey);
}

TEST_F(MemoryTest, MappingsLieWhereNoOtherWas) {
  Memory other;
  const std::uint32_t others = other.new_domain();
  std::vector<std::uint8_t> elsewhere(5000);
  std::uint64_t end = 0;
  for (const std::uint64_t count : {1, 256, 4096, 4097, 5000}) {
    const Mapping mapping = memory.map(domain, elsewhere.data(), count, kAll);
    EXPECT_EQ(mapping.address, other.map(others, bytes.data(), count, kAll).address) << "wherever its bytes are";
    EXPECT_EQ(mapping.address % 4096, 0);
    EXPECT_GE(mapping.address, end + 4096) << "so that one too far meets nothing";
    end = mapping.address + count;
    EXPECT_EQ(memory.check(mapping.key, {domain}, mapping.address, count, 0), MemoryError::kNone);
    EXPECT_EQ(memory.check(mapping.key, {domain}, mapping.address, count + 1, 0), MemoryError::kOutOfBounds);
    EXPECT_EQ(memory.check(mapping.key, {domain}, mapping.address - 1, 1, 0), MemoryError::kOutOfBounds);
    const std::uint8_t byte = 9;
    memory.write(mapping.key, mapping.address + count - 1, 1, &byte);
    EXPECT_EQ(elsewhere[count - 1], 9);
    memory.remove(mapping.key);
  }
}

TEST_F(MemoryTest, TablesHavePiecesOfOneStride) {
  const std::uint32_t table = memory.add_table(domain, 4, 100, kAll), nothing = memory.add_null(domain);
  EXPECT_EQ(memory.check(table, {domain}, 0, 1, IBV_ACCESS_REMOTE_WRITE), MemoryError::kOutOfBounds);  // empty
  EXPECT_TRUE(memory.set_entry(table, 0, {key, address + 10, 50}));
  EXPECT_TRUE(memory.set_entry(table, 1, {key, address + 100, 100}));
  EXPECT_TRUE(memory.set_entry(table, 2, {nothing, 0, 100}));
  EXPECT_TRUE(memory.set_entry(table, 3, {key, address + 200, 56}));
  EXPECT_FALSE(memory.set_entry(table, 4, {key, address, 1}));
  EXPECT_FALSE(memory.set_entry(table, 0, {key, address, 101}));
  EXPECT_FALSE(memory.set_entry(key, 0, {key, address, 1}));
  const auto check = [&](std::uint64_t at, std::uint64_t count) {
    return memory.check(table, {domain}, at, count, IBV_ACCESS_REMOTE_WRITE);
  };
  EXPECT_EQ(check(0, 50), MemoryError::kNone);
  EXPECT_EQ(check(0, 51), MemoryError::kOutOfBounds);  // behind the piece, before the next one
  EXPECT_EQ(check(60, 1), MemoryError::kOutOfBounds);
  EXPECT_EQ(check(150, 150), MemoryError::kNone);
  EXPECT_EQ(check(300, 57), MemoryError::kOutOfBounds);
  EXPECT_EQ(check(399, 2), MemoryError::kOutOfBounds);
  EXPECT_EQ(check(UINT64_MAX, 1), MemoryError::kOutOfBounds);
  const std::vector<std::uint8_t> written(150, 7);
  memory.write(table, 150, 150, written.data());  // half of it into the second, the rest into nothing
  for (std::size_t i = 0; i < bytes.size(); i++) EXPECT_EQ(bytes[i], i >= 150 && i < 200 ? 7 : 0) << i;
  memory.remove(key);
  EXPECT_EQ(check(0, 1), MemoryError::kNoKey);
  EXPECT_EQ(memory.add_table(domain, 4, UINT64_MAX / 2, kAll), 0u);
}

TEST_F(MemoryTest, IndirectKeysJoinPieces) {
  const std::uint32_t joined =
      memory.add_indirect(domain, 0x1000, {{key, address + 200, 10}, {key, address + 20, 30}}, kAll);
  const std::vector<std::uint8_t> written = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(memory.check(joined, {domain}, 0x1000 + 7, 6, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
  EXPECT_EQ(memory.check(joined, {domain}, 0x1000 + 35, 6, 0), MemoryError::kOutOfBounds);
  memory.write(joined, 0x1000 + 7, 6, written.data());
  EXPECT_EQ((std::vector<std::uint8_t>{bytes[207], bytes[208], bytes[209], bytes[20], bytes[21], bytes[22]}), written);
  std::vector<std::uint8_t> back(6);
  memory.read(joined, 0x1000 + 7, 6, back.data());
  EXPECT_EQ(back, written);
}

TEST_F(MemoryTest, TheNullKeyTakesAllAndReadsAsZeros) {
  const std::uint32_t null = memory.add_null(domain);
  std::array<std::uint8_t, 4> some = {1, 2, 3, 4};
  EXPECT_EQ(memory.check(null, {domain}, 12345, 4, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
  memory.write(null, 12345, 4, some.data());
  memory.read(null, 12345, 4, some.data());
  EXPECT_EQ(some, (std::array<std::uint8_t, 4>{}));
}

TEST_F(MemoryTest, AWindowIsForItsQueuePairUntilItIsInvalidated) {
  const Accessor owner{domain, 17}, stranger{domain, 18};
  MemoryError error;
  const std::uint32_t unbound = memory.add_window(domain);
  EXPECT_EQ(memory.check(unbound, owner, address, 0, 0), MemoryError::kNoKey);
  const std::uint32_t window = memory.bind(unbound, 0x42, key, address + 10, 20, IBV_ACCESS_REMOTE_WRITE, owner, error);
  ASSERT_EQ(error, MemoryError::kNone);
  EXPECT_EQ(window & 0xFF, 0x42u);
  EXPECT_EQ(memory.check(window, owner, address + 10, 20, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
  EXPECT_EQ(memory.check(window, owner, address + 10, 20, IBV_ACCESS_REMOTE_READ), MemoryError::kNoRight);
  EXPECT_EQ(memory.check(window, owner, address + 9, 1, 0), MemoryError::kOutOfBounds);
  EXPECT_EQ(memory.check(window, stranger, address + 10, 1, 0), MemoryError::kNoKey);
  EXPECT_FALSE(memory.invalidate(window, stranger));
  EXPECT_TRUE(memory.invalidate(window, owner));
  EXPECT_EQ(memory.check(window, owner, address + 10, 1, 0), MemoryError::kNoKey);
}

// In whichever order they were bound, ended and removed before.
TEST_F(MemoryTest, AQueuePairsWindowsEndTogether) {
  const std::uint32_t other = memory.new_domain();
  const Accessor owner{domain, 17}, stranger{domain, 18};
  MemoryError error;
  std::vector<std::uint32_t> windows;
  for (unsigned i = 0; i < 12; i++) {
    const Accessor& by = i % 3 ? owner : stranger;
    windows.push_back(memory.bind(memory.add_window(domain), 1, key, address, 20, IBV_ACCESS_REMOTE_WRITE, by, error));
    ASSERT_EQ(error, MemoryError::kNone);
  }
  EXPECT_TRUE(memory.remove(windows[1]));
  EXPECT_TRUE(memory.invalidate(windows[11], owner));
  EXPECT_TRUE(memory.remove(windows[11]));
  EXPECT_TRUE(memory.invalidate(windows[2], owner));
  memory.unbind_all({other, 17});
  EXPECT_EQ(memory.check(windows[4], owner, address, 1, 0), MemoryError::kNone) << "another domain's";
  const std::uint32_t before = memory.revocations();
  memory.unbind_all(owner);
  EXPECT_NE(memory.revocations(), before) << "who goes on with one looks again";
  for (const unsigned i : {0u, 3u, 6u, 9u})
    EXPECT_EQ(memory.check(windows[i], stranger, address, 1, 0), MemoryError::kNone) << i;
  for (const unsigned i : {2u, 4u, 5u, 7u, 8u, 10u}) {
    EXPECT_EQ(memory.check(windows[i], owner, address, 1, 0), MemoryError::kNoKey) << i;
    EXPECT_NE(memory.bind(windows[i], 2, key, address, 20, IBV_ACCESS_REMOTE_WRITE, stranger, error), 0u) << i;
  }
}

// Those who use it count from its first byte, which lies in the midst of a region, of pieces, or of no bytes.
TEST_F(MemoryTest, AWindowMayBeginAtZero) {
  constexpr std::uint32_t kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
  constexpr std::uint32_t kAccess =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  const Accessor owner{domain, 17};
  const auto bind = [&](std::uint32_t region, std::uint64_t from) {
    MemoryError error;
    const std::uint32_t window = memory.bind(memory.add_window(domain), 1, region, from, 64, kAccess, owner, error);
    EXPECT_EQ(error, MemoryError::kNone);
    EXPECT_EQ(memory.check(window, owner, 0, 64, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
    EXPECT_EQ(memory.check(window, owner, 1, 64, IBV_ACCESS_REMOTE_WRITE), MemoryError::kOutOfBounds);
    EXPECT_EQ(memory.check(window, owner, from, 1, 0), MemoryError::kOutOfBounds);
    return window;
  };
  const std::array<std::uint8_t, 4> some = {1, 2, 3, 4};
  std::array<std::uint8_t, 4> back = {};
  const std::uint32_t direct = memory.add(domain, bytes.data(), bytes.size(), kRights);
  const std::uint32_t window = bind(direct, address + 100);
  memory.write(window, 8, 4, some.data());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), bytes.begin() + 108));
  memory.read(window, 8, 4, back.data());
  EXPECT_EQ(back, some);
  EXPECT_TRUE(memory.in_one_piece(window, 56, 8));
  EXPECT_EQ(memory.eight_bytes(window, 56), bytes.data() + 156);
  const std::uint32_t joined =
      memory.add_indirect(domain, 5000, {{direct, address + 200, 32}, {direct, address, 64}}, kRights);
  const std::uint32_t of_pieces = bind(joined, 5024);
  memory.write(of_pieces, 6, 4, some.data());
  EXPECT_TRUE(std::equal(some.begin(), some.begin() + 2, bytes.begin() + 230));
  EXPECT_TRUE(std::equal(some.begin() + 2, some.end(), bytes.begin()));
  EXPECT_FALSE(memory.in_one_piece(of_pieces, 4, 8));
  EXPECT_EQ(memory.eight_bytes(of_pieces, 16), bytes.data() + 8);
  const std::uint32_t placed = memory.add_without_bytes(domain, 7000, 4096, kRights);
  memory.write(bind(placed, 7100), 10, 4, nullptr);
  EXPECT_TRUE(memory.find(placed)->placed->covers(110, 4));
  EXPECT_EQ(memory.find(placed)->placed->bytes_covered(), 4u);
}

// Whoever changes memory must be able to write it, and an atomic is one write.
TEST_F(MemoryTest, AtomicsNeedTheRightToWriteInOnePiece) {
  constexpr std::uint32_t kAtomic = IBV_ACCESS_REMOTE_ATOMIC;
  const std::uint32_t readable = memory.add(domain, bytes.data(), bytes.size(), IBV_ACCESS_MW_BIND);
  const std::uint32_t writable =
      memory.add(domain, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  const Accessor owner{domain, 17};
  for (const bool can_write : {false, true}) {
    const std::uint32_t of = can_write ? writable : readable;
    const MemoryError said = can_write ? MemoryError::kNone : MemoryError::kNoRight;
    MemoryError error;
    const std::uint32_t window = memory.bind(memory.add_window(domain), 1, of, address, 64, kAtomic, owner, error);
    EXPECT_EQ(error, said);
    EXPECT_EQ(window != 0, can_write);
    const std::uint32_t joined =
        memory.add_indirect(domain, 0, {{of, address, 12}, {of, address + 100, 52}}, IBV_ACCESS_LOCAL_WRITE | kAtomic);
    EXPECT_EQ(memory.check(joined, owner, 0, 8, kAtomic), said);
    EXPECT_TRUE(memory.in_one_piece(joined, 0, 8));
    EXPECT_FALSE(memory.in_one_piece(joined, 8, 8));
    EXPECT_TRUE(memory.in_one_piece(joined, 16, 8));
    if (!can_write) continue;
    EXPECT_TRUE(memory.in_one_piece(window, address + 56, 8));
    EXPECT_EQ(memory.eight_bytes(window, address + 56), bytes.data() + 56);
    EXPECT_EQ(memory.eight_bytes(joined, 16), bytes.data() + 104);
    EXPECT_EQ(memory.eight_bytes(joined, 8), nullptr);
  }
}

TEST_F(MemoryTest, MemoryWithoutBytesKnowsWhatWasWritten) {
  const std::uint32_t none = memory.add_without_bytes(domain, 0, 1000, kAll);
  for (const std::uint64_t at : {0, 100, 300, 200, 100}) memory.write(none, at, 100, nullptr);
  const Extents& placed = *memory.find(none)->placed;
  EXPECT_TRUE(placed.covers(0, 400));
  EXPECT_FALSE(placed.covers(399, 2));
  EXPECT_EQ(placed.ranges(), 1u);
  EXPECT_EQ(placed.bytes_covered(), 400u);
  EXPECT_EQ(placed.bytes_written(), 500u);
}

// Against one mark a byte: ranges that grow, meet, lie in others and over them.
TEST(Extents, AreTheBytesThatWereWritten) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 200; round++) {
    Extents extents;
    std::array<bool, 160> marks{};
    std::uint64_t written = 0, next = 0;
    for (unsigned i = 0; i < 60; i++) {
      const std::uint64_t bytes = random() % 12, offset = random() % 2 ? next : random() % 148;
      if (offset + bytes > marks.size()) continue;
      next = offset + bytes;
      extents.add(offset, bytes);
      written += bytes;
      std::fill_n(marks.begin() + static_cast<std::ptrdiff_t>(offset), bytes, true);
      std::size_t covered = 0, ranges = 0;
      for (std::size_t at = 0; at < marks.size(); at++) {
        covered += marks[at];
        ranges += marks[at] && (at == 0 || !marks[at - 1]);
        ASSERT_EQ(extents.covers(at, 1), marks[at]) << round << ": " << at;
      }
      ASSERT_EQ(extents.bytes_covered(), covered);
      const std::size_t begin = random() % marks.size(), end = begin + random() % (marks.size() - begin + 1);
      ASSERT_EQ(extents.bytes_covered(begin, end - begin),
                static_cast<std::uint64_t>(std::count(marks.begin() + static_cast<std::ptrdiff_t>(begin),
                                                      marks.begin() + static_cast<std::ptrdiff_t>(end), true)));
      ASSERT_EQ(extents.bytes_written(), written);
      ASSERT_EQ(extents.ranges(), ranges);
    }
  }
}

}  // namespace
}  // namespace rocebox::nic_model
