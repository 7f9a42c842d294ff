// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel/rate_queue.h"

#include <gtest/gtest.h>

namespace rocebox {
namespace {

constexpr std::uint64_t kRate = 400'000'000'000;
constexpr std::uint64_t kBytes = 1106;  // 22.12 ns

// Who learns of an end rounded up, and then begins the next packet, loses nothing by that.
TEST(RateQueue, PacketsBackToBackTakeTheirRatesTime) {
  RateQueue queue(kRate);
  Nanos now = 0;
  for (int i = 0; i < 1000; i++) {
    const RateQueue::Free free = queue.after_the_last(now, kBytes);
    queue.accept(free);
    now = free.rounded_up();
  }
  EXPECT_EQ(now, 22'120);
}

TEST(RateQueue, AnIdleOneBeginsWhenAPacketComes) {
  RateQueue queue(kRate);
  queue.accept(queue.after_the_last(0, kBytes));
  for (const Nanos later : {24, 1000}) {
    const RateQueue::Free free = queue.after_the_last(later, kBytes);
    EXPECT_EQ(free.ns, later + 22);
    EXPECT_EQ(free.rounded_up(), later + 23);
  }
  EXPECT_EQ(queue.after_the_last(23, kBytes).rounded_up(), 45) << "two in 44.24 ns";
  EXPECT_EQ(queue.after(23, kBytes).rounded_up(), 46) << "what came at 23 and not before";
}

}  // namespace
}  // namespace rocebox
