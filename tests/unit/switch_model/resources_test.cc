// SPDX-License-Identifier: BSD-3-Clause
// What programs take of a chip, by hand.
#include "switch_model/resources.h"

#include <gtest/gtest.h>

#include "runtime/telemetry/json_report.h"
#include "switch_model/counter_array.h"
#include "switch_model/meter.h"
#include "switch_model/tables/lpm_table.h"

namespace rocebox::switch_model {
namespace {

Resource array(std::uint64_t entries, unsigned bits) {
  return {"p", "r", ResourceKind::kRegister, {Gress::kIngress, 0}, entries, 0, bits, 1, 0};
}

TEST(Resources, APageHas1024WordsOf128Bits) {
  EXPECT_EQ(usage_of(array(4096, 32)).sram_pages, 1);
  EXPECT_EQ(usage_of(array(4097, 32)).sram_pages, 2);
  EXPECT_EQ(usage_of(array(131072, 1)).map_ram, 1);
  EXPECT_EQ(usage_of(array(8192 * 128, 32)).sram_pages, 256);
}

TEST(Resources, AnArrayTakesTheStagesBehindItsOwn) {
  Layout layout(1);
  layout.registers<std::uint32_t>("small", {Gress::kIngress, 1}, 4096);
  layout.registers<std::uint32_t>("large", {Gress::kIngress, 1}, 60 * 4096);
  layout.registers<std::uint32_t>("behind", {Gress::kEgress, 2}, 4096);
  std::vector<Usage> used;
  EXPECT_TRUE(lay_out(layout, Profile{}, used).empty());
  EXPECT_EQ(layout.resources()[0].last_stage, 1u);
  EXPECT_EQ(layout.resources()[1].last_stage, 2u) << "48 map RAMs in stage 1, of which one is taken; 13 in stage 2";
  EXPECT_EQ(used[1].map_ram, 48);
  EXPECT_EQ(used[2].map_ram, 14) << "ingress and egress share stages";
  EXPECT_EQ(used[2].stateful_alus, 2);
}

// A statistics ALU each, 64 bits of packets and 64 of bytes; a meter takes one of the stateful ALUs.
TEST(Resources, CountersAndMetersTakeAlusOfTheirOwn) {
  Layout layout(1);
  std::vector<CounterArray> counters;
  for (int i = 0; i < 5; i++) counters.emplace_back(layout, "c" + std::to_string(i), At{Gress::kIngress, 19}, 1024);
  const MeterArray meters(layout, "m", {Gress::kIngress, 18}, 1025, {8'000, 8'000, 100, 100});
  std::vector<Usage> used;
  const auto problems = lay_out(layout, Profile{}, used);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(
      problems[0].starts_with("program , ingress, stage 19, counters `c4`: needs 1 SRAM pages, 1 map RAMs, 0 "
                              "TCAM blocks, 0 stateful ALUs, 1 statistics ALUs and 0 hash bits"))
      << problems[0];
  EXPECT_EQ(used[19].statistics_alus, 4);
  EXPECT_EQ(used[19].sram_pages, 4) << "1024 words of 128 bits each";
  EXPECT_EQ(used[18].stateful_alus, 1);
  EXPECT_EQ(used[18].map_ram, 2);
}

TEST(Resources, WhatDoesNotFitIsNamed) {
  Layout layout(1);
  layout.begin("demo");
  for (int i = 0; i < 5; i++) layout.registers<std::uint32_t>("r" + std::to_string(i), {Gress::kEgress, 19}, 16);
  const Ipv4Lpm routes(layout, "routes", {Gress::kIngress, 18}, 512 * 60, 16);
  std::vector<Usage> used;
  const auto problems = lay_out(layout, Profile{}, used);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0],
            "program demo, egress, stage 19, register `r4`: needs 1 SRAM pages, 1 map RAMs, 0 TCAM blocks, 1 stateful "
            "ALUs, 0 statistics ALUs and 0 hash bits, which stages 19 to 19 do not have free");
  EXPECT_TRUE(problems[1].starts_with("program demo, ingress, stage 18, lpm table `routes`: needs 4 SRAM pages"));
}

// Themis' state as its appendix lists it: Tables 3 and 4, for 16 NICs of 512 cross-rack QPs and 128 paths.
TEST(Resources, BytesPerFlowAreThoseOfThemisTables) {
  constexpr std::uint64_t kQps = 16 * 512, kPaths = 128, kWindow = 512;
  Layout layout(1);
  const auto state = [&]<class T>(T, const char* name, Gress gress, unsigned stage, std::uint64_t cells) {
    layout.registers<T>(name, {gress, stage}, kQps * cells, cells);
  };
  layout.begin("themis_s");
  state(std::uint32_t{}, "recved_nack_psn", Gress::kIngress, 0, 1);
  state(std::uint32_t{}, "path_adaptive_count", Gress::kIngress, 1, kPaths);
  layout.registers<std::uint16_t>("path_map", {Gress::kIngress, 7}, kPaths);
  layout.begin("themis_d");
  state(bool{}, "bitmap_array", Gress::kEgress, 0, 2 * kWindow);
  state(std::uint32_t{}, "epsn_array", Gress::kEgress, 7, 1);
  state(std::uint8_t{}, "base_first_half", Gress::kEgress, 7, 1);
  state(std::uint8_t{}, "base_second_half", Gress::kEgress, 8, 1);
  state(std::uint32_t{}, "path_psn_max_array", Gress::kEgress, 8, kPaths);
  state(std::uint32_t{}, "stashed_nack_psn", Gress::kEgress, 14, 1);
  state(std::uint8_t{}, "stashed_nack_valid", Gress::kEgress, 14, 1);
  state(std::uint32_t{}, "stash_nack_path_id", Gress::kEgress, 15, 1);
  state(std::uint32_t{}, "stash_nack_qpn", Gress::kEgress, 15, 1);
  state(std::uint16_t{}, "stash_nack_egress_port", Gress::kEgress, 16, 1);
  std::vector<Usage> used;
  const auto problems = lay_out(layout, Profile{}, used);
  EXPECT_TRUE(problems.empty()) << problems[0];
  Json json;
  JsonReport report(json);
  report_resources(report, layout, Profile{}, used);
  EXPECT_EQ(json["programs"][0]["bytes_per_flow"], 516);
  EXPECT_EQ(json["programs"][1]["bytes_per_flow"], 661);
  const auto bytes =
      json["programs"][0]["bytes"].get<std::int64_t>() + json["programs"][1]["bytes"].get<std::int64_t>();
  EXPECT_EQ(bytes, std::int64_t{kPaths} * 2 + (516 + 661) * std::int64_t{kQps}) << "equation 5: 9.6 million bytes";
}

}  // namespace
}  // namespace rocebox::switch_model
