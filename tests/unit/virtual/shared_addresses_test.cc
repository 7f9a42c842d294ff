// SPDX-License-Identifier: BSD-3-Clause
// Hosts of one network have addresses of their own.
#include <gtest/gtest.h>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::fabric_test {
namespace {

const std::string kCable = "links: {cable: {between: [a.wire, b.wire]}}\n";
const std::string kFabric =
    "topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 2}, switches: {switch: {}}, hosts: {nic: ";

const std::string kAtSwitch = "links: {one: {between: [a.wire, s.p0]}, two: {between: [b.wire, s.p1]}}\n";

std::string pair(const std::string& a, const std::string& b) {
  return "devices:\n  a: {nic: {" + a + "}}\n  b: {nic: {" + b + "}}\n";
}

TEST(SharedAddresses, AreToldWithTheirPlace) {
  const struct Row {
    std::string yaml, words;
  } rows[] = {
      {pair("address: 10.0.0.1", "address: 10.0.0.1") + kCable,
       "f.yaml:3:22: devices `a` and `b`, which links join, have the address 10.0.0.1: give each its own `address`"},
      {pair("address: 10.0.0.1", "address: 10.0.0.2, address6: '2001:db8::1'") +
           "  c: {nic: {address: '2001:db8::1'}}\n  d: {path: left <-> right}\n"
           "links: {one: {between: [a.wire, c.wire]}}\n",
       ""},
      {pair("address: 10.0.0.2, address6: '2001:db8::1'", "address: '2001:db8::1'") +
           "  d: {path: left <-> right}\nlinks: {one: {between: [a.wire, d.left]}, two: {between: [d.right, "
           "b.wire]}}\n",
       "f.yaml:3:22: devices `a` and `b`, which links join, have the address 2001:db8::1"},
      {pair("address: 10.0.0.1, mac: '02:00:00:00:00:01'", "address: 10.0.0.2, mac: '02:00:00:00:00:01'") + kCable,
       "f.yaml:3:37: devices `a` and `b`, which links join, have the address 02:00:00:00:00:01: give each its own "
       "`mac`"},
      {pair("", "") + kCable, "it was made of what else they have: give each an `address` and a `mac` of its own"},
      {pair("address: 10.0.0.1", "address: 10.0.0.1"), ""},
      {kFabric + "{address: 10.0.0.1}}}\n",
       "f.yaml:1:114: devices `h0`, `h1` and 2 more, which links join, have the address 10.0.0.1: it is written for "
       "each of them: leave `address` out, since the topology gives each its own"},
      {kFabric + "{}}}\ndevices: {h2: {nic: {address: 10.0.0.1}}}\n",
       "f.yaml:2:31: devices `h0` and `h2`, which links join, have the address 10.0.0.1: give each its own `address`"},
      {kFabric + "{}}}\n", ""},
      // MAC addresses are made of an address's last bytes: behind a bridge they must differ, behind a router need not.
      {pair("address: '2001:db8:1::1'", "address: '2001:db8:2::1'") + "  s: {switch: {ports: [p0, p1]}}\n" + kAtSwitch,
       "have the address 02:72:00:00:00:01"},
      {pair("address: '2001:db8:1::1'", "address: '2001:db8:2::1'") +
           "  s: {switch: {ports: [p0, p1], forward: {router_mac: '02:00:00:00:01:00'}}}\n" + kAtSwitch,
       ""},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    load(row.yaml, &mistakes);
    if (row.words.empty())
      EXPECT_EQ(mistakes, "") << row.yaml;
    else
      EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << mistakes;
    EXPECT_EQ(mistakes.find('\n'), std::string::npos) << "one mistake: " << mistakes;
  }
}

}  // namespace
}  // namespace rocebox::fabric_test
