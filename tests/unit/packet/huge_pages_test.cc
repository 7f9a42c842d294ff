// SPDX-License-Identifier: BSD-3-Clause
// Huge pages: what lies in memory stays as it is, whether the kernel has some or not.
#include "runtime/packet/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/packet/pool.h"

namespace rocebox::huge_pages_test {
namespace {

TEST(HugePages, TakeThePlaceOfWholeOnesOnly) {
  constexpr std::size_t kBytes = std::size_t{7} << 20, kHugePage = std::size_t{2} << 20;
  auto* const start =
      static_cast<std::uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(start), MAP_FAILED);
  std::fill_n(start, kBytes, std::uint8_t{0xA5});
  replace_by_huge_pages(start + 1, kBytes - 2);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(start + 1) % kHugePage) % kHugePage + 1;
  const std::size_t whole = (kBytes - 1 - before) / kHugePage * kHugePage;
  ASSERT_GE(whole, 2 * kHugePage);
  const auto all = [](std::span<const std::uint8_t> bytes, std::uint8_t value) {
    return std::ranges::all_of(bytes, [=](std::uint8_t byte) { return byte == value; });
  };
  EXPECT_TRUE(all({start, before}, 0xA5));
  EXPECT_TRUE(all({start + before, whole}, 0));
  EXPECT_TRUE(all({start + before + whole, start + kBytes}, 0xA5));
  std::fill_n(start + before, whole, std::uint8_t{1});
  EXPECT_TRUE(all({start + before, whole}, 1));
  munmap(start, kBytes);
}

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
  Pool pool({.headers = 8192, .small = 0, .large = 0, .giant = 0}, PacketsInMemory::kAlone);
  std::vector<PacketPtr> packets;
  while (PacketPtr packet = pool.allocate(kHeaderPacketBytes)) {
    std::fill_n(packet->data(), kHeaderPacketBytes, static_cast<std::uint8_t>(packets.size()));
    packets.push_back(std::move(packet));
  }
  EXPECT_EQ(packets.size(), 8192u);
  for (std::size_t i = 0; i < packets.size(); i++)
    ASSERT_EQ(std::ranges::count(packets[i]->bytes(), static_cast<std::uint8_t>(i)), kHeaderPacketBytes);
  packets.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace rocebox::huge_pages_test
