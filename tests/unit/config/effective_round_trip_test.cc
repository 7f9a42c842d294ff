// SPDX-License-Identifier: BSD-3-Clause
// Configurations whose effective configuration does not load to the same one (found by config_fuzz and by reading).
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

void expect_fixpoint(const std::string& text) {
  Registry registry;
  Mistakes mistakes("f.yaml"), again("effective.yaml");
  const RunConfig config = load_text(text, "f.yaml", registry, mistakes, false);
  if (!mistakes.none()) return;  // refused: also an answer
  const std::string once = effective_yaml(config);
  const std::string twice = effective_yaml(load_text(once, "effective.yaml", registry, again, false));
  EXPECT_TRUE(again.none()) << again.text() << "\n" << once;
  if (again.none()) {
    EXPECT_EQ(once, twice);
  }
}

TEST(EffectiveRoundTrip, NamesOfDevicesAreNeitherCheckedNorQuoted) {
  for (const char* name : {"'a: b'", "'#a'", "'- a'", "'null'", "'&a'", "\"a\\nb\"", "''"}) {
    SCOPED_TRACE(name);
    expect_fixpoint("devices: {" + std::string(name) + ": {path: x <-> inspect <-> y}}\n");
  }
}

TEST(EffectiveRoundTrip, TextsThatReadAsNothing) {
  expect_fixpoint("devices: {a: {path: x <-> inspect <-> y}}\nports: {x: {pcap: {out: 'null'}}}\n");
}

TEST(EffectiveRoundTrip, TextsOfSeveralLines) {
  expect_fixpoint("devices: {a: {path: x <-> inspect <-> y}}\nports: {x: {pcap: {in: f, filter: \"arp\\nor ip\"}}}\n");
}

TEST(EffectiveRoundTrip, ALinkWithDefaults) {
  expect_fixpoint(
      "devices: {a: {path: x <-> inspect <-> y}, b: {path: p <-> inspect <-> q}}\nlinks: {wan: {between: [y, p]}}\n");
}

}  // namespace
}  // namespace rocebox::config
