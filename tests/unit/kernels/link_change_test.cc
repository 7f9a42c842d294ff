// SPDX-License-Identifier: BSD-3-Clause
// A link whose options change while packets are on their way.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/kernels/link_kit.h"
#include "tests/unit/options.h"

namespace rocebox::test {
namespace {

// Gives the link in `box` these options at `now`. Throws ConfigError.
void change(KernelBox& box, const std::string& yaml, Nanos now) {
  const std::unique_ptr<Change> change = options_of(link_component(), yaml)->change(*box.kernel);
  change->apply(*box.kernel, now);
}

std::vector<Nanos> times(const KernelBox& box) {
  std::vector<Nanos> result;
  for (const Out& out : box.out) result.push_back(out.at);
  return result;
}

const std::vector<std::uint8_t> kFrame(976, 0x55);  // 1000 bytes on the wire with the usual overhead

TEST(LinkChange, PacketsOnTheirWayKeepTheirTimeAndAreNotOvertaken) {
  link::Config config;
  config.forward.delay = config.reverse.delay = kMillisecond;
  KernelBox box(with(config));
  box.send(0, 0, kFrame);
  change(box, "delay: 10us", 100'000);
  box.send(200'000, 0, kFrame);
  box.send(200'000, 1, kFrame);
  box.send(2'000'000, 0, kFrame);
  box.drain();
  EXPECT_EQ(times(box), (std::vector<Nanos>{210'000, 1'000'000, 1'000'000, 2'010'000}));
  EXPECT_EQ(box.out[0].port, 0) << "the other direction has its own order";
}

TEST(LinkChange, ALinkThatNeverHeldAPacketCanBeToldTo) {
  KernelBox box(with(link::Config{}));
  box.send(0, 0, kFrame);
  change(box, "delay: 1ms", 10);
  box.send(20, 0, kFrame);
  EXPECT_EQ(box.conservation().held(), 1u);
  box.drain();
  EXPECT_EQ(times(box), (std::vector<Nanos>{0, 1'000'020}));
}

TEST(LinkChange, WhatWaitsBeforeATransmitterTakesAsLongAsTheNewRateNeeds) {
  link::Config config;
  config.forward.rate = 1'000'000'000;  // 8 us a frame
  KernelBox box(with(config));
  for (int i = 0; i < 3; i++) box.send(0, 0, kFrame);
  change(box, "rate: 100Mbps", 4'000);  // half of the first and two more are left: 2500 bytes, 200 us
  box.send(4'000, 0, kFrame);
  box.drain();
  EXPECT_EQ(times(box), (std::vector<Nanos>{8'000, 16'000, 24'000, 4'000 + 200'000 + 80'000}));
  change(box, "rate: unlimited", 500'000);
  box.send(500'000, 0, kFrame);
  EXPECT_EQ(times(box).back(), 500'000);
}

TEST(LinkChange, LossBeginsAndEnds) {
  KernelBox box(with(link::Config{}));
  change(box, "loss: 100%", 0);
  for (int i = 0; i < 10; i++) box.send(i, 0, kFrame);
  change(box, "{}", 10);
  for (int i = 0; i < 10; i++) box.send(10 + i, 0, kFrame);
  EXPECT_EQ(box.out.size(), 10u);
  EXPECT_EQ(box.stats.read("forward_drop_loss"), 10u);
}

TEST(LinkChange, WhatSizesItsMemoryIsRefusedAndNothingChanges) {
  KernelBox box(with(link::Config{}));
  for (const std::string option : {"packets: 128", "events: [{packet: 1, do: drop}]"}) {
    try {
      change(box, "{loss: 100%, " + option + "}", 0);
      ADD_FAILURE() << option;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("`" + option.substr(0, option.find(':')) + "`"), std::string::npos)
          << error.what();
    }
  }
  box.send(0, 0, kFrame);
  EXPECT_EQ(box.out.size(), 1u);
}

TEST(LinkChange, NoPacketIsLostOrOvertakenByAnySequenceOfChanges) {
  KernelBox box(with(link::Config{}));
  std::mt19937_64 random(7);
  const std::vector<std::string> options = {"{}",
                                            "delay: 300us",
                                            "delay: 2us",
                                            "rate: 10Gbps",
                                            "rate: 200Mbps",
                                            "{delay: 50us, jitter: 40us}",
                                            "{rate: 1Gbps, delay: 5us}"};
  Nanos now = 0;
  for (unsigned i = 0; i < 3000; i++) {
    now += static_cast<Nanos>(random() % 20'000);
    box.run_until(now);
    if (random() % 10 == 0) change(box, options[random() % options.size()], now);
    box.send(now, 0, kFrame);
  }
  box.drain();
  ASSERT_EQ(box.out.size(), 3000u);
  const std::vector<std::uint64_t> order = sequences(box);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace rocebox::test
