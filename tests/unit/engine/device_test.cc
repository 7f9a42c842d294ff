// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/pipeline_device.h"

#include <gtest/gtest.h>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/engine/script_kernel.h"

namespace rocebox {
namespace {

// A device host <-> k <-> wire around one lambda.
class BumpBox {
 public:
  explicit BumpBox(const std::string& name, test::ScriptKernel::Process process = {}, std::uint64_t seed = 1)
      : pool({.small = 256, .large = 16, .giant = 2}) {
    std::vector<KernelPlan> plans;
    plans.push_back({"k", "script", Shape::kTwoSided, {test::out(0), test::out(1)}, [process](Stats& stats) {
                       stats.counter("drop_mine", "");
                       return std::make_unique<test::ScriptKernel>(process);
                     }});
    bump = std::make_unique<PipelineDevice>(name, std::vector<std::string>{"host", "wire"},
                                            std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, seed);
    bump->set_sink([this](Port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) {
        left.push_back(packet.meta());
        rte_pktmbuf_free(packet.mbuf());
      }
    });
  }
  void send(Nanos now, Port in, const std::vector<std::vector<std::uint8_t>>& frames, std::uint32_t wire_more = 0) {
    std::vector<Packet> packets;
    for (const auto& bytes : frames) {
      PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
      std::copy(bytes.begin(), bytes.end(), packet->data());
      packet->meta().wire_bytes += wire_more;
      packets.push_back(packet.release());
    }
    const Arrivals arrivals{in, packets};
    bump->step(now, {&arrivals, 1});
  }
  Json report() const {
    Json json;
    JsonReport writer(json);
    bump->books().report(writer);
    return json;
  }
  Pool pool;
  std::unique_ptr<PipelineDevice> bump;
  std::vector<PacketMeta> left;
};

TEST(PipelineDevice, CountsPortsAndParseStatuses) {
  BumpBox box("tap");
  const auto roce = test::frame({});
  std::vector<std::uint8_t> arp(60);
  arp[12] = 8, arp[13] = 6;
  box.send(10, 0, {roce, arp, roce});
  box.send(20, 1, {std::vector<std::uint8_t>(roce.begin(), roce.begin() + 20)}, 1000);
  const Json report = box.report();
  EXPECT_EQ(report["ports"]["host"]["rx_packets"], 3);
  EXPECT_EQ(report["ports"]["host"]["rx_bytes"], 2 * roce.size() + 60);
  EXPECT_EQ(report["ports"]["host"]["tx_packets"], 1);
  EXPECT_EQ(report["ports"]["host"]["tx_bytes"], 1020) << "wire bytes, not those held";
  EXPECT_EQ(report["ports"]["wire"]["tx_packets"], 3);
  EXPECT_EQ(report["counters"]["rx_roce"], 2);
  EXPECT_EQ(report["counters"]["rx_not_ip"], 1);
  EXPECT_EQ(report["counters"]["rx_snapped_ip"], 1);
  EXPECT_EQ(report["counters"]["packets_in"], 4);
  EXPECT_EQ(report["counters"]["packets_held"], 0);
  std::int64_t statuses = 0;
  for (const auto& [key, value] : report["counters"].items())
    if (key.starts_with("rx_")) statuses += value.get<std::int64_t>();
  EXPECT_EQ(statuses, 4) << "each packet is counted under one status";
  EXPECT_EQ(report["kernels"]["k"]["type"], "script");
}

TEST(PipelineDevice, FillsSequenceArrivalAndInput) {
  BumpBox box("tap");
  box.send(10, 0, {test::frame({}), test::frame({})});
  box.send(25, 1, {test::frame({})});
  ASSERT_EQ(box.left.size(), 3u);
  for (unsigned i = 0; i < 3; i++) {
    EXPECT_EQ(box.left[i].identity, i + 1);
    EXPECT_EQ(box.left[i].arrival, i < 2 ? 10 : 25);
    EXPECT_EQ(box.left[i].input, i < 2 ? 0 : 1);
    EXPECT_EQ(box.left[i].status, ParseStatus::kRoce);
  }
}

TEST(PipelineDevice, SeedsGoByDeviceName) {
  auto draws = [](const char* name, std::uint64_t seed) {
    std::vector<std::uint64_t> numbers;
    BumpBox box(
        name, [&](Context& c, Port, Batch&) { numbers.push_back(c.random()); }, seed);
    for (int i = 0; i < 4; i++) box.send(i, 0, {test::frame({})});
    return numbers;
  };
  EXPECT_EQ(draws("a", 1), draws("a", 1));
  EXPECT_NE(draws("a", 1), draws("b", 1));
  EXPECT_NE(draws("a", 1), draws("a", 2));
}

TEST(PipelineDevice, NamesItsOwnCountersOnly) {
  BumpBox box("tap");
  Counter stranger;
  EXPECT_EQ(box.bump->books().counter_name(&stranger), "");
  EXPECT_EQ(box.bump->books().counter_name(nullptr), "");
}

TEST(CounterSet, OneCounterANameAndAddressesStay) {
  CounterSet set;
  Counter& first = set.counter("a", "sentence");
  for (int i = 0; i < 1000; i++) set.counter("n" + std::to_string(i), "").add(static_cast<std::uint64_t>(i));
  EXPECT_EQ(&set.counter("a", "other"), &first);
  EXPECT_EQ(set.rows().size(), 1001u);
  EXPECT_EQ(set.read("n999"), 999u);
  EXPECT_EQ(set.read("none"), 0u);
  EXPECT_EQ(set.name_of(&first), "a");
}

TEST(CounterSet, ACounterHasOneKind) {
  CounterSet set;
  set.counter("count", "").add(2);
  set.level("level", "").set(7);
  set.level("level", "").set(4);
  Peak& peak = set.peak("peak", "");
  peak.raise_to(5);
  peak.raise_to(3);
  const std::pair<CounterKind, std::uint64_t> wanted[] = {
      {CounterKind::kCount, 2}, {CounterKind::kLevel, 4}, {CounterKind::kPeak, 5}};
  ASSERT_EQ(set.rows().size(), 3u);
  for (std::size_t i = 0; i < 3; i++) {
    const CounterSet::Row& row = set.rows()[i];
    EXPECT_EQ(std::pair(row.kind(), row.read()), wanted[i]) << row.name;
    EXPECT_EQ(row.counter() != nullptr, i == 0) << "only a count can be why packets are dropped";
  }
  EXPECT_EQ(&set.peak("peak", "again"), &peak);
  EXPECT_THROW(set.counter("peak", ""), std::logic_error);
  EXPECT_THROW(set.peak("count", ""), std::logic_error);
}

}  // namespace
}  // namespace rocebox
