// SPDX-License-Identifier: BSD-3-Clause
// What is written and has no effect beside what else is written: no mistake, and told.
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

std::vector<std::string> notes_of(const std::string& yaml, const std::vector<Setting>& settings = {}) {
  Registry registry;
  Mistakes mistakes("f.yaml");
  const RunConfig config = load_text(yaml, "f.yaml", registry, mistakes, false, settings);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return config.notes;
}

std::string nic(const std::string& options) { return "devices:\n  a: {nic: {rate: 1Gbps, " + options + "}}\n"; }

using Notes = std::vector<std::string>;

TEST(Notes, OptionsOfANicThatAnotherChoiceExcludes) {
  const struct Row {
    std::string options;
    const char* told;  // null: nothing
  } rows[] = {
      {"dcqcn: {rpg_gd: 11}", "2:33: note: `dcqcn` has no effect: the congestion control is `none`"},
      {"congestion_control: pcc, dcqcn: {rpg_gd: 11}",
       "2:58: note: `dcqcn` has no effect: the congestion control is `pcc`"},
      {"congestion_control: dcqcn, dcqcn: {rpg_gd: 11}", nullptr},
      {"dcqcn: {enabled: true, rpg_gd: 11}", nullptr},
      {"dcqcn: {enabled: false, rpg_gd: 11}", nullptr},
      {"dcqcn: {enabled: true}, pcc: {program: rtt_control}",
       "2:55: note: `pcc` has no effect: the congestion control is `dcqcn`"},
      {"retransmit_stall: 1us",
       "2:44: note: `retransmit_stall` has no effect with `recovery: go_back_n`, but for workloads that have another"},
      {"recovery: timeout_only, retransmit_stall: 1us",
       "2:68: note: `retransmit_stall` has no effect with `recovery: timeout_only`, but for workloads that have "
       "another"},
      {"recovery: rnic_sr, retransmit_stall: 1us", nullptr},
      {"recovery: selective, retransmit_stall: 1us", nullptr},
      {"pcie: {read_latency: 1us}", "2:47: note: `read_latency` has no effect without a `bandwidth`"},
      {"pcie: {read_latency: 1us, bandwidth: 1Gbps}", nullptr},
      {"congestion_control: pcc, pcc: {slot: 1}", "2:63: note: `slot` has no effect without a program"},
      {"congestion_control: pcc, pcc: {slot: 1, program: rtt_control}", nullptr},
      {"congestion_control: pcc, pcc: {budget: 9, notification_point: {program: load_np}}", nullptr},
      {"congestion_control: pcc, pcc: {notification_point: {threads: 2}}",
       "2:87: note: `threads` has no effect without a program"},
      {"limiter: {port_rate: 2Gbps}", "2:47: note: `limiter.port_rate` has no effect above the port's `rate`"},
      {"limiter: {port_rate: 1Gbps}", nullptr},
      {"limiter: {qp_burst: 4KiB}",
       "2:46: note: `limiter.qp_burst` has no effect without a `qp_rate` or a congestion control, but for queue pairs "
       "whose program sets a rate"},
      {"limiter: {low_rate_loss: 10%}",
       "2:51: note: `limiter.low_rate_loss` has no effect without a `qp_rate` or a congestion control, but for queue "
       "pairs whose program sets a rate"},
      {"limiter: {low_rate_loss: 10%, qp_rate: 1Mbps}", nullptr},
      {"limiter: {low_rate_loss: 10%}, congestion_control: dcqcn", nullptr},
      {"limiter: {low_rate_loss: 10%}, dcqcn: {enabled: false}", nullptr},
  };
  for (const Row& row : rows)
    EXPECT_EQ(notes_of(nic(row.options)), row.told ? Notes{std::string("f.yaml:") + row.told} : Notes()) << row.options;
}

TEST(Notes, OptionsOfASwitchThatAnotherChoiceExcludes) {
  const auto notes = [](const std::string& options) {
    return notes_of("devices:\n  s: {switch: {ports: [a, b], " + options + "}}\n");
  };
  const std::string no_class = ": note: `pfc` has no effect: with `class_of: none` every packet is of class 0";
  EXPECT_EQ(notes("traffic_manager: {pfc: {classes: [3]}}"), Notes{"f.yaml:2:54" + no_class});
  for (const char* good :
       {"traffic_manager: {pfc: {classes: [0, 3]}}", "traffic_manager: {class_of: dscp, pfc: {classes: [3]}}",
        "programs: [acl, forward], acl: {rules: [{traffic_class: 3}]}, traffic_manager: {pfc: {classes: [3]}}"})
    EXPECT_EQ(notes(good), Notes()) << good;
  EXPECT_EQ(notes("forward: {flowlet_gap: 9us}"),
            Notes{"f.yaml:2:54: note: `flowlet_gap` has no effect without `balance: flowlet`"});
  EXPECT_EQ(notes("forward: {balance: flowlet, flowlet_gap: 9us}"), Notes());
}

// One file for several choices: `--sweep recovery=go_back_n,rnic_sr`.
TEST(Notes, NoneWhereAParameterOrASettingMakesTheChoice) {
  EXPECT_EQ(notes_of("parameters: {r: go_back_n}\n" + nic("recovery: $r, retransmit_stall: 1us")), Notes());
  EXPECT_EQ(notes_of(nic("retransmit_stall: 1us"), {{"devices.a.nic.recovery", "go_back_n"}}), Notes());
  EXPECT_EQ(notes_of("parameters: {c: none}\n" + nic("congestion_control: $c, limiter: {qp_burst: 1KiB}")), Notes());
  EXPECT_EQ(notes_of("parameters: {q: 0}\n" + nic("limiter: {qp_burst: 1KiB, qp_rate: $q}")), Notes());
  EXPECT_EQ(notes_of(nic("limiter: {port_rate: 2Gbps}"), {{"devices.a.nic.rate", "1Gbps"}}), Notes());
  EXPECT_EQ(notes_of("parameters: {s: 1us}\n" + nic("retransmit_stall: $s")),
            Notes{"f.yaml:3:44 with `$s` (line 1): note: `retransmit_stall` has no effect with `recovery: go_back_n`, "
                  "but for workloads that have another"});
}

TEST(Notes, WhatIsWrittenForSeveralDevicesMayHaveAnEffectInOne) {
  const std::string topology = "topology: {back_to_back: {}, hosts: {nic: {retransmit_stall: 1us}}}\n";
  EXPECT_EQ(notes_of(topology).size(), 1u);
  EXPECT_EQ(notes_of(topology + "devices: {h1: {nic: {recovery: selective}}}\n"), Notes());
}

}  // namespace
}  // namespace rocebox::config
