// SPDX-License-Identifier: BSD-3-Clause
// Random teams over NICs, a switch and wires each of which loses, reorders and doubles as it likes. The judge knows of
// a collective what it is to do, and nothing of how: it looks at every byte of every buffer when it is released, counts
// releases, and looks again when nothing is under way any more. More of them: ROCEBOX_ALLGATHER_RUNS=10000
// ROCEBOX_ALLGATHER_SEED=1 unit_tests --gtest_filter=AllgatherRandom.*
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/allgather/judge.h"

namespace rocebox::allgather::test {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// One run, drawn from a seed alone.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15), seed_(seed) {
    ranks = 2 + random(seed % 16 == 0 ? 63 : seed % 4 == 0 ? 23 : 9);
    options.transport = random(3) ? Transport::kUd : Transport::kUc;
    options.receiver = ranks <= 16 && random(4) == 0 ? Receiver::kDpa : Receiver::kHost;
    has_bytes = options.receiver == Receiver::kDpa || random(4) > 0;
    options.mtu = 256 << random(3);
    if (options.transport == Transport::kUc && random(2)) options.chunk = 1 + random(3000);
    options.subgroups = 1 + random(4);
    options.communicators = 1 + random(ranks > 24 ? 1 : 3);
    options.outstanding = 1 + random(3);
    options.batch = 1 + random(9);
    options.receive_workers = random(3);
    options.worker_time = random(3) ? 0 : 1 + random(900);
    options.staging = random(3) ? 64 << 10 : (2 + random(6)) * static_cast<unsigned>(options.mtu + 40);
    options.timeout_exponent = 5;  // 131 us
    options.timeout = 500 * kMillisecond;
    options.poll = 5 * kMicrosecond;
    if (random(3) == 0) options.cutoff = random(3) == 0 ? 0 : random(2) ? random(20000) : 5 * kMillisecond;
    draw_operations();
    draw_links();
    // Where the pool is dry switches make no replicas, wires no copies, and NICs wait until there is a packet.
    if (random(6) == 0) {
      packets = ranks * (4 + random(60));
      gives_up |= all_lose_little_;  // retries on a line that loses, too
    }
  }
  std::string text() const {
    return "seed " + std::to_string(seed_) + ": " + std::to_string(ranks) + " ranks, " +
           (options.transport == Transport::kUc ? "uc" : "ud") +
           (options.receiver == Receiver::kDpa ? ", dpa" : ", host") + (has_bytes ? "" : ", header_only") + ", " +
           std::to_string(packets) + " packets, " + links.begin()->second;
  }
  std::string nic() const {
    return options.receiver == Receiver::kDpa ? "dpa: {heap: 4MiB}" : has_bytes ? "" : "header_only: true";
  }

  unsigned ranks, packets = 32768;
  bool has_bytes;
  bool gives_up = false;  // connections lose so many packets, too, that some do
  TeamOptions options;
  std::vector<Operation> operations;
  std::map<unsigned, std::string> links;

 private:
  unsigned random(unsigned bound) { return static_cast<unsigned>(engine_() % bound); }
  void draw_operations() {
    const unsigned bytes_max = ranks > 24 ? 1200 : 4000;
    for (unsigned c = 0; c < options.communicators; c++)
      for (std::uint32_t i = 0; i < 4; i++) {
        const int root = random(3) ? -1 : static_cast<int>(random(ranks));
        operations.push_back({c, i, root, 1 + random(ranks), 1 + random(bytes_max)});
      }
  }
  // Each host's wire for itself: what befalls chunks (they go to QPN 0xffffff), or all.
  void draw_links() {
    // Of connections: nothing, a little, which no retry counter sees, or as much as of chunks.
    const unsigned draw = random(8);
    const bool all_lose = draw <= 1;
    all_lose_little_ = draw == 1;
    for (unsigned host = 0; host < ranks; host++) {
      std::string link = "{delay: " + std::to_string(1 + random(3)) + "us";
      const auto percent = [&](const char* what, unsigned tenths) {
        if (tenths)
          link +=
              std::string(", ") + what + ": " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
      };
      if (random(4)) percent("loss", random(all_lose_little_ ? 16 : 201));
      if (random(3) == 0) percent("reorder", random(201));
      if (random(3) == 0) percent("duplicate", random(101));
      if (random(4) == 0) link += ", jitter: " + std::to_string(1 + random(20)) + "us, jitter_reorders: true";
      links[host] = link + (all_lose ? "}" : ", match: {qpn: 0xFFFFFF}}");
    }
    gives_up = all_lose && !all_lose_little_;
  }

  std::mt19937_64 engine_;
  std::uint64_t seed_;
  bool all_lose_little_ = false;
};

// The hash of when what ended how.
std::uint64_t run(const Draw& draw, std::uint64_t seed) {
  Star star(draw.ranks, draw.nic(), "delay: 1us", seed, draw.links, draw.packets);
  Judge judge(star, draw.options, draw.operations);
  judge.run(100 * kSecond);
  const std::size_t all = draw.operations.size() * draw.ranks;
  EXPECT_EQ(judge.ended, all);
  EXPECT_EQ(judge.wrong, 0u);
  EXPECT_EQ(judge.team.counters().bad_messages, 0u);
  // Right, or by name: where a connection gives up what waits for it ends by name, and nothing else does.
  EXPECT_TRUE(draw.gives_up || judge.whole == all) << judge.whole << " of " << all;
  std::size_t failed = 0;
  for (const auto& [end, times] : judge.failed) {
    EXPECT_TRUE(draw.gives_up && end != End::kNone) << name_of(end) << " at " << times;
    failed += times;
  }
  EXPECT_EQ(judge.whole + failed, all);
  EXPECT_EQ(failed > 0, judge.failed[End::kConnection] > 0) << "a time-out without a connection that was lost";
  const TeamCounters c = judge.team.counters();
  return judge.hash ^ static_cast<std::uint64_t>(star.now) ^ c.chunks << 20 ^ c.reads << 40;
}

TEST(AllgatherRandom, EveryByteIsRightAndEveryBufferReleasedOnce) {
  const std::uint64_t first = number("ROCEBOX_ALLGATHER_SEED", 1), runs = number("ROCEBOX_ALLGATHER_RUNS", 48);
  for (std::uint64_t seed = first; seed < first + runs; seed++) {
    const Draw draw(seed);
    SCOPED_TRACE(draw.text());
    const std::uint64_t hash = run(draw, seed);
    EXPECT_TRUE(seed % 8 != 0 || run(Draw(seed), seed) == hash) << "equal seeds";
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace rocebox::allgather::test
