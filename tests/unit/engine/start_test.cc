// SPDX-License-Identifier: BSD-3-Clause
// What a kernel arms at its start fires although nothing comes, alone and in a fabric.
#include <gtest/gtest.h>

#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"
#include "tests/unit/harness.h"

namespace rocebox {
namespace {

// Sends a packet by port 0 at `first` and 10 ns later.
class Beacon final : public Kernel {
 public:
  explicit Beacon(Nanos first) : first_(first) {}
  void start(Context& context) override {
    EXPECT_EQ(context.now(), 0);
    context.arm(timers_[0], first_);
    context.arm(timers_[1], first_ + 10);
  }
  void process(Context&, Port, Batch&) override {}
  void on_timer(Context& context, Timer& timer) override {
    PacketPtr packet = context.allocate(64);
    packet->data()[0] = static_cast<std::uint8_t>(timer.tag());
    context.emit(std::move(packet), 0);
  }

 private:
  Nanos first_;
  Timer timers_[2] = {Timer(7), Timer(8)};
};

TEST(Start, TimersFireAlthoughNothingComes) {
  test::KernelBox box([](Stats&) { return std::make_unique<Beacon>(5); }, 1, Shape::kOneWay, 1, 1);
  EXPECT_EQ(box.pipeline->next_deadline(), 5);
  box.drain();
  ASSERT_EQ(box.out.size(), 2u);
  EXPECT_EQ(box.out[0].at, 5);
  EXPECT_EQ(box.out[1].bytes[0], 8);
}

// The clock of a live run begins elsewhere: what was armed for time 0 fires with the first step.
TEST(Start, TimeZeroIsTheFirstStepOfALateClock) {
  test::KernelBox box([](Stats&) { return std::make_unique<Beacon>(0); }, 1, Shape::kOneWay, 1, 1);
  box.pipeline->step(1'000'000, {});
  ASSERT_EQ(box.out.size(), 2u);
  EXPECT_EQ(box.out[0].at, 1'000'000);
}

TEST(Start, AFabricWakesADeviceThatHasHadNoPacket) {
  Pool pool(test::kPoolSizes);
  std::vector<Nanos> left;
  PipelineDevice beacon("beacon", {"p"}, {{Edge::kOutside, 0}},
                        {{"beacon",
                          "beacon",
                          Shape::kOneWay,
                          {{Edge::kOutside, 0}},
                          [](Stats&) { return std::make_unique<Beacon>(100); }}},
                        pool, 1);
  Fabric fabric([&](FabricPort, std::span<Packet> packets, Nanos now) {
    for (Packet packet : packets) {
      left.push_back(now);
      rte_pktmbuf_free(packet.mbuf());
    }
  });
  fabric.add(beacon);
  EXPECT_EQ(fabric.next_deadline(), 100);
  fabric.advance_to(1000);
  EXPECT_EQ(left, (std::vector<Nanos>{100, 110}));
}

}  // namespace
}  // namespace rocebox
