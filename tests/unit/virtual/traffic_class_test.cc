// SPDX-License-Identifier: BSD-3-Clause
// Traffic classes of workloads, from YAML to the wire, to groups of a NIC's scheduler and to classes of switches.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "runtime/roce/hop_fields.h"
#include "runtime/roce/parse.h"
#include "tests/unit/nic/star_kit.h"
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::traffic_class_test {
namespace {

// Traffic classes of what each host sends to queue pairs that are not CM's, by host.
std::map<unsigned, std::set<unsigned>> classes_of(unsigned hosts, const std::string& nic, const char* name,
                                                  const std::string& yaml) {
  test::Star star(hosts, nic, "delay: 1us");
  std::map<unsigned, std::set<unsigned>> seen;
  for (unsigned host = 0; host < hosts; host++)
    star.fabric.tap({1 + 2 * host, 0}, [&, host](FabricPort, std::span<const Packet> packets, Nanos) {
      for (const Packet packet : packets)
        if (packet.meta().bth_offset && static_cast<std::uint32_t>(roce::bth(packet).destination_qp) != 1)
          seen[host].insert(roce::tos(packet));
    });
  const auto workload = test::workload_options(name, yaml)->make(star.all, 1);
  star.run(*workload);
  EXPECT_TRUE(workload->finished()) << name << yaml;
  return seen;
}

using Classes = std::set<unsigned>;

// Requests one way, ACKs and responses the other.
TEST(TrafficClass, IsOnTheWireBothWays) {
  for (const char* name : {"write_bw", "read_bw", "send_bw", "atomic_bw", "write_lat", "send_lat"})
    for (const auto& [nic, wanted] :
         {std::pair("", 0x68u), {"dcqcn: {enabled: true}", 0x6Au}}) {  // with ECT(0), whatever the options say there
      SCOPED_TRACE(std::string(name) + " " + nic);
      const auto seen = classes_of(2, std::string("mtu: 4200\n") + nic, name, "{iters: 20, traffic_class: 0x68}");
      EXPECT_EQ(seen.at(0), Classes{wanted});
      EXPECT_EQ(seen.at(1), Classes{wanted});
    }
  for (const auto& [name, yaml] : {std::pair("permutation", "{"),
                                   {"incast", "{rdma_cm: true, "},
                                   {"all_reduce", "{"},
                                   {"all_gather", "{rdma_cm: true, "},
                                   {"flows", "{flows: [{source: 2, destination: 1}], "}}) {
    SCOPED_TRACE(name);
    for (const auto& [host, seen] : classes_of(4, "header_only: true", name, yaml + std::string("traffic_class: 96}")))
      EXPECT_EQ(seen, Classes{96u}) << host;
    for (const auto& [host, seen] : classes_of(4, "header_only: true", name, yaml + std::string("tx_depth: 64}")))
      EXPECT_EQ(seen, Classes{0u}) << host;
  }
}

// Two workloads of one NIC, which has these options.
std::string two_of_a_host(const std::string& nic) {
  return "topology:\n"
         "  back_to_back: {host_rate: 10Gbps}\n"
         "  hosts: {nic: {header_only: true, " +
         nic +
         "}}\n"
         "workloads:\n"
         "  urgent: {type: write_bw, hosts: [h0, h1], size: 64KiB, tx_depth: 8, duration: 1ms, traffic_class: 0xA0}\n"
         "  bulk: {type: write_bw, hosts: [h0, h1], size: 64KiB, tx_depth: 8, duration: 1ms, traffic_class: 0x20}\n";
}

TEST(TrafficClass, ChoosesAGroupOfTheScheduler) {
  const auto rates = [](const std::string& nic) {
    fabric_test::FabricBox box(two_of_a_host(nic));
    const Json& all = box.run()["workloads"];
    const auto of = [&](const char* name) {
      return all[name]["details"]["in_duration_bits_per_second"].template get<double>();
    };
    return std::pair(of("urgent"), of("bulk"));
  };
  const auto [first, second] = rates("window: 512");
  EXPECT_NEAR(first, second, 0.1 * first) << "one group for all";
  const auto [strict, rest] = rates("scheduler: {groups: [{priority: 5, strict: true}]}");
  EXPECT_GT(strict, 9.2e9);
  EXPECT_LT(rest, 0.5e9);
  const auto [three, one] = rates("scheduler: {groups: [{priority: 5, weight: 3}, {priority: 1, weight: 1}]}");
  EXPECT_NEAR(three / one, 3, 0.3);
}

// Three hosts send to the first, two of them over another switch; of one class, which switches pause, nothing is lost.
TEST(TrafficClass, ALosslessClassLosesNothing) {
  fabric_test::FabricBox box(
      "topology:\n"
      "  dumbbell: {hosts_per_side: 2, host_rate: 10Gbps, bottleneck_rate: 10Gbps}\n"
      "  hosts: {nic: {header_only: true}}\n"
      "  switches: {switch: {traffic_manager: {class_of: dscp, buffer: 4MiB, packets: 16384, alpha: 0.0625, pfc: "
      "{classes: [3], "
      "xoff: 64KiB, xon: 32KiB}}}}\n"
      "workloads:\n"
      "  lossless: {type: incast, size: 4MB, traffic_class: 0x60}\n"
      "  lossy: {type: incast, size: 4MB, traffic_class: 0x20, timeout: 8, after: [lossless]}\n");
  const Json& report = box.run();
  ASSERT_TRUE(box.sim.succeeded());
  std::uint64_t paused = 0;
  for (const char* host : {"h1", "h2", "h3"}) {
    paused += box.count(host, "rx_prio3_pause");
    EXPECT_EQ(box.count(host, "rx_prio1_pause"), 0u);
  }
  EXPECT_GT(paused, 3u);
  // 12 MB over the one link, and headers: nothing was sent twice.
  EXPECT_NEAR(report["workloads"]["lossless"]["duration_ns"].get<double>(), 12e6 * 0.8 * 4178 / 4096,
              0.01 * 12e6 * 0.8);
  EXPECT_GT(box.count("left", "drop_buffer_full"), 0u) << "the other class is dropped";
}

}  // namespace
}  // namespace rocebox::traffic_class_test
