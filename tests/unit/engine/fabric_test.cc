// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/fabric.h"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

#include "tests/unit/engine/fabric_kit.h"

namespace rocebox {
namespace {

using test::FabricBox;
using Log = std::vector<std::string>;

TEST(Fabric, ChainHandsOverWithinTheInstant) {
  FabricBox box;
  const unsigned x = box.add("x"), y = box.add("y"), z = box.add("z");
  box.fabric.join({x, 1}, {y, 0});
  box.fabric.join({z, 0}, {y, 1});
  box.inject(x, 0, 7);
  box.fabric.run(50);
  EXPECT_EQ(box.take(), (Log{"x in0 7 @50", "y in0 7 @50", "z in0 7 @50", "out 2.1 7 @50"}));
  box.inject(z, 1, 8);
  box.fabric.run(50);
  EXPECT_EQ(box.take(), (Log{"z in1 8 @50", "y in1 8 @50", "x in1 8 @50", "out 0.0 8 @50"}))
      << "and back, in the same instant";
  EXPECT_EQ(box.pool.in_use(), 0u);
}

TEST(Fabric, ARoundStepsDevicesInOrderOfAddingHoweverTheyWereInjected) {
  FabricBox box;
  for (const char* name : {"x", "y", "z"}) box.add(name);
  for (unsigned device : {2u, 0u, 1u}) box.inject(device, 0, device);
  box.fabric.run(1);
  EXPECT_EQ(box.take(),
            (Log{"x in0 0 @1", "out 0.1 0 @1", "y in0 1 @1", "out 1.1 1 @1", "z in0 2 @1", "out 2.1 2 @1"}));
}

TEST(Fabric, WhatAWireCarriesArrivesInTheNextRound) {
  FabricBox box;
  const unsigned x = box.add("x"), y = box.add("y");
  box.fabric.join({x, 1}, {y, 0});
  box.inject(x, 0, 1);
  box.inject(y, 0, 2);
  box.fabric.run(1);
  EXPECT_EQ(box.take(), (Log{"x in0 1 @1", "y in0 2 @1", "out 1.1 2 @1", "y in0 1 @1", "out 1.1 1 @1"}));
}

// Each nearer timer used to leave a wake-up behind the farther one: memory grew with packets.
TEST(Fabric, HoldsOneWakeUpADeviceHoweverItsTimersChange) {
  std::deque<Timer> timers(2);
  FabricBox box;
  const unsigned x = box.add("x", [&](Context& c, Port, Batch&) {
    if (!timers[0].armed()) c.arm(timers[0], c.now() + 300 * kSecond);
    c.arm(timers[1], c.now() + 10);
  });
  box.add("y");
  for (Nanos now = 0; now < 10'000; now += 100) {
    box.fabric.advance_to(now);
    box.inject(x, 0, 1);
    box.fabric.run(now);
    ASSERT_EQ(box.fabric.wake_ups(), 1u);
    ASSERT_EQ(box.fabric.next_deadline(), now + 10);
  }
  box.fabric.advance_to(1 * kSecond);
  EXPECT_EQ(box.fabric.next_deadline(), 300 * kSecond);
}

TEST(Fabric, EndlessReflectionIsAnErrorAndFreesItsPackets) {
  auto reflect = [](Context&, Port in, Batch& b) {
    for (unsigned i = 0; i < b.size(); i++) b.send(i, in);
  };
  FabricBox box;
  const unsigned x = box.add("x", reflect), y = box.add("y", reflect);
  box.fabric.join({x, 1}, {y, 0});
  box.inject(x, 1, 1);
  try {
    box.fabric.run(1);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("without end"), std::string::npos) << error.what();
  }
  EXPECT_EQ(box.pool.in_use(), 1u);
}

TEST(Fabric, PacketsInFlightAreFreedWithTheFabric) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    PipelineDevice bump("x", {"a"}, {{Edge::kOutside, 0}}, {}, pool, 1);
    Fabric fabric([](FabricPort, std::span<Packet>, Nanos) {});
    fabric.add(bump);
    fabric.inject({0, 0}, pool.allocate(1).release());
    EXPECT_EQ(pool.in_use(), 1u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Fabric, APortJoinedToItselfMeetsItsOwnPackets) {
  FabricBox box;
  const unsigned x = box.add("x");
  box.fabric.join({x, 1}, {x, 1});
  box.inject(x, 0, 5);
  box.fabric.run(3);
  EXPECT_EQ(box.take(), (Log{"x in0 5 @3", "x in1 5 @3", "out 0.0 5 @3"}));
}

TEST(Fabric, AdvanceRunsTimersBeforeTheTimeOnly) {
  FabricBox box;
  auto arm = [](Context& c, Port, Batch& b) {
    for (unsigned i = 0; i < b.size(); i++) test::arm_once(c, c.now() + b[i].data()[0], b[i].data()[0]);
  };
  const unsigned x = box.add("x", arm, [](Context& c, std::uint64_t tag) {
    if (tag == 10) test::arm_once(c, c.now() + 5, 15);
  });
  const unsigned y = box.add("y", arm);
  box.inject(y, 0, 10);
  box.inject(x, 0, 10);
  box.inject(y, 0, 30);
  box.fabric.run(0);
  box.take();
  EXPECT_EQ(box.fabric.next_deadline(), 10);
  box.fabric.advance_to(10);
  EXPECT_EQ(box.take(), Log{});
  box.fabric.advance_to(30);
  EXPECT_EQ(box.take(), (Log{"x timer10 @10", "y timer10 @10", "x timer15 @15"}));
  box.inject(x, 0, 1);
  box.fabric.run(30);
  EXPECT_EQ(box.take(), (Log{"x in0 1 @30", "out 0.1 1 @30", "y timer30 @30"}))
      << "timers and arrivals of one instant, by device";
  EXPECT_EQ(box.fabric.next_deadline(), 31);
  box.fabric.advance_to(kNever - 1);
  EXPECT_EQ(box.fabric.next_deadline(), kNever);
}

// An earlier timer supersedes a wake-up in the heap; no timer is lost or fired twice.
TEST(Fabric, StaleWakeUpsFireNothingTwice) {
  FabricBox box;
  const unsigned x =
      box.add("x", [](Context& c, Port, Batch& b) { test::arm_once(c, b[0].data()[0], b[0].data()[0]); });
  unsigned now = 0;
  for (unsigned at : {90u, 70u, 80u, 60u, 60u, 95u}) {
    box.inject(x, 0, at);
    box.fabric.run(now++);
  }
  box.take();
  box.fabric.advance_to(65);
  box.inject(x, 0, 68);
  box.fabric.run(66);
  box.fabric.advance_to(1000);
  EXPECT_EQ(box.take(), (Log{"x timer60 @60", "x timer60 @60", "x in0 68 @66", "out 0.1 68 @66", "x timer68 @68",
                             "x timer70 @70", "x timer80 @80", "x timer90 @90", "x timer95 @95"}));
  EXPECT_EQ(box.fabric.next_deadline(), kNever);
}

TEST(Fabric, HeldCountsAllDevices) {
  FabricBox box;
  std::vector<PacketPtr> held;
  auto take = [&](Context&, Port, Batch& b) { held.push_back(b.take(0)); };
  const unsigned x = box.add("x", take), y = box.add("y", take);
  box.inject(x, 0, 1);
  box.inject(y, 0, 2);
  box.fabric.run(0);
  EXPECT_EQ(box.fabric.held(), 2u);
  EXPECT_EQ(box.pool.in_use(), 2u);
}

}  // namespace
}  // namespace rocebox
