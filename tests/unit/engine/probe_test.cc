// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/probe.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/script_kernel.h"

namespace rocebox::test {
namespace {

// Its clock goes on by 7 with each look.
class CountingProbe final : public Probe {
 public:
  Nanos now() override { return time += 7; }
  void kernel_left(unsigned stage, Nanos spent) override { kernels.push_back({stage, spent}); }
  void device_left(Nanos spent) override { devices.push_back(spent); }
  Nanos time = 1000;
  std::vector<std::pair<unsigned, Nanos>> kernels;
  std::vector<Nanos> devices;
};
using Kernels = std::vector<std::pair<unsigned, Nanos>>;

std::vector<Stage> two_passing() {
  std::vector<Stage> stages;
  stages.push_back(stage("first", {{1, 0}}));
  stages.push_back(stage("second", {out(0)}));
  return stages;
}

TEST(Probe, TimesTheFirstPacketOfEachBatchInEachKernelWhileSampling) {
  PipelineBox box(two_passing());
  CountingProbe probe;
  box.pipeline.set_probe(&probe);
  box.send(0, {1, 2, 3});
  EXPECT_TRUE(probe.kernels.empty() && probe.devices.empty()) << "not sampling";
  probe.sampling = true;
  box.send(1, {1, 2, 3});
  EXPECT_EQ(probe.kernels, (Kernels{{0, 7}, {1, 7}}));
  EXPECT_EQ(probe.devices, (std::vector<Nanos>{1000 + 5 * 7}));
  probe.sampling = false;
  box.send(2, {1});
  EXPECT_EQ(probe.kernels.size(), 2u);
  EXPECT_EQ(box.numbers().size(), 7u) << "and nothing is changed";
}

TEST(Probe, TimeThatAPacketIsHeldCountsAlsoWhenTheSampleIsOver) {
  PacketPtr held;
  std::vector<Stage> stages;
  stages.push_back(stage(
      "holder", {out(0)},
      [&](Context& c, Port, Batch& batch) {
        held = batch.take(0);
        test::arm_once(c, 50, 0);
      },
      [&](Context& c, std::uint64_t) { c.emit(std::move(held), 0); }));
  PipelineBox box(std::move(stages));
  CountingProbe probe;
  box.pipeline.set_probe(&probe);
  probe.sampling = true;
  box.send(0, {1, 2});
  EXPECT_TRUE(probe.kernels.empty()) << "it is inside";
  probe.sampling = false;
  probe.time = 5000;
  box.tick(50);
  ASSERT_EQ(probe.kernels.size(), 1u);
  EXPECT_EQ(probe.kernels[0], (std::pair<unsigned, Nanos>{0, 5007 - 1007}));
  EXPECT_EQ(box.numbers(), (std::vector<unsigned>{2, 1}));
}

TEST(Probe, CopiesAndDropsOfAPacketInTheSampleAreNotTimed) {
  CounterSet stats;
  Counter& reason = stats.counter("drop_original", "");
  PacketPtr held;
  std::vector<Stage> stages;
  stages.push_back(stage(
      "copier", {out(0)},
      [&](Context& c, Port, Batch& batch) {
        held = c.copy(batch[0]);
        batch.drop(0, reason);
        test::arm_once(c, 50, 0);
      },
      [&](Context& c, std::uint64_t) { c.emit(std::move(held), 0); }));
  PipelineBox box(std::move(stages));
  CountingProbe probe;
  box.pipeline.set_probe(&probe);
  probe.sampling = true;
  box.send(0, {1});
  EXPECT_EQ(probe.kernels, (Kernels{{0, 7}})) << "the original, which ended there";
  box.tick(50);
  EXPECT_EQ(probe.kernels.size(), 1u) << "the copy is another packet";
  EXPECT_TRUE(box.conserved());
}

}  // namespace
}  // namespace rocebox::test
