// SPDX-License-Identifier: BSD-3-Clause
// The time of a core's loops, and of the packets that it takes from its ports in them.
#include "runtime/drives/live/loop_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/drives/live/shard_devices.h"
#include "tests/unit/harness.h"
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::loop_clock_test {
namespace {

void pass_time(const Clock& clock, Nanos nanos) {
  for (const Nanos end = clock.now() + nanos; clock.now() < end;) rte_pause();
}

TEST(LoopClock, CountsBusyTimeFromOneLoopToTheNext) {
  const Clock clock;
  LoopClock loops(clock);
  loops.read();
  pass_time(clock, kMillisecond);
  loops.read_again();
  pass_time(clock, kMillisecond);
  loops.count_busy();
  loops.read();
  EXPECT_GE(loops.busy_nanos(), 2'000'000u) << "reading again in between loses nothing";
  const std::uint64_t busy = loops.busy_nanos();
  pass_time(clock, kMillisecond);
  loops.read();
  EXPECT_EQ(loops.busy_nanos(), busy) << "nothing was done in that loop";
}

TEST(LoopClock, ALinkDelaysPacketsFromWhenTheyHaveComeHoweverLongAgoTheLoopBegan) {
  const config::RunConfig config =
      fabric_test::load("devices: {near: {path: a <-> link <-> b, kernels: {link: {delay: 5ms}}}}\n");
  Pool pool({.small = 64, .large = 16, .giant = 2});
  const Clock clock;
  LoopClock loops(clock);
  LatencySample sample(clock, 0);
  std::vector<ShardPortCounters> counters;
  TransmitQueues queues(0, {}, nullptr, 32, sample, counters);
  ShardDevices devices(0, config, pool, loops, queues, sample);
  loops.read();
  devices.start();
  pass_time(clock, 2 * kMillisecond);

  const std::vector<std::uint8_t> frame = test::frame({});
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(frame.size()));
  std::copy(frame.begin(), frame.end(), packet->data());
  Packet burst[] = {packet.release()};
  const Nanos came = clock.now();
  devices.deliver(devices.testbed().port({"near", "a"}), burst);
  EXPECT_GE(devices.next_deadline(), came + 5 * kMillisecond);
  EXPECT_LT(devices.next_deadline(), kNever);
}

}  // namespace
}  // namespace rocebox::loop_clock_test
