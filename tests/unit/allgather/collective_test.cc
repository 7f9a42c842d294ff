// SPDX-License-Identifier: BSD-3-Clause
// Random teams of the collective's state machine, in a network of a few lines that loses, doubles and reorders chunks.
// Each buffer is scribbled over when it is released: what writes to it later, or reads from it, is seen.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <queue>
#include <random>

#include "kernels/allgather/model/collective.h"

namespace rocebox::allgather {
namespace {

struct Conditions {
  unsigned ranks = 2, chains = 1, subgroups = 1;
  int root = -1;
  std::uint64_t block_bytes = 100;
  std::uint32_t chunk_bytes = 16;
  double loss = 0, duplication = 0;
  unsigned chunk_delay = 10, copy_delay = 5, message_delay = 10, start_delay = 50;
  std::uint64_t cutoff = 500;
  int all_lost_of = -1;  // all chunks of one root
  std::uint64_t seed = 1;
};

class World {
 public:
  explicit World(const Conditions& conditions) : with(conditions), random_(conditions.seed) {
    blocks_ = with.root >= 0 ? 1 : with.ranks;
    const Geometry geometry(blocks_, with.block_bytes, with.chunk_bytes, with.subgroups);
    for (unsigned r = 0; r < with.ranks; r++) ranks.push_back(std::make_unique<OneRank>(*this, r, geometry));
  }
  void run() {
    for (auto& rank : ranks) after(random_() % (with.start_delay + 1), [&rank] { rank->collective.start(); });
    for (std::uint64_t steps = 0; !events_.empty(); steps++) {
      ASSERT_LT(steps, 10'000'000u) << "it goes on for ever";
      const Event event = events_.top();
      events_.pop();
      now = event.at;
      event.what();
    }
    for (const auto& rank : ranks) {
      ASSERT_EQ(rank->releases, 1u) << rank->number << " waits for " << name_of(rank->collective.waits_for());
      EXPECT_EQ(rank->collective.end(), End::kWhole);
      EXPECT_EQ(rank->wrong, 0u) << "rank " << rank->number;
      EXPECT_FALSE(rank->refused);
      for (const std::uint8_t byte : rank->memory) ASSERT_EQ(byte, 0xDD) << "written after it was released";
    }
  }

  struct OneRank final : CollectiveActions {
    OneRank(World& w, unsigned n, const Geometry& geometry)
        : world(w),
          number(n),
          memory(geometry.bytes(), 0xEE),
          reassembly(geometry),
          collective({n, w.with.ranks, w.with.root, w.with.chains}, reassembly, *this) {
      if (w.with.root < 0 || w.with.root == static_cast<int>(n))
        for (std::uint64_t i = 0; i < w.with.block_bytes; i++) {
          const unsigned block = w.with.root < 0 ? n : 0;
          memory[block * w.with.block_bytes + i] = World::right(block, i);
        }
    }
    OneRank& left() { return *world.ranks[(number + world.with.ranks - 1) % world.with.ranks]; }
    OneRank& right() { return *world.ranks[(number + 1) % world.with.ranks]; }
    void tell(OneRank& to, std::function<bool(Collective&)> what) {
      world.message(number, to.number, [&to, what] {
        if (to.releases == 0) to.refused |= !what(to.collective);
      });
    }
    void send_barrier(unsigned to, unsigned step) override {
      tell(*world.ranks[to], [from = number, step](Collective& c) { return c.on_barrier(from, step); });
    }
    void arm_cutoff() override {
      world.after(world.with.cutoff, [this] { collective.on_cutoff(); });
    }
    void send_activation() override {
      tell(right(), [](Collective& c) { return c.on_activation(); });
    }
    void send_request(unsigned block) override {
      tell(left(), [block](Collective& c) { return c.on_request(block); });
    }
    void send_acknowledge(unsigned block) override {
      EXPECT_TRUE(reassembly.is_whole(block));
      tell(right(), [block](Collective& c) { return c.on_acknowledge(block); });
    }
    void send_final() override {
      tell(left(), [](Collective& c) { return c.on_final(); });
    }
    void begin_multicast() override {
      const Geometry& g = reassembly.geometry();
      const unsigned block = world.with.root >= 0 ? 0 : number;
      std::uint64_t at = 0;
      for (unsigned s = 0; s < g.subgroups(); s++)
        for (std::uint32_t i = g.first_of(s); i < g.end_of(s); i++, at++)
          world.after(at, [this, s, i, block] { world.multicast(*this, s, block, i); });
      world.after(at, [this] { collective.on_multicast_sent(); });
    }
    void read(unsigned block) override {
      const Geometry& g = reassembly.geometry();
      reassembly.each_missing(block, [&](std::uint32_t index, std::uint32_t count) {
        collective.begin_write();
        world.after(world.below(world.with.message_delay), [this, &g, block, index, count] {
          const std::uint64_t from = g.offset_of(block, index), bytes = g.bytes_of(index, count);
          std::copy_n(left().memory.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                      memory.begin() + static_cast<std::ptrdiff_t>(from));
          world.after(world.below(world.with.message_delay), [this, block, index, count] {
            if (reassembly.fill(block, index, count)) collective.on_whole(block);
            collective.end_write();
          });
        });
      });
    }
    void release(End) override {
      releases++;
      for (std::uint64_t i = 0; i < memory.size(); i++)
        wrong +=
            memory[i] != World::right(static_cast<unsigned>(i / world.with.block_bytes), i % world.with.block_bytes);
      std::fill(memory.begin(), memory.end(), 0xDD);
    }
    void on_chunk(unsigned subgroup, std::uint32_t chunk, const std::vector<std::uint8_t>& bytes) {
      if (releases > 0) return;  // another collective's
      std::uint32_t block = 0, index = 0;
      if (reassembly.take(subgroup, chunk, block, index) != Arrival::kNew) return;
      collective.begin_write();
      world.after(world.below(world.with.copy_delay), [this, block, index, bytes] {
        const std::uint64_t to = reassembly.geometry().offset_of(block, index);
        std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(to));
        if (reassembly.land(block)) collective.on_whole(block);
        collective.end_write();
      });
    }

    World& world;
    unsigned number;
    std::vector<std::uint8_t> memory;
    Reassembly reassembly;
    Collective collective;
    unsigned releases = 0;
    std::uint64_t wrong = 0;
    bool refused = false;
  };

  static std::uint8_t right(unsigned block, std::uint64_t offset) {
    return static_cast<std::uint8_t>(block * 59 + offset * 7 + offset / 251);
  }
  std::uint64_t below(unsigned bound) { return bound ? random_() % bound : 0; }
  void after(std::uint64_t delay, std::function<void()> what) {
    events_.push({now + delay, sequence_++, std::move(what)});
  }
  // In order between two ranks.
  void message(unsigned from, unsigned to, std::function<void()> what) {
    std::uint64_t& last = last_[{from, to}];
    last = std::max(last, now + 1 + below(with.message_delay));
    after(last - now, std::move(what));
  }
  void multicast(OneRank& from, unsigned subgroup, unsigned block, std::uint32_t index) {
    const Geometry& g = from.reassembly.geometry();
    const auto begin = from.memory.begin() + static_cast<std::ptrdiff_t>(g.offset_of(block, index));
    const std::vector<std::uint8_t> bytes(begin, begin + static_cast<std::ptrdiff_t>(g.bytes_of(index)));
    for (auto& to : ranks) {
      if (to.get() == &from) continue;
      const unsigned copies = 1 + (chance(with.duplication) ? 1 : 0);
      for (unsigned i = 0; i < copies; i++) {
        if (chance(with.loss) || with.all_lost_of == static_cast<int>(from.number)) continue;
        after(1 + below(with.chunk_delay),
              [&to, subgroup, chunk = g.chunk_of(block, index), bytes] { to->on_chunk(subgroup, chunk, bytes); });
      }
    }
  }
  std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto& rank : ranks) sum += rank->collective.requests();
    return sum;
  }

  const Conditions with;
  std::vector<std::unique_ptr<OneRank>> ranks;
  std::uint64_t now = 0;

 private:
  struct Event {
    std::uint64_t at, sequence;
    std::function<void()> what;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : sequence > other.sequence; }
  };
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }

  std::mt19937_64 random_;
  unsigned blocks_ = 1;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> last_;
};

TEST(AllgatherCollective, RandomTeamsGetEveryByte) {
  for (std::uint64_t seed = 1; seed <= 300; seed++) {
    std::mt19937_64 engine(seed);
    const auto random = [&engine] { return static_cast<unsigned>(engine()); };
    Conditions c;
    c.seed = seed;
    c.ranks = 2 + random() % (seed % 10 ? 9 : 63);
    c.chains = 1 + random() % c.ranks;
    c.subgroups = 1 + random() % 4;
    if (random() % 4 == 0) c.root = static_cast<int>(random() % c.ranks);
    c.block_bytes = 1 + random() % 300;
    c.chunk_bytes = 1 + random() % 40;
    c.loss = random() % 3 ? 0.2 * static_cast<double>(random() % 100) / 100 : 0;
    c.duplication = random() % 2 ? 0.1 : 0;
    c.chunk_delay = random() % 3 ? random() % 200 : 0;
    c.copy_delay = random() % 100;
    c.message_delay = random() % 50;
    c.start_delay = random() % 1000;
    // Far too early, about right, far too late.
    const std::uint64_t cutoffs[] = {0u, random() % 200, c.ranks * (c.block_bytes + 200), 1'000'000};
    c.cutoff = cutoffs[random() % 4];
    if (random() % 8 == 0) c.all_lost_of = static_cast<int>(random() % c.ranks);
    World world(c);
    world.run();
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(AllgatherCollective, AsksNobodyWithoutLoss) {
  for (const int root : {-1, 2}) {
    Conditions c{.ranks = 12, .chains = 3, .subgroups = 2, .root = root, .cutoff = 100'000};
    World world(c);
    world.run();
    EXPECT_EQ(world.requests(), 0u);
  }
}

// The fetch goes from rank to rank back to the root, where all have lost all: a ring Allgather.
TEST(AllgatherCollective, AllLostIsARing) {
  Conditions c{.ranks = 9, .loss = 1, .cutoff = 1000};
  World world(c);
  world.run();
  EXPECT_EQ(world.requests(), 9u * 8);
  Conditions one{.ranks = 9, .cutoff = 3000, .all_lost_of = 4};
  World lost(one);
  lost.run();
  EXPECT_EQ(lost.requests(), 8u) << "each other rank asks for that block once";
}

}  // namespace
}  // namespace rocebox::allgather
