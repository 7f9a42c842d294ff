// SPDX-License-Identifier: BSD-3-Clause
// What it takes to read packets' data from the host's memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/nic/senders_kit.h"
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::test::scheduling {
namespace {

// What arithmetic gives: the least of the port's rate, PCIe's bandwidth, and reads under way by latency.
TEST(NicScheduler, DataComeOverPcie) {
  const double share = 4096.0 / (4 * 1106 + 16);
  for (const auto& [pcie, most] :
       {std::pair("{}", 100 * share),
        {"{bandwidth: 400Gbps}", 100 * share},
        {"{bandwidth: 40Gbps, read_latency: 0}", 40.0},
        {"{bandwidth: 1Tbps, read_latency: 1us, outstanding_reads: 4}", 4 * 8192 / 1008.0}}) {
    SCOPED_TRACE(pcie);
    Senders senders(std::string("rate: 100Gbps\npcie: ") + pcie);
    senders.write(senders.add(0), 4096, 32);
    senders.write(senders.add(0), 4096, 32);
    senders.run(kSpan);
    EXPECT_NEAR(senders.gbps(0, kSpan) + senders.gbps(1, kSpan), most, 0.05 * most);
    drain(senders);
  }
}

// A read begins as soon as one ends, though the port is sending a packet then: two at a time of 600 ns.
TEST(NicScheduler, ReadsOverPcieFollowEachOtherAtOnce) {
  fabric_test::FabricBox box(
      "topology:\n"
      "  back_to_back: {host_rate: 100Gbps}\n"
      "  hosts: {nic: {header_only: true, pcie: {bandwidth: 10Tbps, read_latency: 600ns, outstanding_reads: 2}}}\n"
      "workloads:\n"
      "  short: {type: write_bw, hosts: [h0, h1], size: 256B, qp: 2, duration: 2ms}\n"
      "  long: {type: write_bw, hosts: [h0, h1], size: 4096B, qp: 2, duration: 2ms}\n");
  const Json& all = box.run()["workloads"];
  double sum = 0;
  for (const char* name : {"short", "long"})
    sum += all[name]["details"]["in_duration_bits_per_second"].get<double>() / 1e9;
  EXPECT_NEAR(sum, 2 * (256 + 4096) * 4.0 / 600, 0.01 * 58);
}

// Packets without data, such as ACKs, stand between those whose data are read, and are none of the two.
TEST(NicScheduler, WhatNeedsNoReadLetsNoOtherBegin) {
  fabric_test::FabricBox box(
      "topology:\n"
      "  back_to_back: {host_rate: 100Gbps}\n"
      "  hosts: {nic: {header_only: true, pcie: {bandwidth: 10Tbps, read_latency: 600ns, outstanding_reads: 2}}}\n"
      "workloads:\n"
      "  both: {type: write_bw, hosts: [h0, h1], size: 256B, qp: 4, bidirectional: true, duration: 2ms}\n");
  const double sum = box.run()["workloads"]["both"]["details"]["in_duration_bits_per_second"].get<double>() / 1e9;
  EXPECT_NEAR(sum, 2 * 2 * 256 * 8 / 600.0, 0.02 * 13.7);
}

TEST(NicScheduler, AReadOverPcieTakesItsLatency) {
  Nanos took[2];
  for (const bool pcie : {false, true}) {
    NicBox box(std::string("rate: 100Gbps") + (pcie ? "\npcie: {bandwidth: 100Gbps, read_latency: 700ns}" : ""));
    box.connect();
    box.run(kMillisecond);
    Nanos end = 0;
    box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { end = host.now(); };
    const Nanos begin = box.now;
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1000);
    box.run(kMillisecond);
    took[pcie] = end - begin;
  }
  EXPECT_EQ(took[1] - took[0], 700 + 80);
}

}  // namespace
}  // namespace rocebox::test::scheduling
