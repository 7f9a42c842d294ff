// SPDX-License-Identifier: BSD-3-Clause
// Names written as ranges, wherever a configuration lists nodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/virtual/fabric_kit.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox {
namespace {

const std::string kRest = "  hosts: {nic: {header_only: true}}\n  switches: {switch: {}}\n";

TEST(NameRanges, StandForTheNamesThatTheyRunThroughInWorkloads) {
  const config::RunConfig config =
      fabric_test::load("topology:\n  leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 6}\n" + kRest +
                        "workloads: {incast: {hosts: [h9..h11, h3, h1..h1]}}\n");
  ASSERT_EQ(config.workloads.size(), 1u);
  EXPECT_EQ(config.workloads[0].hosts, (std::vector<std::string>{"h9", "h10", "h11", "h3", "h1"}));
}

TEST(NameRanges, MistakesAreToldOnceWithTheirPlace) {
  const std::string fabric = "topology:\n  leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 4}\n" + kRest;
  const auto ranks = [&](const std::string& hosts) {
    return fabric + "workloads:\n  incast: {hosts: " + hosts + "}\n";
  };
  const auto members = [&](const std::string& of) {
    return fabric + "  multicast: [{group: 239.1.0.1, members: " + of + "}]\n";
  };
  const auto shape = [&](const std::string& of) { return "topology:\n  explicit: " + of + "\n" + kRest; };
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {ranks("[h0..h3, h5..h4]"), "f.yaml:6:19: `hosts` names `h5..h4`, which runs backwards: write `h4..h5`"},
      {ranks("[h0..g3]"), "names `h0..g3`, which has two names that differ before their numbers"},
      {ranks("[h..h3]"), "names `h..h3`, which needs a name that ends in a number on both sides"},
      {ranks("[h0..]"), "names `h0..`, which needs a name that ends in a number on both sides"},
      {ranks("[..]"), "names `..`, which needs"},
      {ranks("[h0..h3..h4]"), "which has two names that differ before their numbers"},
      {ranks("[0..h3]"), "which has two names that differ before their numbers"},
      {ranks("[h08..h9]"), "names `h08..h9`, which has numbers of two widths: `h00..h15` or `h0..h15`"},
      {ranks("[h1..h05]"), "names `h1..h05`, which has numbers of two widths"},
      {ranks("[h4294967290..h4294967295]"), "there is no device `h4294967290`"},
      {ranks("[h0..h7, h0..h99]"), "workload `incast` names host `h0` twice"},
      {ranks("[" + std::string(90, 'h') + "0.." + std::string(90, 'h') + "1]"), "which has names that are too long"},
      {ranks("[h0..h99999999999]"), "names `h0..h99999999999`, which has a number that is too large"},
      {ranks("[h0..h4294967295]"), "which has more names than the 16384 that a topology may have"},
      {ranks("[a0..a9999, b0..b9999]"), "names `b0..b9999`, which with those before it has more than the 16384"},
      {ranks("[h0..h2, h6..h9]"), "f.yaml:6:28: there is no device `h8`"},
      {ranks("[h6..h7, h0..h6]"), "f.yaml:6:28: workload `incast` names host `h6` twice"},
      {members("[h1..h0]"), "`members` names `h1..h0`, which runs backwards"},
      {members("[h0..h8]"), "member `h8` is no host of the topology"},
      {shape("{hosts: [a2..a1], switches: [s], wires: [{between: [a1, s]}]}"), "`hosts` names `a2..a1`, which runs"},
      {shape("{hosts: [a1..a2], switches: [s], wires: [{between: [a1..b2, s]}]}"),
       "`between` names `a1..b2`, which has"},
      {shape("{hosts: [a1..a2], switches: [s], wires: [{between: [a1..a3, s]}]}"),
       "`between` names `a3`, which is neither"},
      {shape("{hosts: [n1..n2], switches: [n3..n5], wires: [{between: [n1..n4, n5]}]}"),
       "`between` makes wires of hosts and wires between switches: write a row for each kind"},
      {shape("{hosts: [a1..a2], switches: [s1..s300], wires: [{between: [s1..s299, s1..s300]}]}"),
       "`between` makes more than 65536 wires, which are too many"},
      {shape("{hosts: [a1..a2], switches: [s1..s2], wires: [{between: [a1..a2, s1..s2]}]}"),
       "`between` gives host `a1` 2 wires, and a host has one"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    sim_test::load(row.yaml, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << "\n" << mistakes;
    EXPECT_EQ(mistakes.find(row.words), mistakes.rfind(row.words)) << "once: " << mistakes;
  }
}

TEST(NameRanges, OfOneThatIsNoneNothingElseIsTold) {
  const std::string fabric = "topology:\n  leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 4}\n" + kRest;
  for (const std::string& text :
       {fabric + "workloads:\n  write_bw: {hosts: [h5..h4]}\n",
        fabric + "workloads:\n  incast: {hosts: [h0, h3..h1]}\n",
        std::string("devices: {a: {nic: {address: 10.0.0.1}}}\nworkloads:\n  write_bw: {hosts: [h5..h4]}\n")}) {
    std::string mistakes;
    sim_test::load(text, &mistakes);
    EXPECT_EQ(std::ranges::count(mistakes, '\n'), 0) << mistakes;
    EXPECT_NE(mistakes, "");
  }
}

// All are wrong at once: a few are told, and it does not take long.
TEST(NameRanges, WiresBetweenRangesOfNobodyAreToldBriefly) {
  std::string mistakes;
  sim_test::load(
      "topology:\n  explicit: {hosts: [a], switches: [s], wires: [{between: [h0..h199, x0..x299]}]}\n" + kRest,
      &mistakes);
  EXPECT_NE(mistakes.find("names `h0`, which is neither"), std::string::npos) << mistakes;
  EXPECT_LT(mistakes.size(), 2000u);
}

}  // namespace
}  // namespace rocebox
