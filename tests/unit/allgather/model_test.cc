// SPDX-License-Identifier: BSD-3-Clause
// The parts of the multicast collectives without a network: immediates, cutting, bitmap, staging, sequencer, barrier.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/allgather/model/barrier.h"
#include "kernels/allgather/model/immediate.h"
#include "kernels/allgather/model/reassembly.h"
#include "kernels/allgather/model/sequencer.h"
#include "kernels/allgather/model/staging.h"

namespace rocebox::allgather {
namespace {

// 32 bits at a time.
struct Draw {
  explicit Draw(unsigned seed) : engine(seed) {}
  unsigned operator()() { return static_cast<unsigned>(engine()); }
  std::mt19937 engine;
};

TEST(AllgatherImmediate, BitsAreDividedFromTheLowestOn) {
  constexpr ImmediateLayout layout{20, 5, 7};
  static_assert(layout.is_valid());
  EXPECT_EQ(layout.encode({0xABCDE, 0x15, 0x6A}), 0xD55ABCDEu) << "1101010 10101 and 20 bits";
  EXPECT_EQ(layout.decode(0xD55ABCDE), (ChunkName{0xABCDE, 0x15, 0x6A}));
  EXPECT_FALSE((ImmediateLayout{20, 5, 6}).is_valid());
  EXPECT_FALSE((ImmediateLayout{0, 16, 16}).is_valid());
  constexpr ImmediateLayout all{32, 0, 0};
  static_assert(all.is_valid());
  EXPECT_EQ(all.decode(0xFFFFFFFF), (ChunkName{0xFFFFFFFF, 0, 0}));
  EXPECT_EQ(all.encode({0x80000001, 0, 0}), 0x80000001u);
  Draw random(1);
  for (int i = 0; i < 2000; i++) {
    const unsigned chunk = 1 + random() % 32, collective = random() % (33 - chunk) % 17;
    const ImmediateLayout one{chunk, collective, 32 - chunk - collective};
    if (!one.is_valid()) continue;
    const std::uint32_t immediate = random();
    EXPECT_EQ(one.encode(one.decode(immediate)), immediate);
    EXPECT_LT(one.decode(immediate).chunk, one.chunks_max());
    EXPECT_LT(one.decode(immediate).collective, one.collectives());
  }
}

TEST(AllgatherImmediate, Figure7) {
  // A bitmap of 64 KiB has 2^19 bits: 2 GiB of 4 KiB chunks, where the paper says 16 GB.
  EXPECT_EQ(receive_bytes_of(64 << 10, 4096), std::uint64_t{2} << 30);
  EXPECT_EQ(limits_of(19, 4096).bitmap_bytes, 64u << 10);
  EXPECT_EQ(limits_of(19, 4096).receive_bytes, std::uint64_t{2} << 30);
  // The DPA's cache of 1.5 MB: about 50 GB.
  EXPECT_NEAR(static_cast<double>(receive_bytes_of(1'500'000, 4096)), 50e9, 1e9);
  EXPECT_EQ(limits_of(32, 4096).receive_bytes, std::uint64_t{16} << 40);
  EXPECT_EQ(limits_of(1, 64).bitmap_bytes, 1u);
}

TEST(AllgatherGeometry, CutsEveryByteOnce) {
  Draw random(2);
  for (int run = 0; run < 300; run++) {
    const unsigned blocks = 1 + random() % 9, subgroups = 1 + random() % 7;
    const std::uint64_t block_bytes = 1 + random() % 5000;
    const std::uint32_t chunk_bytes = 1 + random() % 600;
    const Geometry g(blocks, block_bytes, chunk_bytes, subgroups);
    std::vector<int> times(g.bytes());
    std::set<std::uint32_t> chunks;
    for (unsigned s = 0; s < subgroups; s++)
      for (unsigned b = 0; b < blocks; b++)
        for (std::uint32_t i = g.first_of(s); i < g.end_of(s); i++) {
          EXPECT_TRUE(chunks.insert(g.chunk_of(b, i)).second);
          EXPECT_EQ(g.block_of(g.chunk_of(b, i)), b);
          EXPECT_LE(g.bytes_of(i), chunk_bytes);
          for (std::uint64_t at = 0; at < g.bytes_of(i); at++) times[g.offset_of(b, i) + at]++;
        }
    EXPECT_EQ(chunks.size(), g.chunks());
    EXPECT_EQ(*chunks.rbegin(), g.chunks() - 1);
    for (const int one : times) ASSERT_EQ(one, 1);
  }
}

// Against sets of chunks.
TEST(AllgatherReassembly, AgreesWithSets) {
  Draw random(3);
  for (int run = 0; run < 200; run++) {
    const Geometry g(1 + random() % 6, 1 + random() % 3000, 1 + random() % 40, 1 + random() % 5);
    Reassembly r(g);
    std::map<unsigned, std::set<std::uint32_t>> come, landed;
    const auto subgroup_of = [&](std::uint32_t index) {
      unsigned s = 0;
      while (index >= g.end_of(s)) s++;
      return s;
    };
    for (unsigned step = 0; step < 400; step++) {
      const auto chunk = static_cast<std::uint32_t>(random() % (g.chunks() + 3));
      std::uint32_t block = 0, index = 0;
      if (random() % 4) {
        const unsigned subgroup = random() % 8 ? (chunk < g.chunks() ? subgroup_of(chunk % g.chunks_per_block()) : 0)
                                               : random() % g.subgroups();
        const Arrival arrival = r.take(subgroup, chunk, block, index);
        if (chunk >= g.chunks()) {
          EXPECT_EQ(arrival, Arrival::kOutOfRange);
        } else if (subgroup != subgroup_of(chunk % g.chunks_per_block())) {
          EXPECT_EQ(arrival, Arrival::kOtherSubgroup);
        } else {
          const bool is_new = come[chunk / g.chunks_per_block()].insert(chunk % g.chunks_per_block()).second;
          EXPECT_EQ(arrival, is_new ? Arrival::kNew : Arrival::kDuplicate);
          if (is_new) {
            landed[block].insert(index);
            EXPECT_EQ(r.land(block), landed[block].size() == g.chunks_per_block());
          }
        }
      } else if (chunk < g.chunks()) {
        block = g.block_of(chunk), index = chunk - block * g.chunks_per_block();
        const auto count = static_cast<std::uint32_t>(1 + random() % (g.chunks_per_block() - index));
        const bool before = landed[block].size() == g.chunks_per_block();
        for (std::uint32_t i = 0; i < count; i++) come[block].insert(index + i), landed[block].insert(index + i);
        EXPECT_EQ(r.fill(block, index, count), !before && landed[block].size() == g.chunks_per_block());
      }
      const auto asked = static_cast<unsigned>(random() % g.blocks());
      std::set<std::uint32_t> missing;
      std::uint32_t last_end = 0;
      r.each_missing(asked, [&](std::uint32_t first, std::uint32_t count) {
        EXPECT_TRUE(missing.empty() || first > last_end) << "runs are as long as they can be";
        last_end = first + count;
        for (std::uint32_t i = 0; i < count; i++) missing.insert(first + i);
      });
      EXPECT_EQ(missing.size() + come[asked].size(), g.chunks_per_block());
      for (const std::uint32_t one : come[asked]) EXPECT_FALSE(missing.contains(one));
      EXPECT_EQ(r.is_whole(asked), landed[asked].size() == g.chunks_per_block());
    }
  }
}

TEST(AllgatherStaging, IsBounded) {
  EXPECT_EQ(StagingRing(4 << 20, 4096).slots(), 1014u) << "4 MiB, the default";
  EXPECT_EQ(StagingRing(std::uint64_t{1} << 40, 4096).slots(), 8192u);
  EXPECT_EQ(StagingRing(1, 4096).slots(), 1u);
  StagingRing ring(4 * 104, 64);
  ASSERT_EQ(ring.slots(), 4u);
  for (unsigned i = 0; i < 4; i++) ring.post(i);
  EXPECT_EQ(ring.posted(), 4u);
  ring.take(2);
  EXPECT_EQ(ring.state(2), StagingRing::Slot::kCopying);
  EXPECT_EQ(ring.posted_least(), 3u);
  ring.release(2);
  EXPECT_EQ(ring.free(), 1u);
  ring.post(2);
  EXPECT_EQ(ring.copying(), 0u);
  EXPECT_EQ(ring.offset_of(3), 312u);
}

TEST(AllgatherSequencer, GroupsAreAppendixAs) {
  for (unsigned ranks = 2; ranks <= 40; ranks++)
    for (unsigned chains = 1; chains <= ranks; chains++) {
      const Sequencer s(ranks, chains);
      if (ranks % chains == 0) {
        EXPECT_EQ(s.steps(), ranks / chains);
        EXPECT_EQ(s.chains(), chains);
        // G_i = {P_i, P_(R+i), ..., P_((M-1)R+i)}
        for (unsigned step = 0; step < s.steps(); step++)
          for (unsigned j = 0; j < chains; j++) EXPECT_EQ(s.step_of(j * (ranks / chains) + step), step);
      }
      EXPECT_LE(s.chains(), chains);
      // Activations reach everybody once, in order.
      std::vector<unsigned> times(ranks);
      for (unsigned rank = 0; rank < ranks; rank++) {
        if (s.is_first(rank)) times[rank]++;
        if (const auto next = s.next(rank)) {
          times[*next]++;
          EXPECT_EQ(s.chain_of(*next), s.chain_of(rank));
          EXPECT_EQ(s.step_of(*next), s.step_of(rank) + 1);
        }
      }
      for (const unsigned one : times) EXPECT_EQ(one, 1u);
    }
  EXPECT_EQ(Sequencer(10, 4).steps(), 3u) << "the last chain has one rank";
  EXPECT_EQ(cutoff_nanos(12 << 20, 100'000'000'000, 50), 1'006'633 + 50) << "1006632.96 ns";
  EXPECT_EQ(cutoff_nanos(1 << 20, 0, 50), 50);
}

// Nobody leaves before all have come, whatever the order of messages.
TEST(AllgatherBarrier, HoldsUntilAllHaveCome) {
  Draw random(4);
  for (unsigned ranks = 1; ranks <= 70; ranks++) {
    std::vector<Barrier> all;
    for (unsigned rank = 0; rank < ranks; rank++) all.emplace_back(rank, ranks);
    struct Message {
      unsigned from, to, step;
    };
    std::vector<Message> messages;
    std::vector<bool> begun(ranks);
    unsigned left = ranks;
    std::vector<unsigned> sent(ranks);
    const auto advance = [&](unsigned rank) {
      if (!begun[rank]) return;
      all[rank].advance([&](unsigned to, unsigned step) {
        messages.push_back({rank, to, step});
        sent[rank]++;
      });
      EXPECT_FALSE(left > 0 && all[rank].done());
    };
    while (left > 0 || !messages.empty()) {
      if (left > 0 && (messages.empty() || random() % 3 == 0)) {
        unsigned rank = random() % ranks;
        while (begun[rank]) rank = (rank + 1) % ranks;
        begun[rank] = true;
        left--;
        advance(rank);
      } else {
        const std::size_t i = random() % messages.size();
        const Message m = messages[i];
        messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_TRUE(all[m.to].accept(m.from, m.step));
        EXPECT_FALSE(all[m.to].accept(m.from, m.step)) << "twice";
        advance(m.to);
      }
    }
    for (unsigned rank = 0; rank < ranks; rank++) {
      EXPECT_TRUE(all[rank].done()) << rank << " of " << ranks;
      EXPECT_LE(sent[rank], static_cast<unsigned>(std::bit_width(ranks - 1)) + 1);
      EXPECT_FALSE(all[rank].accept(ranks + 1, 0));
      EXPECT_FALSE(all[rank].accept(0, 77));
    }
  }
}

}  // namespace
}  // namespace rocebox::allgather
