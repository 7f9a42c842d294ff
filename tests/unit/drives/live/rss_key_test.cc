// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/rss_key.h"

#include <gtest/gtest.h>
#include <rte_thash.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

namespace rocebox {
namespace {

// The hash that NICs compute, by DPDK's model of them.
std::uint32_t hash_of(std::array<std::uint32_t, 8> addresses, unsigned words) {
  const auto key = symmetric_rss_key();
  return rte_softrss(addresses.data(), words, key.data());
}

TEST(RssKey, BothWaysOfAPairHaveOneHashAndPairsManyHashes) {
  std::mt19937 random(3);
  for (const unsigned words : {2u, 8u}) {  // IPv4, IPv6: both addresses
    std::set<std::uint32_t> queues;
    for (int i = 0; i < 1000; i++) {
      std::array<std::uint32_t, 8> there{}, back{};
      std::generate_n(there.begin(), words, std::ref(random));
      std::copy_n(there.begin(), words / 2, back.begin() + words / 2);
      std::copy_n(there.begin() + words / 2, words / 2, back.begin());
      ASSERT_EQ(hash_of(there, words), hash_of(back, words));
      queues.insert(hash_of(there, words) % 128);
    }
    EXPECT_GT(queues.size(), 100u) << "of 128 entries of an indirection table";
  }
}

}  // namespace
}  // namespace rocebox
