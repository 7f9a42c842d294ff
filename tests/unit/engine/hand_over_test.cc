// SPDX-License-Identifier: BSD-3-Clause
// What a packet brings with it from device to device of a fabric: its identity, and what parsing it said.
#include <gtest/gtest.h>

#include <optional>

#include "runtime/roce/build.h"
#include "tests/unit/engine/fabric_kit.h"

namespace rocebox {
namespace {

using test::FabricBox;

// Notes the metadata of all packets that come to a device.
test::ScriptKernel::Process noted(std::vector<PacketMeta>& metas) {
  return [&metas](Context&, Port, Batch& b) {
    for (unsigned i = 0; i < b.size(); i++) metas.push_back(b[i].meta());
  };
}

// A packet of RoCE that has not been parsed, as a port would bring it.
Packet acknowledgement(Pool& pool) {
  roce::PacketSpec spec;
  spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  PacketPtr packet = pool.allocate(roce::built_bytes(spec));
  roce::build(*packet, spec);
  return packet.release();
}

TEST(HandOver, APacketIsTheSameInEveryDevice) {
  std::vector<PacketMeta> at_x, at_y;
  FabricBox box;
  const unsigned x = box.add("x", noted(at_x)), y = box.add("y", noted(at_y));
  box.fabric.join({x, 1}, {y, 0});
  box.inject(y, 0, 1);  // comes first to y, and has the first number
  box.fabric.run(1);
  box.inject(x, 0, 2);
  box.inject(x, 0, 3);
  box.fabric.run(2);
  ASSERT_EQ(at_x.size(), 2u);
  ASSERT_EQ(at_y.size(), 3u);
  EXPECT_EQ(at_y[0].identity, 1u);
  for (unsigned i = 0; i < 2; i++) {
    EXPECT_EQ(at_x[i].identity, 2u + i);
    EXPECT_EQ(at_y[1 + i].identity, at_x[i].identity);
    EXPECT_EQ(at_y[1 + i].arrival, 2);
  }
}

TEST(HandOver, WhatAKernelMakesHasItsOwnIdentityFromThereOn) {
  std::vector<PacketMeta> at_y, at_z;
  FabricBox box;
  const unsigned x = box.add("x", [](Context& c, Port, Batch& b) {
    c.emit(c.copy(b[0]), 1);
    PacketPtr made = c.allocate(1);
    made->data()[0] = 9;
    EXPECT_EQ(made->meta().made, 1u) << "before it goes anywhere, since it may be dropped here";
    c.emit(std::move(made), 1);
  });
  const unsigned y = box.add("y", noted(at_y)), z = box.add("z", noted(at_z));
  box.fabric.join({x, 1}, {y, 0});
  box.fabric.join({y, 1}, {z, 0});
  box.inject(x, 0, 1);
  box.fabric.run(1);
  ASSERT_EQ(at_y.size(), 3u);
  EXPECT_EQ(at_y[0].identity, 1u);
  EXPECT_EQ(at_y[1].identity, 1u) << "a copy is the same packet twice";
  EXPECT_EQ(at_y[2].identity, 2u);
  EXPECT_EQ(at_y[2].made, 0u) << "in y nobody has made it";
  ASSERT_EQ(at_z.size(), 3u);
  EXPECT_EQ(at_z[2].identity, 2u);
}

TEST(HandOver, IsParsedOnceUnlessSomebodyHasChangedItsLength) {
  std::optional<PacketMeta> at_y, at_z;
  const auto keep = [](std::optional<PacketMeta>& meta) {
    return [&meta](Context&, Port, Batch& b) { meta = b[0].meta(); };
  };
  FabricBox box;
  const unsigned x = box.add("x", [](Context&, Port, Batch& b) {
    ASSERT_EQ(b[0].meta().status, ParseStatus::kRoce);
    b[0].meta().pad_bytes = 3;  // a lie, which parsing again would mend
  });
  const unsigned y = box.add("y", [&](Context&, Port, Batch& b) {
    at_y = b[0].meta();
    ASSERT_TRUE(b[0].resize(20));
  });
  const unsigned z = box.add("z", keep(at_z));
  box.fabric.join({x, 1}, {y, 0});
  box.fabric.join({y, 1}, {z, 0});
  box.fabric.inject({x, 0}, acknowledgement(box.pool));
  box.fabric.run(1);
  ASSERT_TRUE(at_y && at_z);
  EXPECT_EQ(at_y->status, ParseStatus::kRoce);
  EXPECT_EQ(at_y->pad_bytes, 3u) << "nobody parsed it again";
  EXPECT_EQ(at_z->status, ParseStatus::kShorterThanIpLength);
}

// A device alone needs no rounds, but nothing else is different for those around it.
TEST(HandOver, ADeviceAloneDoesWhatItDoesBesideAnother) {
  const auto log_of = [](bool alone) {
    FabricBox box;
    const unsigned x = box.add("x", [](Context& c, Port, Batch&) { test::arm_once(c, c.now() + 7, 1); });
    if (!alone) box.add("y");
    box.inject(x, 0, 1);
    box.fabric.run(10);
    Packet packet = box.pool.allocate(1).release();
    packet.data()[0] = 2;
    box.fabric.run(12, {x, 1}, {&packet, 1});
    box.fabric.advance_to(18);
    box.fabric.run(18);
    EXPECT_EQ(box.fabric.next_deadline(), 19);
    EXPECT_EQ(box.fabric.wake_ups(), 1u);
    box.fabric.run(19);
    EXPECT_EQ(box.fabric.next_deadline(), kNever);
    EXPECT_EQ(box.fabric.wake_ups(), 0u);
    return box.take();
  };
  const auto alone = log_of(true);
  EXPECT_EQ(alone.size(), 6u);
  EXPECT_EQ(alone, log_of(false));
}

// A kernel that a host rings at; what it was told leaves as a packet.
class Rung final : public Kernel, private HostSide {
 public:
  void ring(unsigned number) { rung_.push_back(number); }
  HostSide* host_side() override { return this; }
  void process(Context&, Port, Batch&) override {}
  void on_host(Context& context) override {
    for (const unsigned number : rung_) {
      PacketPtr packet = context.allocate(1);
      packet->data()[0] = static_cast<std::uint8_t>(number);
      context.emit(std::move(packet), 1);
    }
    rung_.clear();
  }

 private:
  bool has_posted() const override { return !rung_.empty(); }
  std::vector<unsigned> rung_;
};

TEST(HandOver, WhatAHostPostsIsSeenInTheInstantInWhichItsDeviceIsWoken) {
  FabricBox box;
  Rung* host = nullptr;
  std::vector<KernelPlan> plans;
  plans.push_back({"k", "rung", Shape::kTwoSided, {test::out(0), test::out(1)}, [&host](Stats&) {
                     auto made = std::make_unique<Rung>();
                     host = made.get();
                     return made;
                   }});
  PipelineDevice device("x", {"a", "b"}, {{0, 0}, {0, 1}}, std::move(plans), box.pool, 1);
  ASSERT_NE(device.host_side(), nullptr);
  const unsigned x = box.fabric.add(device), y = box.add("y");
  EXPECT_EQ(box.devices.back()->host_side(), nullptr);
  box.fabric.join({x, 1}, {y, 0});
  EXPECT_FALSE(device.host_side()->has_posted());
  host->ring(5);
  host->ring(6);
  EXPECT_TRUE(device.host_side()->has_posted());
  box.fabric.wake(x);
  box.fabric.run(3);
  EXPECT_EQ(box.take(), (std::vector<std::string>{"y in0 5 @3", "y in0 6 @3", "out 1.1 5 @3", "out 1.1 6 @3"}));
  EXPECT_FALSE(device.host_side()->has_posted());
}

}  // namespace
}  // namespace rocebox
