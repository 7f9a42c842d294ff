// SPDX-License-Identifier: BSD-3-Clause
// The loss recovery of workloads' own, of all that make reliable queue pairs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/component/registry.h"
#include "runtime/config/describe.h"
#include "runtime/drives/virtual/sim.h"
#include "runtime/packet/pool.h"

namespace rocebox::test::workload_recovery {
namespace {

struct Outcome {
  std::string mistakes;
  Json report;
};

// Two NICs, each with options of its own, on a line; `workloads` are written in YAML's flow style.
Outcome simulate(const std::string& workloads, const std::string& nic_a, const std::string& nic_b,
                 const std::string& line = "delay: 2us, loss: 0.5%") {
  Registry registry;
  config::Mistakes mistakes("f.yaml");
  const config::RunConfig config =
      config::load_text(fmt::format("devices:\n"
                                    "  a: {{nic: {{address: 10.0.0.1, rate: 10Gbps, dpa: {{heap: 64MiB}}, {}}}}}\n"
                                    "  b: {{nic: {{address: 10.0.0.2, rate: 10Gbps, dpa: {{heap: 64MiB}}, {}}}}}\n"
                                    "links:\n  line: {{between: [a.wire, b.wire], {}}}\n"
                                    "workloads:\n{}",
                                    nic_a, nic_b, line, workloads),
                        "f.yaml", registry, mistakes);
  if (!mistakes.none()) return {mistakes.text(), {}};
  Pool pool({.small = 16384, .large = 16384, .giant = 2});
  try {
    Sim sim(config, pool, {});
    sim.open();
    sim.run();
    return {"", sim.report()["workloads"]};
  } catch (const ConfigError& error) {
    return {error.what(), {}};
  }
}

// The client and the server of these, or both ends of one; `$` is the workload's recovery.
constexpr const char* kAll[] = {
    "  s: {type: rping, hosts: [b], size: 64KiB, $}\n"
    "  c: {type: rping, hosts: [a], start: 1ms, address: 10.0.0.2, count: 30, size: 64KiB, $}\n",
    "  s: {type: ucmatose, hosts: [b], message_size: 20KB, $}\n"
    "  c: {type: ucmatose, hosts: [a], start: 1ms, address: 10.0.0.2, message_size: 20KB, $}\n",
    "  s: {type: verbs_check, hosts: [b], $}\n"
    "  c: {type: verbs_check, hosts: [a], start: 1ms, address: 10.0.0.2, messages: 8, $}\n",
    "  s: {type: dpa_program, hosts: [b], program: echo, size: 1KiB, $}\n"
    "  c: {type: dpa_program, hosts: [a], start: 1ms, address: 10.0.0.2, messages: 200, size: 1KiB, echo: true, $}\n",
    "  w: {type: sdr_messages, hosts: [a, b], uc: false, rtt: 2ms, messages: 20, max_size: 100KiB, mtu: 1024, chunk: "
    "4KiB, "
    "$}\n",
    "  w: {type: multicast_allgather, hosts: [a, b], size: 64KiB, iterations: 4, mtu: 1024, $}\n",
    "  s: {type: write_bw, hosts: [b], size: 64KiB, iters: 20, $}\n"
    "  c: {type: write_bw, hosts: [a], start: 1ms, address: 10.0.0.2, size: 64KiB, iters: 20, $}\n",
};

std::string with(std::string workloads, const std::string& recovery) {
  for (std::size_t at; (at = workloads.find('$')) != std::string::npos;) workloads.replace(at, 1, recovery);
  return workloads;
}

// NICs that recover differently would not understand each other: the workload's own goes before both.
TEST(WorkloadRecovery, GoesBeforeTheNics) {
  for (const char* workloads : kAll)
    for (const char* recovery : {"recovery: rnic_sr, retransmission_timeout: 3ms", "recovery: selective, window: 100",
                                 "recovery: go_back_n, retransmit_stall: nic"}) {
      SCOPED_TRACE(with(workloads, recovery));
      const Outcome run = simulate(with(workloads, recovery), "recovery: go_back_n, window: 300",
                                   "recovery: timeout_only, retransmission_timeout: 4ms");
      EXPECT_EQ(run.mistakes, "");
      for (const auto& [name, one] : run.report.items()) {
        EXPECT_EQ(one["finished"], true) << name;
        EXPECT_EQ(one["failed"], false) << name << one["details"];
      }
    }
}

TEST(WorkloadRecovery, GoesNotWithCredits) {
  for (const char* workloads : kAll) {
    SCOPED_TRACE(workloads);
    const Outcome run = simulate(with(workloads, "recovery: selective"), "credits: true", "up: true");
    EXPECT_NE(run.mistakes.find("`credits: true`"), std::string::npos) << run.mistakes;
  }
}

// Where both ends are one workload's, they must recover alike.
TEST(WorkloadRecovery, BothEndsRecoverAlike) {
  for (const char* workload : {kAll[4], kAll[5]}) {
    SCOPED_TRACE(workload);
    const Outcome run = simulate(with(workload, "recovery: nic"), "recovery: go_back_n", "recovery: selective");
    EXPECT_NE(run.mistakes.find("give the workload a `recovery:` of its own"), std::string::npos) << run.mistakes;
  }
}

// A receiver keeps twice its own window ahead.
TEST(WorkloadRecovery, WindowsOfBothEndsFit) {
  const auto why_not = [](const std::string& workload, const std::string& a, const std::string& b) {
    return simulate("  w: {type: write_bw, hosts: [a, b], size: 64KiB, iters: 2, " + workload + "}\n", a, b).mistakes;
  };
  for (const char* recovery : {"recovery: rnic_sr", "recovery: selective", "recovery: timeout_only"}) {
    SCOPED_TRACE(recovery);
    EXPECT_EQ(why_not(recovery, "window: 512", "window: 256"), "");
    for (const auto& [a, b] : {std::pair("window: 513", "window: 256"), {"window: 5", "window: 11"}}) {
      const std::string why = why_not(recovery, a, b);
      for (const char* word : {"`a`", a, "`b`", b, recovery, "give the workload a `window:` of its own"})
        EXPECT_NE(why.find(word), std::string::npos) << why;
    }
    EXPECT_EQ(why_not(std::string(recovery) + ", window: 40", "window: 513", "window: 11"), "");
  }
  EXPECT_EQ(why_not("recovery: go_back_n", "window: 513", "window: 11"), "") << "it keeps nothing ahead";
  EXPECT_EQ(why_not("connection: UC", "window: 513", "window: 11"), "") << "nor has UC a window";
}

// What is lost once is sent again, and then nothing for as long as the workload says.
TEST(WorkloadRecovery, MayStall) {
  const auto time = [](const std::string& stall, const std::string& nics) {
    const Outcome run = simulate(
        fmt::format("  w: {{type: write_bw, hosts: [a, b], size: 1MB, iters: 2, recovery: selective, {}}}\n", stall),
        nics, nics, "delay: 2us, events: [{packet: 50, do: drop}]");
    EXPECT_EQ(run.mistakes, "");
    return run.report["w"]["duration_ns"].get<std::int64_t>();
  };
  const std::int64_t none = time("retransmit_stall: 0", "retransmit_stall: 1ms");
  EXPECT_GT(time("retransmit_stall: 1ms", "retransmit_stall: 0"), none + 900'000);
  EXPECT_GT(time("retransmit_stall: nic", "retransmit_stall: 1ms"), none + 900'000);
  EXPECT_GT(time("window: 0", "retransmit_stall: 1ms"), none + 900'000);
}

// What is shown as the default changes nothing where it is written: 0 would mean another thing.
TEST(WorkloadRecovery, TheDefaultIsTheNics) {
  const auto time = [](const std::string& written) {
    const Outcome run = simulate(
        fmt::format("  w: {{type: write_bw, hosts: [a, b], size: 1KiB, iters: 1, timeout: 16, {}}}\n", written),
        "retransmission_timeout: 5ms", "retransmission_timeout: 5ms", "delay: 2us, events: [{kind: data, do: drop}]");
    EXPECT_EQ(run.mistakes, "");
    return run.report["w"]["duration_ns"].get<std::int64_t>();
  };
  const std::int64_t left_out = time("window: 0");
  EXPECT_GT(left_out, 5 * kMillisecond);
  EXPECT_LT(left_out, 6 * kMillisecond);
  EXPECT_EQ(time("retransmission_timeout: nic"), left_out);
  EXPECT_GT(time("retransmission_timeout: 0"), Nanos{4096} << 16);
  EXPECT_LT(time("retransmission_timeout: 1ms"), 2 * kMillisecond);
  Registry registry;
  std::map<std::string, std::string> defaults;
  for (const config::OptionRow& row : config::describe(*registry.find("write_bw"), registry))
    defaults[row.name] = row.fallback;
  EXPECT_EQ(defaults["retransmission_timeout"], "nic");
  EXPECT_EQ(defaults["retransmit_stall"], "nic");
  EXPECT_NE(simulate("  w: {type: write_bw, hosts: [a, b], retransmit_stall: sometimes}\n", "up: true", "up: true")
                .mistakes.find("a time with a unit, such as 25ms, or `nic`"),
            std::string::npos);
}

}  // namespace
}  // namespace rocebox::test::workload_recovery
