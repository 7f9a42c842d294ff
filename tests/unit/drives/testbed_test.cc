// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/testbed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/kernel/kernel_options.h"
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

// Its options are good, and it cannot be made with all of them.
class Picky final : public Kernel {
 public:
  struct Config {
    std::int64_t number = 12;
    void fields(Fields& f) { f.integer("number", number, {0, 100}, "a number"); }
  };
  Picky(const Config& config, Stats&) {
    if (config.number == 13) throw ConfigError("it does not take 13");
  }
  void process(Context&, Port, Batch&) override {}
};

std::string refusal_of(const std::string& yaml) {
  static constexpr Component kRows[] = {two_sided_kernel<Picky>("picky", "refuses a number")};
  Registry registry;
  registry.add(kRows, "the test");
  config::Mistakes mistakes("f.yaml");
  const config::RunConfig config = config::load_text(yaml, "f.yaml", registry, mistakes, false);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  Pool pool({.small = 64, .large = 16, .giant = 2});
  try {
    const Testbed testbed(config, pool, 1, [](FabricPort, std::span<Packet>, Nanos) {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Testbed, WhatOnlyMakingADeviceShowsHasItsPlaceToo) {
  EXPECT_EQ(refusal_of("devices:\n"
                       "  a: {path: x <-> picky <-> y, kernels: {picky: {number: 13}}}\n"
                       "  b: {path: x <-> picky <-> y}\n"
                       "  c:\n"
                       "    path: x <-> inspect <-> mine <-> y\n"
                       "    kernels:\n"
                       "      mine:\n"
                       "        type: picky\n"
                       "        number: 13\n"),
            "f.yaml:2:49: it does not take 13\n"
            "f.yaml:8:9: it does not take 13");
}

TEST(Testbed, ProgramsOfNicsAreRefusedByTheirPlace) {
  const std::string nic =
      "nic: {rate: 1Gbps, congestion_control: pcc, pcc: {program: rtt_control, parameters: [{id: 43, value: 1}]}}";
  const std::string why = refusal_of("topology:\n  back_to_back: {}\n  hosts: {" + nic + "}\n");
  EXPECT_TRUE(why.starts_with("f.yaml:3:16: `pcc`: `")) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << "one for both hosts: " << why;
  EXPECT_TRUE(refusal_of("devices:\n  a: {" + nic + "}\n").starts_with("f.yaml:2:12: `pcc`: `"));
}

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
