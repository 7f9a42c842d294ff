// SPDX-License-Identifier: BSD-3-Clause
// perftest's workloads: rates of their queue pairs, and options that contradict each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "nic_model/host/workloads/perftest_config.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/star_kit.h"

namespace rocebox::test {
namespace {

Json reported(const std::string& name, const std::string& yaml, std::uint64_t seed) {
  Star star(2, "header_only: true\nwindow: 4096", "delay: 1us");
  const auto options = workload_options(name, yaml);
  const auto workload = options->make(star.all, seed);
  star.run(*workload);
  EXPECT_TRUE(workload->finished()) << yaml;
  Json told;
  JsonReport report(told);
  workload->report(report);
  return told;
}

// Whoever is due next has the timer that all of them share.
TEST(Perftest, EachQueuePairIsKeptToTheRateLimit) {
  for (const char* name : {"write_bw", "send_bw"}) {
    const Json told = reported(name, "{qp: 6, size: 1000, size_max: 100kB, rate_limit: 1Gbps, duration: 40ms}", 3);
    std::int64_t least = INT64_MAX, most = 0;
    for (const Json& row : told["queue_pairs"]) {
      const auto bytes = row["bytes_of_a_message"].get<std::int64_t>();
      least = std::min(least, bytes), most = std::max(most, bytes);
      // The first goes at once, and the last may not be back in time.
      EXPECT_NEAR(row["in_duration_bits_per_second"].get<double>(), 1e9, 8.0 * static_cast<double>(bytes) / 40e-3 + 2e6)
          << name << ", messages of " << bytes;
    }
    EXPECT_GT(most, 4 * least) << "sizes that differ";
  }
}

// 64 bytes at 36 Gbps are 14.2 ns: whole nanoseconds would be 1.6% too fast.
TEST(Perftest, ARateLimitHasFractionsOfANanosecond) {
  const Json told =
      reported("write_bw", "{size: 64, mtu: 1024, tx_depth: 2048, rate_limit: 36Gbps, duration: 2ms, cq_mod: 16}", 1);
  EXPECT_NEAR(told["in_duration_bits_per_second"].get<double>(), 36e9, 0.004 * 36e9);
}

// perftest refuses -n beside -D.
TEST(Perftest, MessagesOrATimeAndNotBoth) {
  const auto mistakes = [](const std::string& yaml) {
    const Registry registry;
    config::Mistakes found("test");
    const config::Node node = config::parse_yaml(yaml, found);
    config::FieldsReader reader(&node, found);
    registry.find("write_bw")->options(registry)->fields(reader);
    reader.finish();
    return found.text();
  };
  EXPECT_EQ(mistakes("iters: 5"), "");
  EXPECT_EQ(mistakes("duration: 1ms"), "");
  EXPECT_EQ(mistakes("{iters: 5, duration: 0}"), "") << "no time is given";
  EXPECT_NE(mistakes("{iters: 5, duration: 1ms}").find("`iters`"), std::string::npos);
}

}  // namespace
}  // namespace rocebox::test
