// SPDX-License-Identifier: BSD-3-Clause
// Kernels that work in pairs, and configurations in which they do not face each other.
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

std::string refusals_of(const std::string& devices, const std::string& between = "near.wan, far.wan") {
  Registry registry;
  Mistakes found("f.yaml");
  load_text("devices:\n" + devices + "links: {haul: {between: [" + between + "]}}\n", "f.yaml", registry, found, false);
  return found.text();
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

constexpr const char* kRight = "host <-> lowar <-> wan";
constexpr const char* kTurned = "wan <-> lowar <-> host";

std::string gateways(const std::string& near, const std::string& far) {
  return "  near: {path: " + near + "}\n  far: {path: " + far + "}\n";
}

TEST(Facing, GatewaysWhoseLinkSidesMeetAreRight) {
  EXPECT_EQ(refusals_of(gateways(kRight, kRight)), "");
  EXPECT_EQ(refusals_of(gateways("host <-> lowar <-> link <-> wan", "host <-> inspect <-> lowar <-> link <-> wan")),
            "");
  EXPECT_EQ(
      refusals_of("  near: {path: [wan <-> lowar.1, lowar.0 <-> host]}\n  far: {path: " + std::string(kRight) + "}\n"),
      "");
}

TEST(Facing, OneThatIsTurnedRoundIsRefused) {
  const std::string far = refusals_of(gateways(kRight, kTurned));
  EXPECT_TRUE(says(far,
                   "f.yaml:3:8: `far.lowar` stands the wrong way round: what `near.lowar` sends it comes in at its "
                   "left side, and is for the right one; turn the path of device `far` round"))
      << far;
  const std::string near = refusals_of(gateways("wan <-> inspect <-> lowar <-> link <-> host", kRight));
  EXPECT_TRUE(says(near, "f.yaml:2:9: `near.lowar` stands the wrong way round")) << near;
}

TEST(Facing, TwoThatAreTurnedRoundAreRefusedOnce) {
  const std::string both = refusals_of(gateways(kTurned, kTurned));
  EXPECT_TRUE(says(both, "`far.lowar` and `near.lowar` face each other with their left sides")) << both;
  EXPECT_EQ(both.find("face each other"), both.rfind("face each other")) << both;
}

TEST(Facing, GatewaysOfTwoLinksInARowAreRight) {
  EXPECT_EQ(refusals_of("  near: {path: host <-> lowar <-> wan}\n  middle: {path: [wan <-> west.1, west.0 <-> east.0, "
                        "east.1 <-> next], kernels: {west: {type: lowar}, east: {type: lowar}}}\n"
                        "  far: {path: host <-> lowar <-> wan}\n",
                        "near.wan, middle.wan]}, second: {between: [middle.next, far.wan"),
            "");
}

TEST(Facing, TwoInOneDeviceAreSeen) {
  const std::string text = refusals_of(
      "  near: {path: a <-> one <-> link <-> other <-> wan, kernels: {one: {type: lowar}, other: {type: lowar}}}\n"
      "  far: {path: host <-> wan}\n");
  EXPECT_TRUE(says(text, "`near.other` stands the wrong way round: what `near.one` sends it")) << text;
}

}  // namespace
}  // namespace rocebox::config
