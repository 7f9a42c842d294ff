// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel/packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocebox {
namespace {

struct alignas(64) Line {
  std::byte bytes[192];
};

TEST(Packed, LaysThingsSideBySideAndUsesTheirPlacesAgain) {
  constexpr std::size_t kCount = 1000;
  std::vector<void*> places;
  for (std::size_t i = 0; i < kCount; i++) places.push_back(Packed<Line>::allocate());
  std::size_t side_by_side = 0;
  for (std::size_t i = 0; i < kCount; i++) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(places[i]) % alignof(Line), 0u);
    if (i > 0)
      side_by_side += static_cast<std::byte*>(places[i]) - static_cast<std::byte*>(places[i - 1]) == sizeof(Line);
  }
  EXPECT_GE(side_by_side, kCount * 9 / 10);

  std::vector<void*> again;
  for (void* place : places) Packed<Line>::release(place);
  for (std::size_t i = 0; i < kCount; i++) again.push_back(Packed<Line>::allocate());
  std::ranges::sort(places);
  std::ranges::sort(again);
  EXPECT_EQ(places, again);
  EXPECT_EQ(std::ranges::adjacent_find(again), again.end()) << "one place was given twice";
  for (void* place : again) Packed<Line>::release(place);
}

}  // namespace
}  // namespace rocebox
