// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/reserved_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/packet/resident.h"

namespace rocebox::reserved_memory_test {
namespace {

TEST(ReservedMemory, HoldsZerosOnItsBoundaryWhateverItsSize) {
  for (const std::size_t bytes : {0ul, 1ul, 63ul, 4096ul, 131'000ul, 131'072ul, 1'000'001ul})
    for (const std::size_t align : {8ul, 64ul, 4096ul, 2ul << 20}) {
      const ReservedMemory memory(bytes, align);
      auto* all = static_cast<std::uint8_t*>(memory.get());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all) % align, 0u);
      EXPECT_TRUE(std::all_of(all, all + bytes, [](std::uint8_t byte) { return byte == 0; })) << bytes;
      std::fill_n(all, bytes, std::uint8_t{0xAB});
    }
}

// With AddressSanitizer, too, which would keep books on an eighth of it.
TEST(ReservedMemory, IsOnlyWhatIsTouched) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const std::size_t before = test::resident_bytes();
  ReservedArray<std::uint64_t> array(kBytes / sizeof(std::uint64_t));
  array[0] = array[kBytes / sizeof(std::uint64_t) - 1] = 7;
  EXPECT_LT(test::resident_bytes(), before + (std::size_t{8} << 20));
}

TEST(ReservedMemory, MovesAndIsExchanged) {
  ReservedArray<std::uint32_t> small(4), large(1 << 20);
  small[3] = 3;
  large[1 << 19] = 19;
  small.swap(large);
  EXPECT_EQ(small[1 << 19], 19u);
  EXPECT_EQ(large[3], 3u);
  small = std::move(large);
  EXPECT_EQ(small[3], 3u);
}

TEST(ReservedMemory, SizesThatThereAreNotThrow) {
  EXPECT_THROW(ReservedArray<std::uint64_t>(SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW(ReservedMemory(SIZE_MAX - 8, 8), std::bad_alloc);
  EXPECT_THROW(ReservedMemory(std::size_t{1} << 60, 8), std::bad_alloc);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
TEST(ReservedMemoryDeath, WhatLiesBehindABlockIsNotTouched) {
  for (const std::size_t bytes : {24ul, 1000ul, 1ul << 20}) {
    ReservedArray<std::uint8_t> array(bytes);
    volatile std::size_t behind = bytes;
    EXPECT_DEATH(array[behind] = 1, "use-after-poison");
  }
}
#endif
#endif

}  // namespace
}  // namespace rocebox::reserved_memory_test
