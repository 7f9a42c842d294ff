// SPDX-License-Identifier: BSD-3-Clause
// What a report has over time.
#include "runtime/drives/virtual/series.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::series_test {
namespace {

std::string incast(const std::string& more) {
  return "topology:\n"
         "  dumbbell: {hosts_per_side: 2, host_rate: 10Gbps, bottleneck_rate: 10Gbps}\n"
         "  hosts: {nic: {header_only: true, dcqcn: {enabled: true}}}\n"
         "  switches: {switch: {traffic_manager: {ecn: {min: 20KB, max: 100KB, probability: 50%}}}}\n"
         "workloads: {incast: {size: 1MB}}\n" +
         more;
}

std::uint64_t sum(const Json& column) {
  std::uint64_t all = 0;
  for (const Json& one : column) all += one.get<std::uint64_t>();
  return all;
}

TEST(Series, SamplesAddUpToTheCounters) {
  fabric_test::FabricBox box(incast(""));
  const Json& report = box.run();
  const Json& series = report["series"];
  std::uint64_t cnps = 0, marked = 0;
  for (const char* host : {"h0", "h1", "h2", "h3"}) cnps += box.count(host, "np_cnp_sent");
  for (const char* each : {"left", "right"}) marked += box.count(each, "ecn_marked_packets");
  ASSERT_GT(cnps, 0u);
  EXPECT_LE(sum(series["counts"]["nic.np_cnp_sent"]), cnps) << "drained";
  EXPECT_GE(sum(series["counts"]["nic.np_cnp_sent"]) + 4, cnps);
  EXPECT_EQ(sum(series["counts"]["switch.ecn_marked_packets"]), marked);
  const std::size_t rows = series["at_ns"].size();
  EXPECT_GT(rows, 16u);
  EXPECT_LE(rows, 256u);
  for (const auto& [name, column] : series["counts"].items()) EXPECT_EQ(column.size(), rows) << name;
  EXPECT_EQ(series["end_ns"], report["run"]["span_ns"]);
  EXPECT_FALSE(series["counts"].contains("nic.drop_no_qp")) << "0 throughout";
}

TEST(Series, LevelsAndLoadsAreWhatTheyAreThen) {
  fabric_test::FabricBox box(incast("sim: {sample: 50us}\n"));
  const Json& series = box.run()["series"];
  EXPECT_EQ(series["at_ns"][1], 50'000) << "as wide as was asked for";
  const Json& queue = series["levels"]["left.switch.buffer_bytes"];
  std::uint64_t most = 0;
  for (const Json& bytes : queue) most = std::max(most, bytes.get<std::uint64_t>());
  EXPECT_GT(most, 20'000u) << "three senders, one port";
  EXPECT_LE(most, box.count("left", "buffer_bytes_max"));
  // It waits at that port alone: to h1 on the same switch next to nothing goes.
  const Json& waiting = series["levels"]["left.switch.queue_bytes.p0"];
  for (std::size_t i = 0; i < queue.size(); i++) {
    EXPECT_LE(waiting[i], queue[i]);
    EXPECT_GE(waiting[i].get<double>(), 0.8 * queue[i].get<double>()) << i;
  }
  const auto highest_of = [&](const char* port) {
    const std::string name = std::string("left.switch.queue_bytes.") + port;
    return series["levels"].contains(name) ? std::ranges::max(series["levels"][name].get<std::vector<double>>()) : 0;
  };
  EXPECT_GT(highest_of("p0"), 20'000);
  EXPECT_LT(highest_of("p1"), 5'000);
  // Two hosts on the right and one on the left send to h0, whose link is the bottleneck.
  const Json& load = series["utilisation"]["h0_left from left.p0"];
  ASSERT_EQ(load.size(), series["at_ns"].size());
  double highest = 0;
  for (const Json& share : load) highest = std::max(highest, share.get<double>());
  EXPECT_NEAR(highest, 1, 0.03) << "until the senders slow down";
}

TEST(Series, TheRunIsTheSameWhateverIsSampled) {
  std::set<std::string> hashes;
  for (const char* sample : {"0", "1us", "7us", "1ms"}) {
    fabric_test::FabricBox box(incast("sim: {sample: " + std::string(sample) + "}\n"));
    hashes.insert(box.run()["hash"].get<std::string>());
  }
  EXPECT_EQ(hashes.size(), 1u);
}

// Also where there is no room for as many samples as were asked for.
TEST(Series, GoodputHasTheSameSteps) {
  for (const char* sample : {"50us", "20ns"}) {
    fabric_test::FabricBox box(incast("sim: {sample: " + std::string(sample) + "}\n"));
    const Json& report = box.run();
    Json at = Json::array();
    for (const Json& row : report["goodput"]) at.push_back(row["at_ns"]);
    EXPECT_EQ(at, report["series"]["at_ns"]) << sample;
    double bits = 0;
    for (const Json& row : report["goodput"])
      bits += row["incast_bits_per_second"].get<double>() *
              static_cast<double>(
                  std::min(at[1].get<Nanos>(), report["run"]["span_ns"].get<Nanos>() - row["at_ns"].get<Nanos>())) /
              1e9;
    EXPECT_NEAR(bits, 3 * 8e6, 8e3) << sample;
  }
}

// However long it is: steps double.
TEST(Series, AnyRunHasAboutAsManySamples) {
  for (const char* time : {"100us", "1ms", "100ms"}) {
    fabric_test::FabricBox box(incast("sim: {time: " + std::string(time) + "}\n") + "");
    const Json& series = box.run()["series"];
    EXPECT_LE(series["at_ns"].size(), 256u) << time;
    EXPECT_GE(series["at_ns"].size(), 16u) << time;
    EXPECT_EQ(series["at_ns"][0], 0);
  }
}

}  // namespace
}  // namespace rocebox::series_test
