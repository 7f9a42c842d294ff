// SPDX-License-Identifier: BSD-3-Clause
// What live devices draw by: hosts that differ in nothing but their addresses draw unlike each other.
#include <set>

#include "runtime/drives/live/shard_devices.h"
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::shard_seed_test {
namespace {

std::uint64_t seed(const std::string& device, unsigned shard = 0) {
  return shard_seed(fabric_test::load("seed: 7\ndevices: {host: " + device + "}\n"), shard);
}

TEST(ShardSeed, HostsOfEqualNamesDrawByTheirAddresses) {
  const std::set<std::uint64_t> seeds = {
      seed("{nic: {address: 10.0.0.1}}"),
      seed("{nic: {address: 10.0.0.2}}"),
      seed("{nic: {address: 10.0.0.1, mac: 02:00:00:00:00:01}}"),
      seed("{nic: {address: 10.0.0.1, address6: fd00::1}}"),
  };
  EXPECT_EQ(seeds.size(), 4u);
  EXPECT_EQ(seed("{nic: {address: 10.0.0.1}}"), seed("{nic: {address: 10.0.0.1}}"));
}

TEST(ShardSeed, WithoutHostsTheFirstShardDrawsAsAReplayDoes) {
  EXPECT_EQ(seed("{path: a <-> inspect <-> b}"), 7u);
  EXPECT_NE(seed("{path: a <-> inspect <-> b}", 1), 7u);
}

}  // namespace
}  // namespace rocebox::shard_seed_test
