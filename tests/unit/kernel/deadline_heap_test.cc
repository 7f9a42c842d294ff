// SPDX-License-Identifier: BSD-3-Clause
// DeadlineHeap against a sorted set, and its bound.
#include "runtime/kernel/deadline_heap.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace rocebox {
namespace {

// What is armed, in the order in which it is due.
using Model = std::set<std::tuple<Nanos, std::uint64_t, std::size_t>>;

template <unsigned kArity>
void run_against_model(std::uint32_t seed) {
  constexpr std::size_t kThings = 50;
  std::mt19937 random(seed);
  const auto things = std::make_unique<Deadline[]>(kThings);
  std::vector<std::tuple<Nanos, std::uint64_t, std::size_t>> armed(kThings);
  BasicDeadlineHeap<kArity> heap;
  Model model;
  std::uint64_t step = 0;
  const auto arm = [&](std::size_t i) {
    if (things[i].armed()) model.erase(armed[i]);
    armed[i] = {static_cast<Nanos>(random() % 100), random() % 3 << 48 | step++, i};
    heap.arm(things[i], std::get<0>(armed[i]), std::get<1>(armed[i]));
    model.insert(armed[i]);
  };
  const auto take_first = [&] {
    const std::size_t first = std::get<2>(*model.begin());
    EXPECT_EQ(&heap.take_first(), &things[first]);
    model.erase(model.begin());
    return first;
  };
  for (unsigned turn = 0; turn < 20'000; turn++) {
    const std::size_t i = random() % kThings;
    switch (random() % 5) {
      case 0:
      case 1:
        arm(i);
        break;
      case 4:  // what is taken out arms itself anew, or others, or cancels one
        if (model.empty()) break;
        if (const std::size_t first = take_first(); random() % 2) arm(first);
        if (random() % 2) arm(i);
        if (random() % 4 == 0) {
          if (things[i].armed()) model.erase(armed[i]);
          heap.cancel(things[i]);
        }
        heap.close();
        break;
      case 2:
        if (things[i].armed()) model.erase(armed[i]);
        heap.cancel(things[i]);
        ASSERT_FALSE(things[i].armed());
        break;
      case 3:
        if (model.empty()) break;
        ASSERT_EQ(&heap.pop(), &things[std::get<2>(*model.begin())]);
        model.erase(model.begin());
    }
    ASSERT_EQ(heap.size(), model.size());
    ASSERT_EQ(heap.next(), model.empty() ? kNever : std::get<0>(*model.begin()));
    ASSERT_EQ(heap.at(things[i]), things[i].armed() ? std::get<0>(armed[i]) : kNever);
  }
}

TEST(DeadlineHeap, IsASortedSetWhateverItsArity) {
  for (std::uint32_t seed = 1; seed <= 5; seed++) {
    run_against_model<2>(seed);
    run_against_model<4>(seed);
    run_against_model<8>(seed);
  }
}

TEST(DeadlineHeap, HoldsOneEntryOfEachThingHoweverOftenItIsArmed) {
  Deadline thing;
  DeadlineHeap heap;
  for (std::uint64_t n = 0; n < 1000; n++) heap.arm(thing, static_cast<Nanos>(1000 - n), n);
  EXPECT_EQ(heap.size(), 1u);
  EXPECT_EQ(heap.next(), 1);
  heap.cancel(thing);
  heap.cancel(thing);
  EXPECT_TRUE(heap.empty());
}

}  // namespace
}  // namespace rocebox
