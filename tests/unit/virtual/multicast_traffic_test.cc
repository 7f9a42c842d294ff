// SPDX-License-Identifier: BSD-3-Clause
// Packets to multicast groups through the switches of a topology, and what the report says of tiers.
#include <gtest/gtest.h>

#include "runtime/roce/multicast.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::multicast_traffic_test {
namespace {

using sim_test::StationHost;

// The first `senders` hosts send `times` packets each to a group; what comes to whom is counted, and it never ends.
struct CallConfig {
  std::optional<roce::IpAddress> group = roce::ipv4(239, 1, 0, 1);
  std::int64_t times = 1, senders = 1;
};

class Call final : public Workload {
 public:
  Call(const CallConfig& config, std::span<const WorkloadHost> hosts) : config_(config), got_(hosts.size()) {
    to_.mac = roce::multicast_mac(*config.group);
    to_.address = *config.group;
    for (const WorkloadHost& host : hosts) hosts_.push_back(dynamic_cast<StationHost*>(host.side));
  }
  void start(Nanos) override {
    for (std::size_t i = 0; i < hosts_.size(); i++)
      hosts_[i]->on_received = [this, i](unsigned number, std::uint64_t, Nanos) {
        if (got_[i].size() <= number) got_[i].resize(number + 1);
        got_[i][number]++;
      };
    for (std::int64_t time = 0; time < config_.times; time++)
      for (std::size_t i = 0; i < static_cast<std::size_t>(config_.senders); i++)
        hosts_[i]->post({number_++, &to_, sim_test::kPayload});
  }
  bool finished() const override { return false; }
  Progress progress() const override { return {}; }
  std::span<const FlowRecord> flows() const override { return {}; }
  void explain_waiting(Report&, unsigned) const override {}
  void report(Report& report) const override {
    report.table("hosts", got_.size(), [&](Report& row, std::size_t i) {
      std::int64_t copies = 0, twice = 0;
      for (const unsigned count : got_[i]) {
        copies += count;
        twice += count > 1;
      }
      row.count("copies", copies);
      row.count("twice", twice);
    });
  }

 private:
  class Group final : public StationHost {};
  CallConfig config_;
  Group to_;
  std::vector<StationHost*> hosts_;
  std::vector<std::vector<unsigned>> got_;  // by host and message
  unsigned number_ = 0;
};

class CallOptions final : public WorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.address("group", config_.group, Presence::kRequired, "whom they call");
    f.integer("times", config_.times, {1, 1000}, "packets of each");
    f.integer("senders", config_.senders, {1, 1000}, "hosts that call");
  }
  Range<std::int64_t> hosts() const override { return {1, INT64_MAX}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<Call>(config_, hosts);
  }

 private:
  CallConfig config_;
};

Json run(const std::string& yaml) {
  static const Component rows[] = {workload_component<CallOptions>("call", "to a group")};
  static const bool once = (sim_test::registry().add(rows, "this test"), true);
  EXPECT_TRUE(once);
  sim_test::SimBox box(yaml);
  return box.run();
}

// A packet of a station, without FCS and with ICRC.
constexpr std::int64_t kFrame = sim_test::kPayload + 14 + 20 + 8 + 12 + 4;

const std::string kTopology =
    "topology:\n"
    "  leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 3, host_rate: 10Gbps, spine_rate: 40Gbps}\n"
    "  multicast: [{group: 239.1.0.1}, {group: 239.1.0.2, members: [h0, h1, h8]}, {group: 239.1.0.3, members: [h3, "
    "h5]}]\n"
    "  hosts: {station: {}}\n";

TEST(MulticastTraffic, EachMemberGetsOneCopyAndTiersCountThem) {
  const Json report = run(kTopology +
                          "  switches: {switch: {}}\n"
                          "workloads:\n"
                          "  everyone: {type: call, times: 10, senders: 9}\n"
                          "  three: {type: call, group: 239.1.0.2, times: 5, senders: 2, start: 1ms}\n"
                          "  two: {type: call, group: 239.1.0.3, hosts: [h3, h5], times: 7, start: 2ms}\n"
                          "sim: {time: 3ms}\n");
  for (const Json& host : report["workloads"]["everyone"]["details"]["hosts"]) {
    EXPECT_EQ(host["copies"], 80);
    EXPECT_EQ(host["twice"], 0);
  }
  const std::int64_t three[] = {5, 5, 0, 0, 0, 0, 0, 0, 10};
  for (std::size_t i = 0; i < 9; i++) {
    EXPECT_EQ(report["workloads"]["three"]["details"]["hosts"][i]["copies"], three[i]) << i;
    EXPECT_EQ(report["workloads"]["three"]["details"]["hosts"][i]["twice"], 0) << i;
  }
  EXPECT_EQ(report["workloads"]["two"]["details"]["hosts"][0]["copies"], 0);
  EXPECT_EQ(report["workloads"]["two"]["details"]["hosts"][1]["copies"], 7);
  // Each of 90 packets: to its leaf, to the spine, to two leaves, to eight hosts. Of the 10: to a leaf, one host there,
  // up, down, one host. Of the 7 all at one leaf.
  const Json& traffic = report["traffic"];
  ASSERT_EQ(traffic.size(), 3u) << traffic.dump(1);
  EXPECT_EQ(traffic[0]["workloads"], "everyone");
  EXPECT_EQ(traffic[0]["leaf_rx_bytes"], 90 * 3 * kFrame);
  EXPECT_EQ(traffic[0]["leaf_tx_bytes"], 90 * 9 * kFrame);
  EXPECT_EQ(traffic[0]["spine_rx_bytes"], 90 * kFrame);
  EXPECT_EQ(traffic[0]["spine_tx_bytes"], 90 * 2 * kFrame);
  EXPECT_EQ(traffic[1]["leaf_rx_bytes"], 10 * 2 * kFrame);
  EXPECT_EQ(traffic[1]["leaf_tx_bytes"], 10 * 3 * kFrame);
  EXPECT_EQ(traffic[1]["spine_tx_bytes"], 10 * kFrame);
  EXPECT_EQ(traffic[2]["port_bytes"], 7 * 2 * kFrame);
  EXPECT_EQ(report["tiers"]["leaf"]["rx_packets"], 90 * 3 + 10 * 2 + 7);
  EXPECT_EQ(report["tiers"]["spine"]["switches"], 2);
  EXPECT_EQ(report["tiers"]["leaf"]["ports"], 15);
}

TEST(MulticastTraffic, HostsThatAreNoMembersCannotSend) {
  const Json report = run(kTopology +
                          "  switches: {switch: {}}\n"
                          "workloads: {call: {group: 239.1.0.2, hosts: [h2, h0], times: 4}}\n"
                          "sim: {time: 1ms}\n");
  // Its leaf has the group's tree, and takes part: who may send is what the address says, not the port.
  EXPECT_EQ(report["workloads"]["call"]["details"]["hosts"][1]["copies"], 4);
  const Json elsewhere = run(kTopology +
                             "  switches: {switch: {}}\n"
                             "workloads: {call: {group: 239.1.0.2, hosts: [h3, h0], times: 4}}\n"
                             "sim: {time: 1ms}\n");
  EXPECT_EQ(elsewhere["workloads"]["call"]["details"]["hosts"][1]["copies"], 0);
  EXPECT_EQ(elsewhere["devices"]["leaf1"]["kernels"]["switch"]["counters"]["drop_unknown_mac"], 4)
      << elsewhere["devices"]["leaf1"].dump(1);
}

// The tree of the first group stands on spine0; what is behind a dead link gets nothing, and the link says so.
TEST(MulticastTraffic, WhatADeadLinkLosesIsCountedThere) {
  const Json report = run(kTopology +
                          "  switches: {switch: {}}\n"
                          "workloads: {call: {times: 20, start: 1ms}}\n"
                          "schedule: {cut: {at: 500us, links: {leaf2_spine0: {up: false}}}}\n"
                          "sim: {time: 3ms}\n");
  const Json& hosts = report["workloads"]["call"]["details"]["hosts"];
  for (std::size_t i = 1; i < 6; i++) EXPECT_EQ(hosts[i]["copies"], 20) << i;
  for (std::size_t i = 6; i < 9; i++) EXPECT_EQ(hosts[i]["copies"], 0) << i;
  const Json& lost = report["links"]["leaf2_spine0"]["counters"];
  EXPECT_EQ(lost["reverse_drop_down"], 20) << lost.dump(1);
}

// Nine members send at once: each host's port gets eight times what it can carry. What the buffer does not take is
// dropped and counted, copy by copy; with a lossless class nothing is.
TEST(MulticastTraffic, ReplicasObeyTheBufferAndMarksAndPauses) {
  const auto with = [](const std::string& manager) {
    return run(kTopology + "  switches: {switch: {traffic_manager: {" + manager +
               "}}}\nworkloads: {call: {times: 30, senders: 9}}\nsim: {time: 20ms}\n");
  };
  const auto copies = [](const Json& report) {
    std::int64_t sum = 0;
    for (const Json& host : report["workloads"]["call"]["details"]["hosts"]) sum += host["copies"].get<std::int64_t>();
    return sum;
  };
  const auto count = [](const Json& report, const std::string& name) {
    std::int64_t sum = 0;
    for (const auto& [device, one] : report["devices"].items())
      if (one["kernels"].contains("switch"))
        for (const auto& [key, value] : one["kernels"]["switch"]["counters"].items())
          if (key == name) sum += value.get<std::int64_t>();
    return sum;
  };
  const std::int64_t all = 9 * 30 * 8;
  const Json small = with("buffer: 64KiB, alpha: 1");
  EXPECT_LT(copies(small), all);
  EXPECT_GT(copies(small), all / 10);
  // A copy that is lost at the spine, or on the way there, would have become three or six.
  EXPECT_GE(all - copies(small), count(small, "drop_buffer_full"));
  EXPECT_GT(count(small, "drop_buffer_full"), 0) << small["devices"]["leaf0"]["kernels"].dump(1);
  const Json deep = with("buffer: 16MiB, alpha: 16, ecn: {min: 8KiB, max: 16KiB}");
  EXPECT_EQ(copies(deep), all);
  EXPECT_EQ(count(deep, "drop_buffer_full"), 0);
  EXPECT_GT(count(deep, "ecn_marked_packets"), all / 2) << "most find a long queue";
  // So small an alpha would drop; a lossless class holds the spines up instead. Stations do not know pauses.
  const Json narrow = with("buffer: 16MiB, alpha: 0.01"),
             lossless = with("buffer: 16MiB, alpha: 0.01, pfc: {classes: [0], xoff: 32KiB, xon: 16KiB}");
  EXPECT_GT(count(narrow, "drop_buffer_full"), 0);
  EXPECT_EQ(copies(lossless), all);
  EXPECT_EQ(count(lossless, "drop_buffer_full"), 0);
  EXPECT_GT(count(lossless, "tx_pause_frames"), 0);
}

}  // namespace
}  // namespace rocebox::multicast_traffic_test
