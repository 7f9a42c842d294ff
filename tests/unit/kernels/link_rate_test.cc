// SPDX-License-Identifier: BSD-3-Clause
// Serialization, propagation and the queue's limit, against arithmetic written apart.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

__extension__ using Int128 = __int128;

std::vector<std::uint8_t> packet(std::uint32_t psn, std::size_t payload_bytes) {
  const std::vector<std::uint8_t> payload(payload_bytes, 0x5A);
  roce::PacketSpec spec;
  spec.psn = psn;
  spec.payload = payload;
  return test::frame(spec);
}

// A transmitter as a fraction: the time of being free, times the rate.
struct Oracle {
  Int128 rate, free = 0;
  Nanos depart(Nanos now, std::uint64_t wire_bytes) {
    free = std::max(free, now * rate) + Int128{static_cast<std::int64_t>(wire_bytes)} * 8'000'000'000;
    return static_cast<Nanos>((free + rate - 1) / rate);
  }
};

TEST(LinkRate, LongTrainsLeaveAtExactTimes) {
  for (std::uint64_t rate :
       {333'333'333ull, 1'000'000'000ull, 7'777'777ull, 99'999'999'977ull, 400'000'000'000ull, 1'000ull}) {
    link::Config config;
    config.forward.rate = rate;
    config.forward.queue = 1 << 30;
    config.forward.delay = 12'345;
    test::KernelBox box(with(config));
    Oracle oracle{static_cast<std::int64_t>(rate)};
    auto random = [engine = std::mt19937(7)]() mutable { return static_cast<unsigned>(engine()); };
    std::vector<Nanos> expected;
    Int128 train_bytes = 0;
    for (std::uint32_t i = 0; i < 4000; i++) {
      const auto bytes = packet(i, random() % 1025);
      train_bytes += static_cast<std::int64_t>(bytes.size() + 24);
      box.send(0, 0, bytes);
      expected.push_back(oracle.depart(0, bytes.size() + 24) + 12'345);
    }
    box.drain();
    ASSERT_EQ(box.out.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); i++) ASSERT_EQ(box.out[i].at, expected[i]) << rate;
    const long double exact = static_cast<long double>(train_bytes) * 8e9L / static_cast<long double>(rate);
    EXPECT_LT(static_cast<long double>(box.out.back().at - 12'345) - exact, 1.0L) << rate;
  }
}

TEST(LinkRate, GapsAndIdleTimesAreExact) {
  link::Config config;
  config.forward.rate = 333'333'333;
  config.forward.overhead = 7;
  test::KernelBox box(with(config));
  Oracle oracle{333'333'333};
  auto random = [engine = std::mt19937(8)]() mutable { return static_cast<unsigned>(engine()); };
  std::vector<Nanos> expected;
  Nanos now = 0;
  for (std::uint32_t i = 0; i < 5000; i++) {
    now += random() % 40'000;
    const auto bytes = packet(i, random() % 1025);
    box.send(now, 0, bytes);
    expected.push_back(oracle.depart(now, bytes.size() + 7));
  }
  box.drain();
  ASSERT_EQ(box.out.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); i++) ASSERT_EQ(box.out[i].at, expected[i]) << i;
}

TEST(LinkRate, WireLengthCountsNotTheBytesHeld) {
  link::Config config;
  config.forward.rate = 8'000'000;  // a byte takes a microsecond
  config.forward.overhead = 0;
  test::KernelBox box(with(config));
  auto bytes = packet(0, 1000);
  const auto wire_bytes = static_cast<std::uint32_t>(bytes.size());
  bytes.resize(100);
  box.send(0, 0, bytes, wire_bytes);
  box.drain();
  ASSERT_EQ(box.out.size(), 1u);
  EXPECT_EQ(box.out[0].at, wire_bytes * 1000);
}

TEST(LinkRate, AnAbsurdWireLengthDoesNotOverflow) {
  link::Config config;
  config.forward.rate = 1'000;
  test::KernelBox box(with(config));
  box.send(0, 0, packet(0, 10), 0xFFFFFFFF);
  box.send(1, 0, packet(1, 10));
  box.drain();
  ASSERT_EQ(box.out.size(), 1u) << "the second finds the queue full";
  EXPECT_EQ(box.out[0].at, (std::int64_t{1} << 30) * 8'000'000);
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 1u);
}

// At a byte per microsecond everything is whole, so the queue can be followed with plain integers.
TEST(LinkQueue, TheLimitIsExactToTheByte) {
  link::Config config;
  config.forward.rate = 8'000'000;
  config.forward.queue = 4000;
  test::KernelBox box(with(config));
  auto random = [engine = std::mt19937(9)]() mutable { return static_cast<unsigned>(engine()); };
  Nanos now = 0, free = 0;
  std::uint64_t drops = 0, most = 0;
  std::vector<Nanos> expected;
  for (std::uint32_t i = 0; i < 4000; i++) {
    now += random() % 1'000'000;
    const auto bytes = packet(i, random() % 1025);
    const Nanos size = static_cast<Nanos>(bytes.size()) + 24;
    const Nanos occupied = free > now ? (free - now + 999) / 1000 : 0;
    if (occupied > 0 && occupied + size > 4000) {
      drops++;
    } else {
      free = std::max(free, now) + size * 1000;
      expected.push_back(free);
      most = std::max(most, static_cast<std::uint64_t>(occupied + size));
    }
    box.send(now, 0, bytes);
  }
  box.drain();
  ASSERT_EQ(box.out.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); i++) ASSERT_EQ(box.out[i].at, expected[i]);
  EXPECT_GT(drops, 100u);
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), drops);
  EXPECT_EQ(box.stats.read("forward_queue_bytes_max"), most);
}

TEST(LinkQueue, FillsToTheLastByteAndNotOneMore) {
  const auto size = packet(0, 500).size() + 24;
  for (std::uint64_t spare : {0u, 1u}) {
    link::Config config;
    config.forward.rate = 1'000'000;
    config.forward.queue = 3 * size - spare;
    test::KernelBox box(with(config));
    for (std::uint32_t i = 0; i < 4; i++) box.send(0, 0, packet(i, 500));
    EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 1 + spare);
    box.drain();
  }
}

TEST(LinkQueue, AnIdleTransmitterTakesAnySize) {
  link::Config config;
  config.forward.rate = 1'000'000'000;
  config.forward.queue = 0;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 100; i++) box.send(i * 100'000, 0, packet(i, 1000));
  box.send(99 * 100'000 + 1, 0, packet(100, 1000));
  box.drain();
  EXPECT_EQ(box.out.size(), 100u);
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 1u);
}

TEST(LinkDelay, PropagationAloneKeepsOrderAndTimes) {
  link::Config config;
  config.forward.delay = 25'000'000;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 2000; i++) box.send(i * 1000, 0, packet(i, 8));
  box.drain();
  ASSERT_EQ(box.out.size(), 2000u);
  for (std::uint32_t i = 0; i < 2000; i++) {
    ASSERT_EQ(box.out[i].at, 25'000'000 + i * 1000);
    ASSERT_EQ(box.out[i].bytes, packet(i, 8));
    ASSERT_EQ(box.out[i].port, 1);
  }
}

TEST(LinkDelay, WithoutOptionsPacketsPassAtOnceAndNoTimerIsArmed) {
  test::KernelBox box(with({}));
  for (std::uint32_t i = 0; i < 100; i++) box.send(i, i & 1, packet(i, 8));
  ASSERT_EQ(box.out.size(), 100u);
  EXPECT_EQ(box.pipeline->next_deadline(), kNever);
  EXPECT_EQ(box.stats.read("forward_packets"), 50u);
  EXPECT_EQ(box.stats.read("reverse_delivered"), 50u);
}

TEST(LinkDelay, AtMostSoManyPacketsAreHeld) {
  link::Config config;
  config.forward.delay = 1'000'000;
  config.forward.packets = 64;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 100; i++) box.send(i, 0, packet(i, 8));
  EXPECT_EQ(box.conservation().held(), 64u);
  EXPECT_EQ(box.stats.read("forward_drop_held_full"), 36u);
  box.send(1'000'000, 0, packet(100, 8));  // the first leaves before this one comes in
  EXPECT_EQ(box.stats.read("forward_drop_held_full"), 36u);
  box.drain();
  EXPECT_EQ(box.out.size(), 65u);
}

TEST(LinkDelay, HeldPacketsAreFreedWithTheLink) {
  link::Config config;
  config.forward.delay = config.reverse.delay = 1'000'000;
  config.forward.jitter = 1'000'000;
  config.forward.jitter_reorders = true;
  config.forward.reorder = 0.3;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 200; i++) box.send(i, i & 1, packet(i, 8));
}  // the box checks that nothing is left

}  // namespace
}  // namespace rocebox
