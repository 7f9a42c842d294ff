// SPDX-License-Identifier: BSD-3-Clause
// Changes at given times.
#include "runtime/drives/virtual/schedule.h"

#include <gtest/gtest.h>

#include "tests/unit/virtual/fabric_kit.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::schedule_test {
namespace {

// A packet of a station takes 8.848 us.
constexpr Nanos kPacket = (1024 + 14 + 20 + 8 + 12 + 4 + 24) * 8;
const std::string kPair =
    "devices:\n"
    "  a: {station: {mac: 02:00:00:00:00:01, address: 10.0.0.1}}\n"
    "  b: {station: {mac: 02:00:00:00:00:02, address: 10.0.0.2}}\n"
    "links: {cable: {between: [a.wire, b.wire], delay: 10us}}\n"
    "workloads: {shout: {hosts: [a, b], bytes: 1024000}}\n";

TEST(Schedule, ALinkIsDownBetweenTwoTimes) {
  sim_test::SimBox box(kPair +
                       "schedule:\n"
                       "  mended: {at: 2ms, links: {cable: {up: true}}}\n"
                       "  cut: {at: 1ms, links: {cable: {up: false}}}\n"
                       "sim: {time: 20ms}\n");
  const Json report = box.run();
  const Json& counters = report["links"]["cable"]["counters"];
  const std::int64_t lost = (2'000'000 - 1) / kPacket - (1'000'000 - 1) / kPacket;
  EXPECT_EQ(counters["forward_drop_down"], lost);
  EXPECT_EQ(counters["reverse_drop_down"], lost);
  EXPECT_EQ(counters["forward_delivered"], 1000 - lost) << "what was on its way when it was cut arrived";
  EXPECT_EQ(report["schedule"].dump(), R"([{"change":"cut","at_ns":1000000,"of":"cable","done":true},)"
                                       R"({"change":"mended","at_ns":2000000,"of":"cable","done":true}])");
}

TEST(Schedule, ChangesStandOnWhatWasWrittenAndOnEachOther) {
  std::string yaml = kPair;
  yaml.replace(yaml.find("bytes: 1024000"), 14, "bytes: 1024, start: 3ms");
  sim_test::SimBox box(yaml +
                       "schedule:\n"
                       "  slow: {at: 1ms, links: {cable: {delay: 40us}}}\n"
                       "  slower: {at: 2ms, links: {cable: {reverse: {delay: 50us}}}}\n"
                       "  late: {at: 1s, links: {cable: {up: false}}}\n");
  const Json report = box.run();
  const Json& flows = report["workloads"]["shout"]["flows"];
  EXPECT_EQ(flows[0]["completion_ns"], 40'000 + kPacket);
  EXPECT_EQ(flows[1]["completion_ns"], 50'000 + kPacket) << "the other direction";
  EXPECT_FALSE(report["schedule"][2]["done"]) << "the run does not wait for it";
  EXPECT_TRUE(box.sim.succeeded());
}

TEST(Schedule, LinksOfATopologyKeepTheirOwnOptions) {
  const std::string yaml =
      "topology: {back_to_back: {host_rate: 1Gbps, host_delay: 10us}, hosts: {station: {}}, links: {loss: 0.1%}}\n"
      "links: {h0_h1: {loss: 0}}\n"
      "workloads: {shout: {bytes: 1024, start: 3ms}}\n"
      "schedule: {slow: {at: 1ms, links: {h0_h1: {jitter: 0, forward: {delay: 40us}}}}}\n";
  sim_test::SimBox box(yaml);
  const Json report = box.run();
  EXPECT_EQ(report["workloads"]["shout"]["flows"][0]["completion_ns"], 40'000 + kPacket);
  EXPECT_EQ(report["workloads"]["shout"]["flows"][1]["completion_ns"], 10'000 + kPacket);
  const std::string effective = config::effective_yaml(box.config);
  EXPECT_EQ(config::effective_yaml(sim_test::load(effective)), effective);
  EXPECT_NE(effective.find("schedule:"), std::string::npos) << effective;
}

// A switch of a topology has its wires' rates where it says no other one.
TEST(Schedule, ARateOfOnePortLeavesTheOthersTheirWires) {
  const auto rates = [](const std::string& written) {
    const config::RunConfig config = sim_test::load(
        "topology:\n"
        "  leaf_spine: {leaves: 1, spines: 1, hosts_per_leaf: 2, host_rate: 1Gbps, spine_rate: 4Gbps}\n"
        "  hosts: {station: {}}\n"
        "  switches: {switch: {" +
        written +
        "}}\n"
        "workloads: {shout: {bytes: 1024}}\n");
    const auto leaf = std::ranges::find(config.devices, "leaf0", &config::DeviceConfig::name);
    std::vector<std::uint64_t> all;
    for (Port port = 0; port < 3; port++) all.push_back(leaf->whole()->port_rate(port) / 1'000'000'000);
    return all;
  };
  using Rates = std::vector<std::uint64_t>;
  EXPECT_EQ(rates(""), (Rates{1, 1, 4}));
  EXPECT_EQ(rates("traffic_manager: {rates: [{ports: [p0], rate: 2Gbps}]}"), (Rates{2, 1, 4}));
  EXPECT_EQ(rates("traffic_manager: {rate: 3Gbps, rates: [{ports: [p0], rate: 2Gbps}]}"), (Rates{2, 3, 3}));
}

TEST(Schedule, MistakesAreToldWithTheirPlace) {
  const struct Row {
    const char *schedule, *words;
  } rows[] = {
      {"x: {links: {cable: {up: false}}}", "f.yaml:6:15: `at` must be given"},
      {"x: {at: 1ms}", "f.yaml:6:15: changes nothing"},
      {"x: {at: 1ms, links: {kable: {up: false}}}", "there is no link `kable`; did you mean `cable`?"},
      {"x: {at: 1ms, links: {cable: {upp: false}}}", "f.yaml:6:41: unknown key `upp`"},
      {"x: {at: 1ms, links: {cable: {loss: 200%}}}", "f.yaml:6:47: `loss` must be from"},
      {"x: {at: 1ms, links: {cable: 5}}", "expected a mapping with the options that change"},
      {"x: {at: 1ms, devices: {c: {station: {mute: true}}}}", "there is no device `c`"},
      {"x: {at: 1ms, devices: {a: {mute: true}}}", "unknown key `mute`; device `a` has `station:`"},
      {"x: {at: 1ms, devices: {a: {station: {mute: 5}}}}", "`mute` must be true or false"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    sim_test::load(kPair + "schedule: {" + row.schedule + "}\n", &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.schedule << "\n" << mistakes;
  }
}

TEST(Schedule, WhatCannotChangeWhileItRunsIsRefusedBeforeTheRun) {
  try {
    sim_test::SimBox box(kPair +
                         "schedule:\n"
                         "  one: {at: 1ms, links: {cable: {packets: 64}}}\n"
                         "  two: {at: 1ms, devices: {a: {station: {mute: true}}}}\n");
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "f.yaml:7:8: `one` changes `cable`: forward: `packets` cannot be changed while the link runs\n"
                 "f.yaml:8:8: `two` changes `a`: fixed");
  }
}

// RC over a NIC that is away for 10 ms: the sender's timeouts bridge that.
TEST(Schedule, ANicStopsAndComesBack) {
  const std::string yaml =
      "topology:\n"
      "  back_to_back: {host_rate: 10Gbps, host_delay: 1us}\n"
      "  hosts: {nic: {header_only: true, retransmission_timeout: 4ms}}\n"
      "workloads: {flows: {flows: [{source: 0, destination: 1, bytes: 10MB}]}}\n"
      "schedule:\n"
      "  stops: {at: 2ms, devices: {h1: {nic: {up: false}}}}\n";
  fabric_test::FabricBox box(yaml + "  back: {at: 12ms, devices: {h1: {nic: {up: true}}}}\n");
  const Json& report = box.run();
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_GT(box.count("h1", "drop_down"), 0u);
  EXPECT_GT(box.count("h0", "local_ack_timeout_err"), 0u);
  EXPECT_EQ(report["workloads"]["flows"]["details"]["misplaced"], 0);
  EXPECT_GT(report["workloads"]["flows"]["duration_ns"], 12'000'000);

  fabric_test::FabricBox gone(yaml + "sim: {watchdog: 200ms}\n");
  const Json& end = gone.run();
  EXPECT_FALSE(gone.sim.succeeded());
  EXPECT_EQ(end["workloads"]["flows"]["details"]["failed_queue_pairs"], 1) << "after retry_cnt timeouts";
  EXPECT_EQ(gone.count("h0", "local_ack_timeout_err"), 8u);

  try {
    fabric_test::FabricBox other(yaml + "  mtu: {at: 12ms, devices: {h1: {nic: {window: 64}}}}\n");
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("nic: `window` cannot be changed while it runs"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace rocebox::schedule_test
