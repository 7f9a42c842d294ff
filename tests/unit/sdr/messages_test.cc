// SPDX-License-Identifier: BSD-3-Clause
// Immediates and bitmaps against an oracle that knows messages by their numbers and packets as sets.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/sdr/messages/message_table.h"

namespace rocebox::sdr_messages_test {
namespace {

using sdr::Arrival, sdr::Completion, sdr::Immediate, sdr::ImmediateLayout, sdr::MessageTable, sdr::MessageTableOptions,
    sdr::MessageWrites;

TEST(SdrImmediate, TheSplitOfThePaperIsBitByBit) {
  const ImmediateLayout layout;
  EXPECT_TRUE(layout.valid());
  EXPECT_EQ(layout.messages(), 1024u);
  EXPECT_EQ(std::uint64_t{layout.packets_max()} * 4096, 1ull << 30);  // "1 GiB message size with a 4 KiB MTU"
  EXPECT_EQ(layout.pack({0x3FF, 0, 0}), 0xFFC00000u);
  EXPECT_EQ(layout.pack({0, 0x3FFFF, 0}), 0x003FFFF0u);
  EXPECT_EQ(layout.pack({1, 2, 3}), 1u << 22 | 2u << 4 | 3u);
  for (const auto& [a, b, c, valid] : {std::tuple(8u, 22u, 2u, true),
                                       {10u, 22u, 0u, true},
                                       {10u, 19u, 3u, false},
                                       {10u, 18u, 5u, false},
                                       {0u, 28u, 4u, false},
                                       {16u, 8u, 8u, true}})
    EXPECT_EQ((ImmediateLayout{a, b, c}.valid()), valid) << a << ' ' << b << ' ' << c;
}

TEST(SdrImmediate, UnpackingGivesBackWhatWasPacked) {
  std::mt19937 random(1);
  for (unsigned fragment = 0; fragment <= 16; fragment = fragment ? fragment * 2 : 1)
    for (unsigned message = 1; message < 31 - fragment; message++) {
      const ImmediateLayout layout{message, 32 - message - fragment, fragment};
      ASSERT_TRUE(layout.valid());
      const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random()) % bound; };
      const Immediate parts{below(layout.messages()), below(layout.packets_max()), below(1u << fragment)};
      const Immediate back = layout.unpack(layout.pack(parts));
      EXPECT_EQ(back.message, parts.message);
      EXPECT_EQ(back.offset, parts.offset);
      EXPECT_EQ(back.fragment, parts.fragment);
    }
}

TEST(SdrImmediate, WritesCoverTheMessageAndCarryEveryFragment) {
  const std::uint32_t user = 0xDEADBEEF;
  for (const ImmediateLayout layout : {ImmediateLayout{}, ImmediateLayout{8, 22, 2}, ImmediateLayout{10, 22, 0}})
    for (const std::uint64_t bytes : {1ull, 4096ull, 4097ull, 50'000ull}) {
      const MessageWrites plain(layout, 4096, 5, bytes, nullptr), with(layout, 4096, 5, bytes, &user);
      EXPECT_EQ(plain.count(), (bytes + 4095) / 4096);
      std::uint64_t covered = 0;
      std::vector<std::uint32_t> bits(32, 2);
      for (std::uint32_t i = 0; i < with.count(); i++) {
        const auto write = with.write(i);
        EXPECT_EQ(write.offset, write.bytes ? covered : 0);
        covered += write.bytes;
        const Immediate parts = layout.unpack(write.immediate);
        EXPECT_EQ(parts.message, 5u);
        EXPECT_EQ(parts.offset, i);
        for (unsigned bit = 0; bit < layout.fragment_bits; bit++)
          bits[i % layout.fragments() * layout.fragment_bits + bit] = parts.fragment >> bit & 1;
      }
      EXPECT_EQ(covered, bytes);
      for (unsigned bit = 0; bit < 32 && layout.fragment_bits; bit++) EXPECT_EQ(bits[bit], user >> bit & 1) << bit;
    }
}

TEST(SdrMessages, FigureFourIsAFourPacketMessageOfTwoChunks) {
  MessageTable table({{}, 4, 4, 2, 4});
  std::uint8_t chunks[2] = {9, 9};
  ASSERT_TRUE(table.post(0, 4, chunks));
  const auto packet = [&](std::uint32_t offset) {
    return table.arrive({ImmediateLayout{}.pack({0, offset, 0}), 4096, 0});
  };
  EXPECT_EQ(packet(0), Arrival::kPacket);
  EXPECT_EQ(chunks[0], 0);
  EXPECT_EQ(packet(1), Arrival::kChunk);
  EXPECT_EQ(chunks[0], 1);
  EXPECT_EQ(packet(3), Arrival::kPacket);
  EXPECT_EQ(packet(3), Arrival::kDuplicate);
  EXPECT_EQ(chunks[1], 0);
  EXPECT_EQ(packet(2), Arrival::kMessage);
  EXPECT_EQ(chunks[1], 1);
  EXPECT_EQ(packet(4), Arrival::kOutside);
  EXPECT_FALSE(table.post(4, 1, chunks));  // the slot is taken
  EXPECT_TRUE(table.complete(0));
  EXPECT_FALSE(table.complete(0));
  EXPECT_EQ(packet(0), Arrival::kNoMessage);
  EXPECT_FALSE(table.post(4, 5, chunks));
  EXPECT_FALSE(table.post(4, 0, chunks));
}

struct Sent {
  std::uint64_t number;
  Completion completion;
};
struct Posted {
  std::uint32_t packets, user;
  std::set<std::uint32_t> here, fragments;
  std::vector<std::uint8_t> chunks;
};

// Messages are posted, completed early and posted again over the same IDs, while packets come in any order, twice, or
// up to as many rounds of IDs late as there are generations. The oracle goes by a message's number, which no packet
// carries.
void wrap_around(const MessageTableOptions& options, unsigned seed) {
  std::mt19937_64 random(seed);
  MessageTable table(options);
  std::map<std::uint64_t, Posted> posted;
  std::vector<Sent> flying;
  std::uint64_t next = 0;
  std::uint64_t late = 0;
  for (unsigned step = 0; step < 3000; step++) {
    if (posted.size() < options.messages && random() % 8 == 0 && !posted.contains(next - options.messages)) {
      Posted& one = posted[next];
      one.packets = static_cast<std::uint32_t>(1 + random() % options.packets_max);
      one.user = static_cast<std::uint32_t>(random());
      one.chunks.assign(table.chunks_of(one.packets) + 1, 7);
      ASSERT_TRUE(table.post(next, one.packets, one.chunks.data()));
      const MessageWrites writes(options.layout, 64, table.slot_of(next), one.packets * 64ull, &one.user);
      for (std::uint32_t i = 0; i < writes.count(); i++) {
        const auto write = writes.write(i);
        for (unsigned copy = 0; copy < 1 + (random() % 8 == 0); copy++)
          flying.push_back({next, {write.immediate, write.bytes, table.generation_of(next)}});
      }
      next++;
    }
    if (!posted.empty() && random() % 24 == 0) {
      ASSERT_TRUE(table.complete(posted.begin()->first));
      posted.erase(posted.begin());
    }
    for (unsigned burst = 0; burst < 1 + options.packets_max / 40 && !flying.empty(); burst++) {
      std::swap(flying[random() % flying.size()], flying.back());
      const Sent sent = flying.back();
      flying.pop_back();
      if (sent.number + options.messages * options.generations < next) continue;  // as long as protection lasts
      const Arrival came = table.arrive(sent.completion);
      const auto found = posted.find(sent.number);
      if (found == posted.end()) {
        late++;
        ASSERT_TRUE(came == Arrival::kNoMessage || came == Arrival::kLateGeneration);
        continue;
      }
      const Immediate parts = options.layout.unpack(sent.completion.immediate);
      Posted& one = found->second;
      if (options.layout.fragments()) one.fragments.insert(parts.offset % options.layout.fragments());
      if (sent.completion.bytes == 0) {
        ASSERT_EQ(came, Arrival::kFragment);
      } else {
        ASSERT_EQ(came == Arrival::kDuplicate, !one.here.insert(parts.offset).second);
        ASSERT_EQ(came == Arrival::kMessage, came != Arrival::kDuplicate && one.here.size() == one.packets);
      }
    }
    for (auto& [number, one] : posted) {
      const std::uint32_t packet = static_cast<std::uint32_t>(random() % one.packets);
      ASSERT_EQ(table.has_packet(number, packet), one.here.contains(packet));
      for (std::uint32_t chunk = 0; chunk + 1 < one.chunks.size(); chunk++) {
        bool whole = true;
        for (std::uint32_t i = chunk * options.packets_a_chunk;
             i < std::min(one.packets, (chunk + 1) * options.packets_a_chunk); i++)
          whole = whole && one.here.contains(i);
        ASSERT_EQ(one.chunks[chunk], whole ? 1 : 0) << number << ' ' << chunk;
      }
      ASSERT_EQ(one.chunks.back(), 7);  // nobody writes behind them
      std::uint32_t value = 0;
      const bool ready = options.layout.fragments() && one.fragments.size() == options.layout.fragments();
      ASSERT_EQ(table.user_immediate(number, value), ready);
      ASSERT_EQ(value, ready ? one.user : 0);
    }
  }
  EXPECT_GT(next, 3u * options.messages);
  EXPECT_GT(late, 0u);
}

TEST(SdrMessages, TheBitmapIsWhatWasPlacedOverWraparoundOfIds) {
  wrap_around({{}, 4, 20, 1, 4}, 1);
  wrap_around({{}, 8, 100, 16, 4}, 2);
  wrap_around({{8, 22, 2}, 3, 70, 64, 2}, 3);
  wrap_around({{10, 22, 0}, 4, 400, 128, 4}, 4);
  wrap_around({{3, 21, 8}, 8, 300, 256, 8}, 5);
}

// Forged immediates touch nothing that is not theirs.
TEST(SdrMessages, AnyImmediateIsJudged) {
  std::mt19937_64 random(9);
  MessageTable table({{}, 16, 64, 4, 4});
  std::vector<std::uint8_t> chunks(17, 0);
  ASSERT_TRUE(table.post(3, 64, chunks.data()));
  for (unsigned i = 0; i < 100'000; i++) {
    const Completion forged{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random() % 3),
                            static_cast<std::uint32_t>(random() % 6)};
    const Immediate parts = ImmediateLayout{}.unpack(forged.immediate);
    const Arrival came = table.arrive(forged);
    const bool ours = parts.message == 3 && forged.generation == 0;
    ASSERT_EQ(!ours, came == Arrival::kNoMessage || came == Arrival::kLateGeneration);
    if (ours && forged.bytes) {
      ASSERT_EQ(came == Arrival::kOutside, parts.offset >= 64);
    }
  }
  EXPECT_EQ(chunks[16], 0);
}

}  // namespace
}  // namespace rocebox::sdr_messages_test
