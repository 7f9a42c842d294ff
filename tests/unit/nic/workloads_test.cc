// SPDX-License-Identifier: BSD-3-Clause
// Workloads over NICs that stand at one switch.
#include <gtest/gtest.h>

#include "nic_model/host/workloads/collectives.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

// Hosts at a learning switch, each by a wire of its own.
class Star {
 public:
  Star(unsigned hosts, const std::string& nic, const std::string& link)
      : pool({.small = 16384, .large = 64, .giant = 2}), fabric([](FabricPort, std::span<Packet>, Nanos) {}) {
    std::string ports;
    for (unsigned i = 0; i < hosts; i++) ports += (i ? ", p" : "p") + std::to_string(i);
    options.push_back(nic_test_options(
        "switch", "ports: [" + ports + "]\ntraffic_manager: {rate: 100Gbps, buffer: 16MiB, packets: 65536}"));
    add("s", 0, Shape::kOneWay, hosts);
    for (unsigned i = 0; i < hosts; i++) {
      options.push_back(nic_test_options(
          "nic", "address: 10.0.0." + std::to_string(i + 1) + "\nheader_only: true\nrate: 100Gbps\n" + nic));
      const unsigned device = add("h", options.size() - 1, Shape::kOneWay, 1);
      HostSide* side = devices[device]->host_side();
      side->set_waker([this, device] { fabric.wake(device); });
      all.push_back({"h" + std::to_string(i), side});
      options.push_back(nic_test_options("link", link));
      const unsigned wire = add("w", options.size() - 1, Shape::kTwoSided, 2);
      fabric.join({device, 0}, {wire, 0});
      fabric.join({wire, 1}, {0, static_cast<Port>(i)});
    }
  }
  unsigned add(const std::string& name, std::size_t option, Shape shape, unsigned count) {
    std::vector<std::string> ports;
    std::vector<Edge> in, out;
    for (unsigned p = 0; p < count; p++) {
      ports.push_back("p" + std::to_string(p));
      in.push_back({0, static_cast<Port>(p)});
      out.push_back({Edge::kOutside, static_cast<Port>(p)});
    }
    std::vector<KernelPlan> plans;
    plans.push_back({"k", "k", shape, out, [this, option](Stats& stats) { return options[option]->make(stats); }});
    devices.push_back(
        std::make_unique<PipelineDevice>(name + std::to_string(devices.size()), ports, in, std::move(plans), pool, 1));
    devices.back()->set_batch_max(1);
    return fabric.add(*devices.back());
  }
  void run(Workload& workload) {
    workload.start(0);
    fabric.run(0);
    while (!workload.finished() && fabric.next_deadline() < 100 * kSecond) fabric.run(now = fabric.next_deadline());
  }
  Pool pool;
  std::vector<std::unique_ptr<KernelOptions>> options;
  std::vector<std::unique_ptr<PipelineDevice>> devices;
  std::vector<WorkloadHost> all;
  Fabric fabric;
  Nanos now = 0;
};

std::unique_ptr<WorkloadOptions> workload_options(const std::string& name, const std::string& yaml) {
  static const Registry registry;
  config::Mistakes mistakes("test");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  std::unique_ptr<Options> options = registry.find(name)->options(registry);
  options->fields(reader);
  reader.finish();
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return std::unique_ptr<WorkloadOptions>(static_cast<WorkloadOptions*>(options.release()));
}

TEST(Workloads, CollectivesMoveWhatTheyMust) {
  struct Case {
    const char *name, *yaml;
    std::size_t transfers;
    std::uint64_t bytes;
  };
  for (const Case& one : {Case{"all_reduce", "size: 8MiB", 8 * 14, 8ull * 14 << 20},
                          Case{"all_reduce", "{size: 8MiB, algorithm: halving_doubling}", 8 * 6, 8ull * 14 << 20},
                          Case{"all_gather", "size: 8MiB", 8 * 7, 8ull * 7 << 20},
                          Case{"all_gather", "{size: 8MiB, algorithm: linear}", 8 * 7, 8ull * 7 << 20},
                          Case{"all_gather", "{size: 8MiB, algorithm: recursive_doubling}", 8 * 3, 8ull * 7 << 20},
                          Case{"broadcast", "size: 8MiB", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, radix: 3}", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, groups: 2, radix: 4}", 6, 6ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, algorithm: binary_tree}", 7, 7ull * 8 << 20},
                          Case{"broadcast", "{size: 8MiB, algorithm: binary_tree, segments: 5}", 35, 7ull * 8 << 20},
                          Case{"reduce_scatter", "{size: 8MiB, groups: 2}", 8 * 3, 8ull * 3 << 21},
                          Case{"all_to_all", "size: 8MiB", 8 * 7, 8ull * 7 << 20},
                          Case{"permutation", "{size: 1MiB, order: random}", 8, 8ull << 20},
                          Case{"incast", "size: 1MiB", 7, 7ull << 20}}) {
    Star star(8, "", "delay: 1us");
    const auto options = workload_options(one.name, one.yaml);
    const auto workload = options->make(star.all, 7);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << one.name;
    EXPECT_EQ(workload->flows().size(), one.transfers) << one.name << one.yaml;
    std::uint64_t bytes = 0;
    for (const FlowRecord& flow : workload->flows()) bytes += flow.bytes;
    EXPECT_EQ(bytes, one.bytes) << one.name << one.yaml;
  }
}

TEST(Workloads, APermutationRunsAtLineRate) {
  Star star(8, "", "delay: 1us");
  const auto workload = workload_options("permutation", "size: 16MiB")->make(star.all, 7);
  star.run(*workload);
  // 4096 packets of 4096 + 16 (RETH of the first) + 58 + 24 bytes, ICRC included, and four wires' delay.
  const double least = 4096 * (4096 + 58 + 24) * 8.0 / 100;
  EXPECT_GT(static_cast<double>(star.now), least);
  EXPECT_LT(static_cast<double>(star.now), least * 1.02);
}

// The numbers of a report.
struct NumbersOf final : rocebox::Report {
  std::map<std::string, double> values;
  void count(std::string_view name, std::int64_t value) override {
    values[std::string(name)] = static_cast<double>(value);
  }
  void real(std::string_view name, double value) override { values[std::string(name)] = value; }
  void flag(std::string_view, bool) override {}
  void text(std::string_view, std::string_view) override {}
  void duration(std::string_view name, std::int64_t nanos) override { count(name, nanos); }
  void object(std::string_view, const std::function<void(rocebox::Report&)>&) override {}
  void table(std::string_view, std::size_t, const std::function<void(rocebox::Report&, std::size_t)>&) override {}
};

TEST(Workloads, PerftestMeasuresWhatTheWireAllows) {
  const auto run = [](const std::string& name, const std::string& yaml) {
    Star star(2, "", "delay: 1us");
    const auto options = workload_options(name, yaml);
    const auto workload = options->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << name << yaml;
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["failed_completions"], 0) << name;
    return report.values;
  };
  const double share = 4096.0 / (4096 + 58 + 24);
  for (const char* name : {"write_bw", "read_bw", "send_bw"}) {
    const double rate = run(name, "{size: 1MiB, iters: 50, qp: 2}")["average_bits_per_second"];
    EXPECT_GT(rate, 0.97e11 * share) << name;
    EXPECT_LT(rate, 1.0e11 * share) << name;
  }
  const double both = run("write_bw", "{size: 1MiB, iters: 50, bidirectional: true}")["average_bits_per_second"];
  EXPECT_GT(both, 1.9e11 * share);
  const double limited = run("write_bw", "{size: 64KiB, iters: 100, rate_limit: 10Gbps}")["average_bits_per_second"];
  EXPECT_NEAR(limited, 1e10, 2e8);
  EXPECT_EQ(run("write_bw", "{size: 64KiB, duration: 1ms, connection: UC}")["messages"] > 150, true);
  // Two wires of 1 us, and a packet through three serialisers of 100 Gbit/s.
  for (const char* name : {"write_lat", "send_lat"}) EXPECT_NEAR(run(name, "iters: 20")["t_typical"], 2020, 20) << name;
  EXPECT_NEAR(run("read_lat", "iters: 20")["t_typical"], 4040, 40);
}

// A doubled message of an unreliable connection is a message to its NIC, but not one more to respond to.
TEST(Workloads, LatencyTestsEndWhereTheNetworkDoublesMessages) {
  for (const char* name : {"write_lat", "send_lat"}) {
    Star star(2, "", "{delay: 1us, duplicate: 60%}");
    const auto workload = workload_options(name, "{iters: 13, connection: UC}")->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << name;
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["messages"], 13) << name;
    EXPECT_TRUE(report.values["t_min"] > 2000 || name == std::string("send_lat"));
    int events = 0;
    while (star.fabric.next_deadline() < 100 * kSecond && ++events < 10'000)
      star.fabric.run(star.now = star.fabric.next_deadline());
    EXPECT_LT(events, 10'000) << name << " goes on after its end";
  }
}

// Completions of some messages only, and time or a rate that cut the last ones off.
TEST(Workloads, PerftestEndsAndCountsAllMessages) {
  struct Case {
    const char* yaml;
    double messages;  // 0: as many as come in the time
  };
  for (const Case& one : {Case{"{size: 1KiB, iters: 5, tx_depth: 8, cq_mod: 4}", 5},
                          Case{"{size: 1KiB, iters: 7, tx_depth: 4, cq_mod: 4, qp: 3}", 21},
                          Case{"{size: 1KiB, iters: 9, tx_depth: 2, cq_mod: 2, qp: 2, bidirectional: true}", 36},
                          Case{"{size: 4KiB, duration: 20us, rate_limit: 1Gbps}", 0},
                          Case{"{size: 4KiB, duration: 20us, rate_limit: 1Gbps, tx_depth: 4, cq_mod: 4}", 0},
                          Case{"{size: 4KiB, duration: 20us, tx_depth: 4, cq_mod: 4}", 0}}) {
    Star star(2, "", "delay: 1us");
    const auto options = workload_options("write_bw", one.yaml);
    const auto workload = options->make(star.all, 1);
    star.run(*workload);
    EXPECT_TRUE(workload->finished()) << one.yaml;
    NumbersOf report;
    workload->report(report);
    EXPECT_TRUE(one.messages == 0 || report.values["messages"] == one.messages) << one.yaml;
  }
}

TEST(Workloads, ThoseWithNothingToSendEnd) {
  Star star(2, "", "delay: 1us");
  const auto workload = workload_options("permutation", "shift: 2")->make(star.all, 1);
  star.run(*workload);
  EXPECT_TRUE(workload->finished());
}

// The immediate says which transfer has ended; here a bit of it was flipped, and nobody checks ICRCs.
TEST(Workloads, AnImmediateThatNobodySentEndsNothing) {
  for (const char* mask : {"0x80", "0x01"}) {
    Star star(3, "icrc: false",
              std::string("delay: 1us\nforward: {events: [{opcode: 0x0b, do: corrupt, offset: ") +
                  (mask[2] == '8' ? "70" : "73") + ", mask: " + mask + "}]}");
    const auto workload =
        workload_options("flows", "flows: [{source: 0, destination: 1, bytes: 100B}]")->make(star.all, 1);
    star.run(*workload);
    EXPECT_FALSE(workload->finished());
    NumbersOf report;
    workload->report(report);
    EXPECT_EQ(report.values["unexpected_messages"], 1);
  }
}

TEST(Workloads, LossDelaysAndLosesNothing) {
  Star star(4, "", "delay: 1us\nloss: 0.5%");
  const auto workload = workload_options("all_reduce", "{size: 4MiB, timeout: 8}")->make(star.all, 7);
  star.run(*workload);
  EXPECT_TRUE(workload->finished());
}

}  // namespace
}  // namespace rocebox::test
