// SPDX-License-Identifier: BSD-3-Clause
// Huge pages: what lies in memory stays as it is, whether the kernel has some or not.
#include "runtime/packet/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "runtime/packet/pool.h"
#include "tests/unit/packet/resident.h"

namespace rocebox::huge_pages_test {
namespace {

TEST(HugePages, TheHeapKeepsWhatIsInIt) {
  std::vector<std::unique_ptr<std::vector<std::uint32_t>>> blocks;
  for (std::uint32_t i = 0; i < 6000; i++)
    blocks.push_back(std::make_unique<std::vector<std::uint32_t>>(256, i));  // 6 MB
  use_huge_pages_for_heap();
  for (std::uint32_t i = 0; i < blocks.size(); i++) {
    ASSERT_EQ(std::ranges::count(*blocks[i], i), 256);
    blocks[i]->push_back(i);
  }
}

TEST(HugePages, APoolInThemHasAllItsPackets) {
  constexpr std::uint32_t kPackets = 65536;  // 37 MB
  const std::size_t before = test::resident_bytes();
  Pool pool({.headers = kPackets, .small = 0, .large = 0, .giant = 0}, PacketsInMemory::kAlone);
  EXPECT_LT(test::resident_bytes(), before + (8 << 20)) << "what no packet was in yet is not touched";
  EXPECT_EQ(pool.in_use(), 0u);
  std::vector<PacketPtr> packets;
  std::vector<rte_mbuf*> mbufs;
  while (PacketPtr packet = pool.allocate(kHeaderPacketBytes)) {
    std::fill_n(packet->data(), kHeaderPacketBytes, static_cast<std::uint8_t>(packets.size()));
    mbufs.push_back(packet->mbuf());
    packets.push_back(std::move(packet));
  }
  EXPECT_EQ(packets.size(), kPackets);
  EXPECT_EQ(pool.in_use(), kPackets);
  EXPECT_EQ(pool.in_use_max(), kPackets);
  EXPECT_EQ((std::set<rte_mbuf*>(mbufs.begin(), mbufs.end()).size()), kPackets);
  for (std::size_t i = 0; i < packets.size(); i++)
    ASSERT_EQ(std::ranges::count(packets[i]->bytes(), static_cast<std::uint8_t>(i)), kHeaderPacketBytes);
  packets.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace rocebox::huge_pages_test
