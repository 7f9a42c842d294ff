// SPDX-License-Identifier: BSD-3-Clause
// One layout and one order of stages for all programs of a device.
#include <array>
#include <map>
#include <stdexcept>

#include "runtime/telemetry/json_report.h"
#include "switch_model/forward/forward.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::stages_test {  // a room of its own: its names are other tests', too
namespace {

const Resource& named(const Layout& layout, std::string_view name) {
  for (const Resource& resource : layout.resources())
    if (resource.name == name) return resource;
  throw std::logic_error("no such resource");
}

TEST(Stages, AProgramStandsBehindThoseBeforeItInEachControl) {
  Layout layout(1);
  layout.begin("first");
  const auto bridge = layout.registers<std::uint32_t>("bridge", {Gress::kIngress, 0}, 16);
  const auto hop = layout.registers<std::uint32_t>("hop", {Gress::kIngress, 4}, 16);
  const auto rewrite = layout.registers<std::uint32_t>("rewrite", {Gress::kEgress, 1}, 16);
  layout.begin("second");
  const auto qps = layout.registers<std::uint32_t>("qps", {Gress::kIngress, 0}, 16);
  const auto psn = layout.registers<std::uint32_t>("psn", {Gress::kIngress, 2}, 16);
  const auto base = layout.registers<std::uint32_t>("base", {Gress::kEgress, 0}, 16);
  std::vector<Usage> used;
  EXPECT_TRUE(lay_out(layout, Profile{}, used).empty());
  EXPECT_EQ(bridge.resource().at.stage, 0u);
  EXPECT_EQ(hop.resource().at.stage, 4u);
  EXPECT_EQ(qps.resource().at.stage, 5u) << "what it does may depend on the hop";
  EXPECT_EQ(psn.resource().at.stage, 7u) << "stages that a program leaves free are its own";
  EXPECT_EQ(rewrite.resource().at.stage, 1u);
  EXPECT_EQ(base.resource().at.stage, 2u);
}

TEST(Stages, WhatALargeArrayTakesPushesLaterStagesBack) {
  Layout layout(1);
  layout.begin("first");
  const auto large = layout.registers<std::uint32_t>("large", {Gress::kIngress, 0}, 60 * 4096);  // 60 pages
  const auto small = layout.registers<std::uint32_t>("small", {Gress::kIngress, 1}, 16);
  layout.begin("second");
  const auto other = layout.registers<std::uint32_t>("other", {Gress::kIngress, 0}, 16);
  std::vector<Usage> used;
  EXPECT_TRUE(lay_out(layout, Profile{}, used).empty());
  EXPECT_EQ(large.resource().last_stage, 1u);
  EXPECT_EQ(small.resource().at.stage, 2u) << "its index may come from the last of the array's stages";
  EXPECT_EQ(other.resource().at.stage, 3u);
}

TEST(Stages, AStageWithoutAnAluIsPassed) {
  Layout layout(1);
  layout.begin("first");
  for (const char* name : {"r0", "r1", "r2", "r3", "r4"}) layout.registers<std::uint8_t>(name, {Gress::kEgress, 0}, 16);
  const auto next = layout.registers<std::uint8_t>("next", {Gress::kEgress, 1}, 16);
  std::vector<Usage> used;
  EXPECT_TRUE(lay_out(layout, Profile{}, used).empty());
  EXPECT_EQ(named(layout, "r3").first_stage, 0u);
  EXPECT_EQ(named(layout, "r4").first_stage, 1u) << "four ALUs a stage";
  EXPECT_EQ(named(layout, "r4").at.stage, 0u) << "in no order with r0";
  EXPECT_EQ(next.resource().at.stage, 2u);
}

TEST(Stages, StrictModeFollowsAPacketThroughAllPrograms) {
  CounterSet stats;
  Violations violations(stats.counter("strict_violations", ""));
  Strict strict(violations);
  Layout layout(1);
  layout.begin("forward");
  auto hop = layout.registers<std::uint32_t>("hop", {Gress::kIngress, 4}, 16);
  layout.begin("late");
  auto gated = layout.registers<std::uint32_t>("gated", {Gress::kIngress, 0}, 16);
  std::vector<PacketState> packets(2);
  const auto pass = [&] {
    strict.begin(Gress::kIngress, packets);
    strict.read(packets[0], hop, 1);
    strict.read(packets[1], gated, 1);  // another packet, which has not been at the hop
    strict.read(packets[0], gated, 1);
  };
  pass();
  ASSERT_EQ(violations.list().size(), 1u) << "as the stages are declared";
  EXPECT_EQ(violations.list()[0].text,
            "program late, ingress, stage 0, register `gated`: back to an earlier stage than `hop` of program forward, "
            "stage 4");
  EXPECT_EQ(violations.list()[0].count, 1u);
  std::vector<Usage> used;
  EXPECT_TRUE(lay_out(layout, Profile{}, used).empty());
  pass();
  EXPECT_EQ(violations.list()[0].count, 1u) << "laid out it stands behind";
  EXPECT_EQ(violations.list().size(), 1u);
}

TEST(Stages, WhatIsCalledUnusedMustBe) {
  CounterSet stats;
  Violations violations(stats.counter("strict_violations", ""));
  Strict strict(violations);
  Layout layout(1);
  layout.begin("demo");
  auto idle = layout.registers<std::uint32_t>("idle", {Gress::kIngress, 0}, 16);
  layout.unused(idle, "no rule has a meter");
  std::vector<PacketState> packets(1);
  strict.begin(Gress::kIngress, packets);
  strict.read(packets[0], idle, 1);
  ASSERT_EQ(violations.list().size(), 1u);
  EXPECT_EQ(violations.list()[0].text,
            "program demo, ingress, stage 0, register `idle`: touched, and its program calls it unused");
}

// Reads in its first stage what `forward` decides in its last.
class Late {
 public:
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  Late(const Config&, const Build& build)
      : packets_(build.layout.registers<std::uint32_t>("packets", {Gress::kIngress, 0}, 256)) {}
  template <class Access>
  void ingress(Access& access, Pass& pass) {
    for (PacketState& p : pass) access.update(p, packets_, p.egress_port, [](std::uint32_t& n) { return ++n; });
  }

 private:
  RegisterArray<std::uint32_t> packets_;
};
const Component kLate = program<Late>("late", "for the tests");

Json layout_of(test::SwitchBox& box) {
  Json json;
  JsonReport report(json);
  box.kernel->report(report);
  return json;
}

TEST(Stages, AProgramThatReadsWhatForwardDecidesComesBehindIt) {
  const std::array types = {forward_component(), kLate};
  test::SwitchBox box(
      "strict: true\nprograms: [forward, late]\n"
      "forward: {learning: false, macs: [{mac: 02:00:00:00:00:02, ports: [p2, p3]}]}\n",
      types);
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  box.send(0, 0, spec);
  const Json report = layout_of(box);
  EXPECT_EQ(report["violations"], Json::array());
  std::map<std::string, int> stages;
  for (const Json& row : report["layout"]["resources"])
    stages[row["name"]] = std::stoi(row["stages"].get<std::string>());
  EXPECT_EQ(stages.at("next_hop"), 4);
  EXPECT_EQ(stages.at("packets"), 5);
}

// A router without routes gives a packet a next hop where an address has equal paths, and egress looks it up.
TEST(Stages, NextHopsAreInUseWhereAnAddressHasEqualPaths) {
  test::SwitchBox box(
      "strict: true\n"
      "forward: {router_mac: 02:00:00:00:00:01, learning: false, macs: [{mac: 02:00:00:00:00:02, ports: [p2, p3]}]}\n");
  box.send(0, 0, roce::PacketSpec{});
  EXPECT_EQ(box.ports().size(), 1u);
  const Json report = layout_of(box);
  EXPECT_EQ(report["violations"], Json::array());
  for (const Json& row : report["unused"]) EXPECT_NE(row["resource"], "rewrite");
  for (const Json& row : report["not_judged"]) EXPECT_NE(row["resource"], "rewrite");
}

TEST(Stages, WhatIsAcceptedUnjudgedMustBeThere) {
  CounterSet stats;
  EXPECT_TRUE(test::make_switch("accept_unjudged: [forward.rewrite]\n", stats));
  try {
    test::make_switch("accept_unjudged: [forward.rewrote]\n", stats);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "switch: `accept_unjudged` names nothing that a program has: `forward.rewrote`; did you mean "
                 "`forward.rewrite`?");
  }
}

// What strict mode has not come to: by its program's word nothing can, or it is to be accepted, or neither.
TEST(Stages, WhatIsNotJudgedIsTold) {
  test::SwitchBox box(
      "strict: true\naccept_unjudged: [forward.destination_mac, forward.rewrite]\n"
      "forward: {router_mac: 02:00:00:00:00:01}\n");
  const Json report = layout_of(box);
  std::map<std::string, bool> unjudged;
  for (const Json& row : report["not_judged"]) unjudged[row["resource"]] = row["accepted"];
  EXPECT_EQ(unjudged, (std::map<std::string, bool>{{"source_mac", false},
                                                   {"mac_last_seen", false},
                                                   {"destination_mac", true},
                                                   {"ipv4_route", false},
                                                   {"ipv6_route", false}}));
  std::map<std::string, std::string> unused;
  for (const Json& row : report["unused"]) unused[row["resource"]] = row["why"];
  EXPECT_EQ(unused.size(), 4u);
  EXPECT_EQ(unused["rewrite"], "there are no routes, and no address has equal paths");
  ASSERT_EQ(report["accepted_and_judged"].size(), 1u);
  EXPECT_EQ(report["accepted_and_judged"][0]["resource"], "forward.rewrite");
}

}  // namespace
}  // namespace rocebox::switch_model::stages_test
