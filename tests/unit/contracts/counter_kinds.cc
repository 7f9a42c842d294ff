// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/contracts/counter_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/engine/pipeline_device.h"
#include "runtime/telemetry/json_report.h"
#include "runtime/telemetry/metrics.h"
#include "tests/unit/contracts/traffic.h"
#include "tests/unit/harness.h"

namespace rocebox::test {
namespace {

constexpr PoolSizes kShardPool{.small = 8192, .large = 64, .giant = 4};
constexpr std::string_view kKernelName = "kernel";
unsigned peaks = 0;

struct Number {
  CounterKind kind;
  std::uint64_t value;
};
// By `KERNEL.COUNTER`, KERNEL empty for the device's own.
using Numbers = std::map<std::string, Number>;

Numbers numbers_of(const Device& device) {
  Numbers all;
  device.books().for_each_counter([&](const CounterView& view) {
    if (!view.port.empty()) return;
    const auto [place, is_new] =
        all.try_emplace(std::string(view.kernel) + "." + std::string(view.name), Number{view.kind, view.value});
    EXPECT_TRUE(is_new) << place->first << " is told twice";
    EXPECT_EQ(view.kind == CounterKind::kPeak, view.name.ends_with("_max"))
        << place->first << " is a " << kind_name(view.kind) << ": the name would mislead who reads it";
  });
  return all;
}

class ShardDevice {
 public:
  ShardDevice(const KernelOptions& type, const std::function<std::unique_ptr<Kernel>(Stats&)>& make)
      : pool_(kShardPool) {
    std::vector<Edge> inputs, outputs;
    std::vector<std::string> ports;
    for (Port port = 0; port < type.inputs(); port++) inputs.push_back({0, port});
    for (Port port = 0; port < type.outputs(); port++) outputs.push_back({Edge::kOutside, port});
    for (Port port = 0; port < std::max(type.inputs(), type.outputs()); port++)
      ports.push_back("p" + std::to_string(port));
    std::vector<KernelPlan> plans;
    plans.push_back({std::string(kKernelName), "any", type.shape(), std::move(outputs), make});
    bump_ = std::make_unique<PipelineDevice>("device", std::move(ports), std::move(inputs), std::move(plans), pool_, 1);
    bump_->set_sink([](Port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
    });
  }

  void run(const std::vector<TrafficPacket>& traffic) {
    Numbers before = numbers_of(*bump_);
    for (std::size_t i = 0; i < traffic.size(); i++) {
      while (bump_->next_deadline() < traffic[i].at) bump_->step(bump_->next_deadline(), {});
      PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(traffic[i].bytes.size()));
      ASSERT_TRUE(packet) << "the kernel holds more packets than the test's pool has";
      std::memcpy(packet->data(), traffic[i].bytes.data(), traffic[i].bytes.size());
      packet->meta().wire_bytes = traffic[i].wire_bytes;
      Packet only = packet.release();
      const Arrivals arrivals{traffic[i].in, {&only, 1}};
      bump_->step(traffic[i].at, {&arrivals, 1});
      if (i % 64 != 0) continue;
      Numbers now = numbers_of(*bump_);
      for (const auto& entry : now)
        EXPECT_TRUE(entry.second.kind == CounterKind::kLevel || entry.second.value >= before[entry.first].value)
            << entry.first << " has sunk";
      before = std::move(now);
    }
  }

  const Device& device() const { return *bump_; }

 private:
  Pool pool_;
  std::unique_ptr<PipelineDevice> bump_;
};

// The value behind a sample's name, which ends at a blank.
std::string sample(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  if (at == std::string::npos) return "none";
  const std::size_t from = at + name.size() + 2;
  return text.substr(from, text.find('\n', from) - from);
}

}  // namespace

void check_counter_kinds(const KernelOptions& type, const std::function<std::unique_ptr<Kernel>(Stats&)>& make) {
  Json report;
  JsonReport writer(report);
  Metrics metrics("");
  std::vector<Numbers> shards;
  for (std::uint64_t seed : {1u, 2u}) {
    ShardDevice shard(type, make);
    shard.run(mixed_traffic(seed, 100 + 300 * seed, type.inputs()));
    shard.device().books().report(writer);
    shards.push_back(numbers_of(shard.device()));
    for (const auto& entry : shards.back())
      metrics.number(entry.second.kind, "x" + entry.first, "s", {}, static_cast<double>(entry.second.value));
  }
  const std::string text = metrics.text();
  ASSERT_EQ(shards[0].size(), shards[1].size());
  for (const auto& entry : shards[0]) {
    const std::string& name = entry.first;
    ASSERT_TRUE(shards[1].contains(name)) << name;
    const Number one = entry.second, other = shards[1][name];
    ASSERT_EQ(one.kind, other.kind) << name;
    const bool is_peak = one.kind == CounterKind::kPeak, is_count = one.kind == CounterKind::kCount;
    if (is_peak && one.value != 0 && other.value != 0) peaks++;
    const std::uint64_t both = is_peak ? std::max(one.value, other.value) : one.value + other.value;

    const std::size_t dot = name.find('.');
    const Json& owner = dot == 0 ? report : report["kernels"][std::string(kKernelName)];
    EXPECT_EQ(owner["counters"][name.substr(dot + 1)], both) << name;
    std::string metric = "x" + name;
    std::replace(metric.begin(), metric.end(), '.', '_');
    EXPECT_EQ(sample(text, metric + (is_count ? "_total" : "")), std::to_string(both)) << name;
    EXPECT_NE(("\n" + text).find("\n# TYPE " + metric + (is_count ? " counter\n" : " gauge\n")), std::string::npos)
        << name;
  }
}

unsigned peaks_compared() { return peaks; }

}  // namespace rocebox::test
