// SPDX-License-Identifier: BSD-3-Clause
// A busy ToR gives the same answer however its input is cut into batches: NACKs stashed, resolved and aged, pairs
// learnt and undone, connections made and forgotten, with as many of them in one instant as there are.
#include <algorithm>
#include <map>
#include <random>

#include "runtime/roce/psn.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

struct Burst {
  Nanos at;
  Port in;
  std::vector<std::vector<std::uint8_t>> frames;
};

// Three connections between the same NICs, of which one is configured; window 8.
std::vector<Burst> busy_hour(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::uint32_t next[3] = {0, 5000, 0xFFFFF0}, sent[3] = {0, 70, 900};
  std::vector<Burst> bursts;
  for (Nanos at = 1000; at < 5 * kMillisecond;
       at += below(4) ? 250 * below(40) : 250 * kMicrosecond - at % (250 * kMicrosecond)) {
    const Port in = below(3) == 0 ? Port{0} : static_cast<Port>(2 + below(2));
    Burst burst{at, in, {}};
    for (unsigned i = below(12); i > 0; i--) {
      const unsigned flow = below(3);
      const std::uint32_t back = below(6), kind = below(10);
      roce::PacketSpec spec;
      if (in == 0)
        spec = kind < 3 ? write(false, sent[flow]++)
                        : response(false, next[flow] - back, kind < 6 ? kAckSyndrome : kNackSyndrome);
      else if (kind < 8)
        spec = write(true, kind < 6 ? next[flow]++ : next[flow] + back);
      else
        spec = response(true, sent[flow] - back, kind < 9 ? kAckSyndrome : kNackSyndrome);
      if (below(60) == 0) spec.psn += 1 << 20;
      if (below(60) == 0) spec.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST, spec.dma_length = 3000;
      spec.psn &= roce::kPsnMask;
      spec.destination_qp += 0x100 * flow;
      burst.frames.push_back(test::frame(spec));
    }
    if (!burst.frames.empty()) bursts.push_back(std::move(burst));
  }
  return bursts;
}

struct Response {
  std::vector<test::Out> out;
  std::map<std::string, std::uint64_t> counters;
};

Response run(const std::vector<Burst>& bursts, const std::string& more, unsigned batch_max) {
  // A stash ages in the instant in which connections do.
  Tor tor(std::string(kConnection) + ", stash_timeout: 250us, qp_timeout: 1ms", more);
  tor.pipeline->set_batch_max(batch_max);
  for (const Burst& burst : bursts) tor.send_burst(burst.at, burst.in, burst.frames);
  tor.drain();
  Response response;
  for (const CounterSet::Row& row : tor.stats.rows()) response.counters[row.name] = row.read();
  std::stable_sort(tor.out.begin(), tor.out.end(), [](const auto& a, const auto& b) { return a.port < b.port; });
  response.out = std::move(tor.out);
  return response;
}

class ThemisBatching : public testing::TestWithParam<const char*> {};

TEST_P(ThemisBatching, ChangesNothing) {
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 8; seed++) {
    const std::vector<Burst> bursts = busy_hour(seed);
    const Response one = run(bursts, GetParam(), 1);
    for (const unsigned batch : {7u, 64u}) {
      const Response other = run(bursts, GetParam(), batch);
      ASSERT_EQ(other.counters, one.counters) << "seed " << seed << ", batches of " << batch;
      ASSERT_TRUE(other.out == one.out) << "seed " << seed << ", batches of " << batch;
    }
    for (const auto& [name, value] : one.counters) seen[name] += value;
  }
  for (const char* name : {"sprayed", "drop_nack_invalid", "drop_nack_undetermined", "nack_valid", "undetermined_valid",
                           "undetermined_invalid", "undetermined_aged", "pairs_undone", "qps_aged", "qps_begun_anew"})
    EXPECT_GT(seen[name], 0u) << name << " was not tried";
}

INSTANTIATE_TEST_SUITE_P(Switches, ThemisBatching,
                         testing::Values("", "pipes: 2\n", "pipes: 2\ntraffic_manager: {rate: 20Gbps}\n"));

}  // namespace
}  // namespace rocebox::themis
