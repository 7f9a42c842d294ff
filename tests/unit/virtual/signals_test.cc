// SPDX-License-Identifier: BSD-3-Clause
// What a report says of losses and congestion over all devices.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::signals_test {
namespace {

Json incast(const std::string& manager) {
  fabric_test::FabricBox box(
      "topology:\n"
      "  dumbbell: {hosts_per_side: 2, host_rate: 100Gbps, bottleneck_rate: 100Gbps}\n"
      "  hosts: {nic: {header_only: true}}\n"
      "  switches: {switch: {traffic_manager: {" +
      manager +
      "}}}\n"
      "workloads: {incast: {size: 1MB, timeout: 8}}\n");
  return box.run();
}

// What all counters of devices come to, a whole microsecond being the unit of NICs.
TEST(Signals, AreSumsOverAllDevices) {
  const Json report = incast("buffer: 1MiB, pfc: {classes: [0], xoff: 20KiB, xon: 10KiB}");
  std::map<std::string, std::uint64_t> sums;
  for (const auto& [device, one] : report["devices"].items())
    for (const auto& [kernel, its] : one["kernels"].items())
      for (const auto& [name, value] : its["counters"].items()) sums[name] += value.get<std::uint64_t>();
  const Json& signals = report["signals"];
  EXPECT_GT(signals["tx_pause_frames"], 0);
  EXPECT_GT(signals["rx_prio0_pause_duration"], 0);
  EXPECT_EQ(signals["rx_prio1_pause_duration"], 0);
  for (const auto& [name, value] : signals.items())
    EXPECT_TRUE(name == "pause_time_ns" || value.get<std::uint64_t>() == sums[name]) << name;
  EXPECT_EQ(signals["pause_time_ns"].get<std::uint64_t>(),
            1000 * sums["rx_prio0_pause_duration"] + sums["rx_pause_duration_ns"]);
}

TEST(Signals, CountWhatWasSentAgain) {
  const Json report = incast("buffer: 30KiB");
  for (const char* name : {"retransmitted_packets", "packet_seq_err", "drop_buffer_full"})
    EXPECT_GT(report["signals"][name], 0) << name;
}

}  // namespace
}  // namespace rocebox::signals_test
