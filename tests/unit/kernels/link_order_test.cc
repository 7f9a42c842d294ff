// SPDX-License-Identifier: BSD-3-Clause
// Reordering by displacement and by jitter.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

roce::PacketSpec spec(std::uint32_t psn) {
  roce::PacketSpec spec;
  spec.psn = psn;
  return spec;
}

link::Event reorder(std::int64_t packet, std::int64_t packets) {
  link::Event event;
  event.packet = packet;
  event.action = link::Action::kReorder;
  event.packets = packets;
  return event;
}

using Order = std::vector<std::uint64_t>;

TEST(LinkReorder, DisplacementIsExact) {
  for (Nanos delay : {0, 700})
    for (std::int64_t by : {1, 2, 3, 17}) {
      link::Config config;
      config.forward.delay = delay;
      config.forward.events = {reorder(5, by)};
      test::KernelBox box(with(config));
      for (std::uint32_t i = 1; i <= 40; i++) box.send(i * 100, 0, spec(i));
      box.drain();
      ASSERT_EQ(box.out.size(), 40u);
      const auto place = static_cast<std::size_t>(4 + by);  // that many have gone before
      EXPECT_EQ(box.out[place].meta.identity, 5u);
      EXPECT_EQ(box.out[place].at, box.out[place - 1].at) << "right behind the last of them";
      EXPECT_EQ(box.out[place - 1].meta.identity, static_cast<std::uint64_t>(5 + by));
    }
}

TEST(LinkReorder, SeveralAtOnceAreEachOvertakenByTheirNumber) {
  link::Config config;
  config.forward.events = {reorder(1, 3), reorder(2, 1), reorder(6, 2), reorder(7, 2)};
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 10; i++) box.send(i * 100, 0, spec(i));
  // 1 is overtaken by 3, 2, 4: what was reordered itself counts too. 6 and 7 by 8 and 9.
  EXPECT_EQ(sequences(box), (Order{3, 2, 4, 1, 5, 8, 9, 6, 7, 10}));
}

TEST(LinkReorder, RandomOnesAreOvertakenByExactlyTheirNumber) {
  link::Config config;
  config.forward.reorder = 0.1;
  config.forward.reorder_by = 4;
  config.forward.reorder_timeout = kSecond;
  test::KernelBox box(with(config));
  constexpr std::uint32_t kPackets = 4000;
  for (std::uint32_t i = 1; i <= kPackets; i++) box.send(i * 100, 0, spec(i));
  box.drain();
  ASSERT_EQ(box.out.size(), kPackets);
  std::uint64_t displaced = 0;
  const Order order = sequences(box);
  for (std::size_t at = 0; at < order.size(); at++) {
    const auto overtaken = std::count_if(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(at),
                                         [&](std::uint64_t other) { return other > order[at]; });
    if (overtaken == 0) continue;
    displaced++;
    if (order[at] + 60 < kPackets) {
      EXPECT_EQ(overtaken, 4) << order[at];
    }
  }
  EXPECT_EQ(displaced, box.stats.read("forward_reordered"));
  EXPECT_NEAR(static_cast<double>(displaced), 400, 80);
}

TEST(LinkReorder, LeavesByTheTimeLimitWhenNothingFollows) {
  link::Config config;
  config.forward.delay = 3000;
  config.forward.reorder_timeout = 50'000;
  config.forward.events = {reorder(1, 3)};
  test::KernelBox box(with(config));
  box.send(100, 0, spec(1));
  box.send(200, 0, spec(2));
  box.drain();
  EXPECT_EQ(sequences(box), (Order{2, 1}));
  EXPECT_EQ(box.out[1].at, 100 + 3000 + 50'000);
  EXPECT_EQ(box.stats.read("forward_reorder_timeout"), 1u);
}

TEST(LinkReorder, TheTimeLimitHoldsAlsoWhenTheLastOvertakerIsLate) {
  link::Config config;
  config.forward.delay = 10'000;
  config.forward.reorder_timeout = 5'000;
  config.forward.events = {reorder(1, 1)};
  test::KernelBox box(with(config));
  box.send(0, 0, spec(1));
  box.send(8'000, 0, spec(2));  // before the limit, but it would arrive after it
  box.drain();
  EXPECT_EQ(sequences(box), (Order{1, 2}));
  EXPECT_EQ(box.out[0].at, 15'000);
}

TEST(LinkReorder, AtMost64AreHeldBack) {
  link::Config config;
  config.forward.reorder = 1;
  config.forward.reorder_by = 4096;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 70; i++) box.send(i, 0, spec(i));
  EXPECT_EQ(box.stats.read("forward_reordered"), 64u);
  EXPECT_EQ(box.stats.read("forward_reorder_refused"), 6u);
  EXPECT_EQ(box.out.size(), 6u);
  box.drain();
  EXPECT_EQ(box.out.size(), 70u);
}

TEST(LinkJitter, KeepsOrderByDefault) {
  link::Config config;
  config.forward.delay = 10'000;
  config.forward.jitter = 50'000;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 5000; i++) box.send(i * 1000, 0, spec(i));
  box.drain();
  const Order order = sequences(box);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  for (std::size_t i = 0; i < box.out.size(); i++) {
    const Nanos sent = static_cast<Nanos>(order[i]) * 1000;
    ASSERT_GE(box.out[i].at, sent + 10'000);
    ASSERT_LE(box.out[i].at, sent + 60'000);
  }
}

TEST(LinkJitter, IsUniformAndOvertakesWhenAllowed) {
  link::Config config;
  config.forward.jitter = 99;
  config.forward.jitter_reorders = true;
  test::KernelBox box(with(config));
  std::vector<unsigned> histogram(100);
  constexpr unsigned kPackets = 100'000;
  std::uint64_t highest = 0, overtaken = 0;
  for (unsigned i = 1; i <= kPackets; i++) box.send(i * 10, 0, spec(i));
  box.drain();
  ASSERT_EQ(box.out.size(), kPackets);
  for (const test::Out& out : box.out) {
    const Nanos jitter = out.at - static_cast<Nanos>(out.meta.identity) * 10;
    ASSERT_GE(jitter, 0);
    ASSERT_LE(jitter, 99);
    histogram[static_cast<std::size_t>(jitter)]++;
    overtaken += out.meta.identity < highest;
    highest = std::max(highest, out.meta.identity);
  }
  EXPECT_GT(overtaken, kPackets / 10);
  for (unsigned count : histogram) EXPECT_NEAR(count, 1000, 4.5 * 31.5);
}

TEST(LinkJitter, TiesLeaveInTheOrderOfArrival) {
  link::Config config;
  config.forward.delay = 100;
  config.forward.jitter = 3;
  config.forward.jitter_reorders = true;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 500; i++) box.send(i / 50, 0, spec(i));
  box.drain();
  for (std::size_t i = 1; i < box.out.size(); i++)
    if (box.out[i].at == box.out[i - 1].at) {
      ASSERT_GT(box.out[i].meta.identity, box.out[i - 1].meta.identity);
    }
}

}  // namespace
}  // namespace rocebox
