// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "runtime/drives/live/live.h"

namespace rocebox {
namespace {

// This process, kept to two CPUs while the test runs.
class TwoCpus {
 public:
  TwoCpus() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &two), cpus.push_back(static_cast<unsigned>(cpu));
    sched_setaffinity(0, sizeof two, &two);
  }
  ~TwoCpus() { sched_setaffinity(0, sizeof before_, &before_); }
  std::vector<unsigned> cpus;

 private:
  cpu_set_t before_;
};

TEST(Cores, AreThoseOfTheListOrTheLastOnes) {
  TwoCpus two;
  if (two.cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const unsigned a = two.cpus[0], b = two.cpus[1];
  config::LiveOptions options;
  using List = std::vector<unsigned>;
  EXPECT_EQ(choose_cores("", options), List{b});
  EXPECT_EQ(choose_cores(std::to_string(a), options), List{a});
  EXPECT_EQ(choose_cores(fmt::format("{},{}", b, a), options), (List{b, a}));
  if (b == a + 1) {
    EXPECT_EQ(choose_cores(fmt::format("{}-{}", a, b), options), (List{a, b}));
  }
  options.shards = 3;  // shards that pause may share a CPU
  EXPECT_EQ(choose_cores("", options), (List{b, a, b}));
  options.idle = config::Idle::kPoll;
  EXPECT_THROW(choose_cores("", options), ConfigError);
  for (const char* list : {"x", "1-", "-1", "3-1", "1,,2", "0-100000", "1 2", "4095", "1;2"})
    EXPECT_THROW(choose_cores(list, options), ConfigError) << list;
}

}  // namespace
}  // namespace rocebox
