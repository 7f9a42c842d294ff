// SPDX-License-Identifier: BSD-3-Clause
// The contracts of design.md over every kernel in the registry, those to come included: the same answer for any
// batching, conservation, the pool back to idle, equal runs, metadata that tells the truth, no laundered corruption,
// foreign traffic untouched, no allocation per packet, and counters summed up by their kinds.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>

#include "runtime/component/registry.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/workload.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/contracts/allocations.h"
#include "tests/unit/contracts/counter_kinds.h"
#include "tests/unit/contracts/random_fields.h"
#include "tests/unit/contracts/traffic.h"
#include "tests/unit/harness.h"
#include "tests/unit/options.h"

namespace rocebox::contracts_test {
namespace {

constexpr PoolSizes kSizes{.small = 16384, .large = 256, .giant = 4};
constexpr Nanos kDrain = 100 * kSecond;

// What left by one port: digest by digest, so that the first difference can be named.
struct Leaving {
  Nanos at;
  std::uint32_t size, wire_bytes;
  std::uint64_t digest, mark;
  ParseStatus status;
  roce::IcrcStatus icrc;
  bool truthful;  // metadata agrees with a fresh parse
  bool operator==(const Leaving& o) const {
    return at == o.at && size == o.size && wire_bytes == o.wire_bytes && digest == o.digest;
  }
};

struct Result {
  std::vector<std::vector<Leaving>> out;  // by port
  std::string counters;
  Conservation conservation;
  std::uint32_t pool_in_use = 0, pool_after = 0;
  std::uint64_t replicated = 0;
  std::uint64_t allocations = 0;
};

std::uint64_t digest_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

std::uint64_t mark_of(Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (meta.status != ParseStatus::kRoce || meta.payload_bytes < 8 || packet.size() < meta.payload_offset + 8u) return 0;
  std::uint64_t mark;
  std::memcpy(&mark, packet.data() + meta.payload_offset, 8);
  return mark;
}

Leaving leaving_of(Packet packet, Nanos now) {
  Leaving result{now,
                 packet.size(),
                 packet.wire_bytes(),
                 digest_of(packet.bytes()),
                 0,
                 packet.meta().status,
                 roce::IcrcStatus::kUnverifiable,
                 true};
  const PacketMeta before = packet.meta();
  roce::parse(packet);
  const PacketMeta& after = packet.meta();
  result.truthful = before.status == after.status && before.bth_offset == after.bth_offset &&
                    before.payload_offset == after.payload_offset && before.payload_bytes == after.payload_bytes &&
                    before.datagram_end == after.datagram_end && before.opcode == after.opcode;
  result.mark = mark_of(packet);
  if (after.bth_offset) result.icrc = roce::icrc_check(packet);
  return result;
}

std::uint64_t replicated(const CounterSet& stats) {
  for (const CounterSet::Row& row : stats.rows())
    if (row.name == "replicated") return row.read();
  return 0;
}

// Replicas that are held may have their bytes in a packet that is gone: one more of the pool each.
void expect_in_use(std::uint64_t in_use, std::uint64_t held, std::uint64_t replicated) {
  EXPECT_GE(in_use, held) << "a packet was freed without a reason";
  EXPECT_LE(in_use, held + std::min(held, replicated)) << "a packet was lost";
}

using Make = std::function<std::unique_ptr<Kernel>(Stats&)>;

Result run(const KernelOptions& type, const Make& make, const std::vector<test::TrafficPacket>& traffic,
           unsigned batch_max) {
  Result result;
  Pool pool(kSizes);
  {
    CounterSet stats;
    std::vector<Stage> stages(1);
    stages[0] = {"kernel", make(stats), type.shape(), {}, 42};
    for (Port p = 0; p < type.outputs(); p++) stages[0].outputs.push_back({Edge::kOutside, p});
    std::vector<Edge> inputs;
    for (Port p = 0; p < type.inputs(); p++) inputs.push_back({0, p});
    Kernel& kernel = *stages[0].kernel;
    Pipeline pipeline(std::move(stages), std::move(inputs), pool, stats);
    pipeline.set_batch_max(batch_max);
    result.out.resize(type.outputs());
    pipeline.set_sink([&](Port port, std::span<Packet> packets, Nanos now) {
      test::count_allocations(false);
      for (Packet packet : packets) {
        result.out[port].push_back(leaving_of(packet, now));
        rte_pktmbuf_free(packet.mbuf());
      }
      test::count_allocations(true);
    });
    const auto step = [&](Nanos now, std::span<const Arrivals> arrivals) {
      test::count_allocations(true);
      pipeline.step(now, arrivals);
      test::count_allocations(false);
    };
    test::reset_allocations();
    std::uint64_t sequence = 0;
    for (std::size_t i = 0; i < traffic.size();) {
      const test::TrafficPacket& first = traffic[i];
      while (pipeline.next_deadline() < first.at) step(pipeline.next_deadline(), {});
      std::vector<Packet> packets;
      for (; i < traffic.size() && traffic[i].at == first.at && traffic[i].in == first.in; i++) {
        PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(traffic[i].bytes.size()));
        EXPECT_TRUE(packet) << "the kernel holds more packets than the test's pool has";
        if (!packet) continue;
        std::memcpy(packet->data(), traffic[i].bytes.data(), traffic[i].bytes.size());
        packet->meta().wire_bytes = traffic[i].wire_bytes;
        packet->meta().arrival = first.at;
        packet->meta().input = first.in;
        packet->meta().identity = ++sequence;
        roce::parse(*packet);
        packets.push_back(packet.release());
      }
      const Arrivals arrivals{first.in, packets};
      step(first.at, {&arrivals, 1});
      expect_in_use(pool.in_use(), pipeline.conservation().held(), replicated(stats));
    }
    const Nanos end = traffic.back().at + kDrain;
    while (pipeline.next_deadline() <= end) step(pipeline.next_deadline(), {});
    result.allocations = test::count_allocations(false);
    Json json;
    JsonReport report(json);
    kernel.report(report);
    result.counters = json.dump();
    for (const CounterSet::Row& row : stats.rows())
      result.counters += row.name + "=" + std::to_string(row.read()) + "\n";
    result.conservation = pipeline.conservation();
    result.pool_in_use = pool.in_use();
    result.replicated = replicated(stats);
  }
  result.pool_after = pool.in_use();
  return result;
}

#ifdef ROCEBOX_SANITIZED  // which take many times as long; without them all are sent
constexpr std::size_t kPackets = 1000;
#else
constexpr std::size_t kPackets = 3000;
#endif

void check_one(const KernelOptions& type, const std::string& what, bool defaults) {
  SCOPED_TRACE(what);
  const Make make = [&type](Stats& stats) { return type.make(stats); };
  const auto traffic = test::mixed_traffic(7, kPackets, type.inputs());
  std::set<std::uint64_t> bad_marks;
  for (const auto& packet : traffic)
    if (packet.bad_icrc) bad_marks.insert(packet.mark);

  const Result one = run(type, make, traffic, 1);
  const Result again = run(type, make, traffic, 1);
  ASSERT_EQ(one.out, again.out) << "two equal runs differ";
  ASSERT_EQ(one.counters, again.counters) << "two equal runs count differently";
  for (unsigned batch : {7u, 64u}) {
    const Result other = run(type, make, traffic, batch);
    ASSERT_EQ(other.out, one.out) << "batches of " << batch << " give another answer than one packet at a time";
    ASSERT_EQ(other.counters, one.counters) << "batches of " << batch << " count differently";
  }
  const Conservation& c = one.conservation;
  std::uint64_t left = 0;
  for (const auto& port : one.out) left += port.size();
  EXPECT_EQ(c.in, traffic.size());
  EXPECT_EQ(c.out, left);
  expect_in_use(one.pool_in_use, c.held(), one.replicated);
  EXPECT_EQ(one.pool_after, 0u) << "the pool is not idle after the kernel is gone";
  if (test::allocations_are_counted()) {
    EXPECT_EQ(one.allocations, 0u) << "memory was allocated in the datapath";
  }
  for (const auto& port : one.out) {
    for (const Leaving& packet : port) {
      ASSERT_TRUE(packet.truthful) << "metadata of a packet that left disagrees with its bytes";
      if (packet.mark && packet.icrc == roce::IcrcStatus::kGood) {
        ASSERT_FALSE(bad_marks.contains(packet.mark)) << "a wrong ICRC came out right";
      }
    }
  }
  test::check_counter_kinds(type, make);
  if (!defaults || type.shape() != Shape::kTwoSided) return;
  // With its defaults, an inline kernel passes what is not RoCE untouched and in order.
  for (Port in = 0; in < 2; in++) {
    std::vector<std::uint64_t> sent, received;
    for (const auto& packet : traffic)
      if (packet.in == in && packet.foreign) sent.push_back(digest_of(packet.bytes));
    const std::set<std::uint64_t> wanted(sent.begin(), sent.end());
    for (const Leaving& packet : one.out[1 - in])
      if (wanted.contains(packet.digest)) received.push_back(packet.digest);
    EXPECT_EQ(received, sent);
  }
}

// What runs by itself: kernels and whole devices.
bool is_workload(const Component* component) { return std::string_view(component->kind) == kWorkloadKind; }
std::vector<const Component*> hosts() {
  std::vector<const Component*> some = test::in_tree().all();
  std::erase_if(some, [](const Component* component) { return component->host || is_workload(component); });
  return some;
}

TEST(Contracts, HoldForEveryKernelAndEveryExample) {
  ASSERT_FALSE(hosts().empty());
  for (const Component* host : hosts())
    check_one(*test::options_of(*host, ""), std::string(host->name) + ": defaults", true);
  for (const Component* component : test::in_tree().all()) {
    if (is_workload(component)) continue;  // it gets no packets
    const Component& host = component->host ? test::component(component->host) : *component;
    for (const Example* example = component->examples; example && example->title; example++)
      check_one(*test::options_of(host, example->yaml), std::string(component->name) + ": " + example->title, false);
  }
  EXPECT_GT(test::peaks_compared(), 0u) << "no kernel showed how high-water marks are summed up";
}

// Fields may be refused when they are read, and what they ask for together when the kernel is made: a strict switch
// refuses tables for which the chip has no room.
std::shared_ptr<KernelOptions> drawn(const Component& component, std::uint64_t seed) {
  test::RandomFields fields(seed);
  const auto options = test::options_by(component, fields);
  if (fields.refused()) return nullptr;
  try {
    CounterSet stats;
    options->make(stats);
  } catch (const ConfigError&) {
    return nullptr;
  }
  return options;
}

TEST(Contracts, HoldForConfigurationsDrawnFromTheRanges) {
  for (const Component* host : hosts()) {
    unsigned tried = 0;
    for (std::uint64_t seed = 0; seed < 400 && tried < 12; seed++) {
      const auto options = drawn(*host, seed);
      if (!options) continue;
      tried++;
      check_one(*options, std::string(host->name) + ": random configuration " + std::to_string(seed), false);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(tried, 0u) << host->name;
  }
}

}  // namespace
}  // namespace rocebox::contracts_test
