// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/testbed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/harness.h"

namespace rocebox::testbed_test {
namespace {

constexpr const char* kTwoDevices =
    "devices: {near: {path: a <-> inspect <-> b}, far: {path: c <-> d}}\n"
    "links: {haul: {between: [near.b, far.c], rate: 1Gbps}}\n";

// A shard that has just got `packets` at its port near.a: the link holds all of them.
class ShardBed {
 public:
  ShardBed(const config::RunConfig& config, std::size_t packets)
      : pool_({.small = 64, .large = 16, .giant = 2}),
        testbed_(config, pool_, 1, [](FabricPort, std::span<Packet> left, Nanos) {
          for (Packet packet : left) rte_pktmbuf_free(packet.mbuf());
        }) {
    const std::vector<std::uint8_t> frame = test::frame({});
    for (std::size_t i = 0; i < packets; i++) {
      PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(frame.size()));
      std::copy(frame.begin(), frame.end(), packet->data());
      testbed_.fabric().inject(testbed_.port({"near", "a"}), packet.release());
    }
    testbed_.fabric().run(0);
  }
  const Testbed& testbed() const { return testbed_; }

 private:
  Pool pool_;
  Testbed testbed_;
};

TEST(Testbed, ReportsWhatItsShardsCameToTogether) {
  Registry registry;
  config::Mistakes mistakes("f.yaml");
  const config::RunConfig config = config::load_text(kTwoDevices, "f.yaml", registry, mistakes, false);
  ASSERT_TRUE(mistakes.none()) << mistakes.text();
  const ShardBed one(config, 3), other(config, 7);
  Json alone[2], both;
  one.testbed().report(alone[0]);
  other.testbed().report(alone[1]);
  Testbed::report_sum({&one.testbed(), &other.testbed()}, both, Detail::kAll);

  const auto link = [](const Json& report) { return report["links"]["haul"]["counters"]; };
  EXPECT_EQ(link(both)["forward_packets"], 10);
  EXPECT_EQ(link(both)["packets_held"], 10);
  const auto most = [&](const Json& report) { return link(report)["forward_queue_bytes_max"].get<std::int64_t>(); };
  EXPECT_GT(most(alone[0]), 0);
  EXPECT_GT(most(alone[1]), most(alone[0]));
  EXPECT_EQ(most(both), most(alone[1])) << "a high-water mark, and no sum";
  EXPECT_EQ(both["links"]["haul"]["between"], "near.b <-> far.c");
  const Json& near = both["devices"]["near"];
  EXPECT_EQ(near["ports"]["a"]["rx_packets"], 10);
  EXPECT_EQ(near["kernels"]["inspect"]["type"], "inspect");
  EXPECT_EQ(near["kernels"]["inspect"]["flows"].size(), 2u) << "rows of tables follow one another";
}

}  // namespace
}  // namespace rocebox::testbed_test
