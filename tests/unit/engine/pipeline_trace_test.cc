// SPDX-License-Identifier: BSD-3-Clause
// What the engine tells a trace, the random streams, and invariants that end the process.
#include <gtest/gtest.h>

#include "runtime/engine/pipeline_device.h"
#include "tests/unit/engine/script_kernel.h"

namespace rocebox {
namespace {

using test::out;
using test::PipelineBox;
using test::stage;

class EventLog final : public TraceSink {
 public:
  explicit EventLog(const CounterSet& stats) : stats_(stats) {}
  std::uint8_t follows(Packet packet) override { return packet.data()[0] >= 100; }
  void record(const TraceEvent& e) override {
    static constexpr const char* kNames[] = {"arrive", "pass", "send", "drop", "hold", "emit", "leave", "note"};
    std::string line = std::string(e.stage) + " " + kNames[static_cast<int>(e.verdict)];
    if (e.verdict == TraceVerdict::kSend || e.verdict == TraceVerdict::kEmit || e.verdict == TraceVerdict::kLeave)
      line += std::to_string(e.port);
    if (!e.note.empty()) line += " " + std::string(e.note);
    if (e.reason) line += " " + std::string(stats_.name_of(e.reason));
    line += " #" + std::to_string(e.info.identity);
    lines.push_back(line);
    ASSERT_TRUE(e.packet) << "a capture of the trace wants its bytes";
    bytes.push_back(e.packet.data()[0]);
  }
  std::vector<std::string> lines;
  std::vector<unsigned> bytes;

 private:
  const CounterSet& stats_;
};

TEST(PipelineTrace, AnEventForEachVerdict) {
  std::vector<PacketPtr> held;
  CounterSet* stats = nullptr;
  std::vector<Stage> stages;
  stages.push_back(stage(
      "a", {{1, 0}, out(1)},
      [&](Context& c, Port, Batch& b) {
        Counter& reason = stats->counter("drop_test", "");
        for (unsigned i = 0; i < b.size(); i++) {
          switch (b[i].data()[0]) {
            case 101:
              b.send(i, 1);
              break;
            case 102:
              b.drop(i, reason);
              break;
            case 103:
              held.push_back(b.take(i));
              test::arm_once(c, 10, 0);
              break;
            case 104:
              held.push_back(b.take(i));
              break;
            case 105:
              c.emit(c.copy(b[i]), 1, i);
              break;
            case 106: {
              PacketPtr made = c.allocate(1);
              made->data()[0] = 150;
              c.emit(std::move(made), 1, i);
              break;
            }
            default:
              break;
          }
        }
      },
      [&](Context& c, std::uint64_t) {
        c.emit(std::move(held[0]), 1);
        c.drop(std::move(held[1]), stats->counter("drop_test", ""));
      }));
  stages.push_back(stage("b", {{Edge::kNowhere, 0}}));
  PipelineBox box(std::move(stages));
  stats = &box.stats;
  EventLog recorder(box.stats);
  box.pipeline.set_trace(&recorder);
  std::vector<Packet> packets;
  for (unsigned number : {100u, 101u, 102u, 103u, 104u, 105u, 106u, 7u}) {
    packets.push_back(box.packet(number));
    packets.back().meta().traced = number >= 100;
  }
  box.pipeline.set_batch_max(1);
  const Arrivals arrivals{0, packets};
  box.pipeline.step(0, {&arrivals, 1});
  box.tick(10);
  const std::vector<std::string> expected = {"a pass #1",
                                             "b pass #1",
                                             " drop drop_not_connected #1",
                                             "a send1 #2",
                                             " leave1 #2",
                                             "a drop drop_test #3",
                                             "a hold #4",
                                             "a hold #5",
                                             "a pass #6",
                                             "b pass #6",
                                             " drop drop_not_connected #6",
                                             "a emit1 #6",
                                             " leave1 #6",
                                             "a pass #7",
                                             "b pass #7",
                                             " drop drop_not_connected #7",
                                             "a emit1 #9",
                                             " leave1 #9",
                                             "a drop drop_test #5",
                                             "a emit1 #4",
                                             " leave1 #4"};
  EXPECT_EQ(recorder.lines, expected) << "packet 8 is not followed, the made one is";
  EXPECT_EQ(box.pool.in_use(), 0u);
}

// Without any mark: what was held before the trace began is told of, too.
TEST(PipelineTrace, EveryDropAndEveryPort) {
  std::vector<PacketPtr> held;
  CounterSet* stats = nullptr;
  std::vector<Stage> stages;
  stages.push_back(stage(
      "a", {out(1)},
      [&](Context& c, Port, Batch& b) {
        for (unsigned i = 0; i < b.size(); i++) {
          if (b[i].data()[0] == 1) b.drop(i, stats->counter("drop_test", ""));
          if (b[i].data()[0] == 2 || b[i].data()[0] == 3) held.push_back(b.take(i)), test::arm_once(c, 10, 0);
        }
      },
      [&](Context& c, std::uint64_t) {
        if (held.empty()) return;
        c.emit(std::move(held[0]), 0);
        c.drop(std::move(held[1]), stats->counter("drop_test", ""));
        held.clear();
      }));
  PipelineBox box(std::move(stages));
  stats = &box.stats;
  EventLog log(box.stats);
  auto send = [&](std::initializer_list<unsigned> numbers) {
    std::vector<Packet> packets;
    for (unsigned number : numbers) packets.push_back(box.packet(number));
    const Arrivals arrivals{0, packets};
    box.pipeline.step(0, {&arrivals, 1});
  };
  send({2, 3});
  box.pipeline.set_trace(&log);
  send({0, 1});
  EXPECT_EQ(log.lines, std::vector<std::string>{}) << "nobody asked";
  log.every_drop = true;
  send({0, 1});
  EXPECT_EQ(log.lines, std::vector<std::string>{"a drop drop_test #6"});
  log.every_port = true;
  box.tick(10);
  const std::vector<std::string> expected = {"a drop drop_test #6", "a drop drop_test #2", " leave1 #1"};
  EXPECT_EQ(log.lines, expected);
  EXPECT_EQ(box.pool.in_use(), 0u);
}

// A kernel may let go of what it has made before it ever goes on: in its call, or from a timer.
TEST(PipelineTrace, WhatAKernelMadeAndDropped) {
  CounterSet* stats = nullptr;
  const auto make_and_drop = [&](Context& c, std::uint8_t number) {
    PacketPtr made = c.allocate(1);
    made->data()[0] = number;
    c.drop(std::move(made), stats->counter("drop_made", ""));
  };
  std::vector<Stage> stages;
  stages.push_back(stage(
      "a", {out(0)},
      [&](Context& c, Port, Batch&) {
        make_and_drop(c, 105);
        make_and_drop(c, 6);
        test::arm_once(c, 10, 0);
      },
      [&](Context& c, std::uint64_t) { make_and_drop(c, 107); }));
  PipelineBox box(std::move(stages));
  stats = &box.stats;
  EventLog log(box.stats);
  box.pipeline.set_trace(&log);
  box.send(0, {0});
  box.tick(10);
  EXPECT_EQ(log.lines, (std::vector<std::string>{"a drop drop_made #2", "a drop drop_made #4"}))
      << "a trace that follows such packets; each has a number of its own";
  log.every_drop = true;
  log.lines.clear();
  box.send(20, {0});
  box.tick(30);
  EXPECT_EQ(log.lines, (std::vector<std::string>{"a drop drop_made #6", "a drop drop_made #7", "a drop drop_made #8"}));
  EXPECT_EQ(log.bytes, (std::vector<unsigned>{105, 107, 105, 6, 107}));
  EXPECT_TRUE(box.conserved());
  EXPECT_EQ(box.pool.in_use(), 0u);
}

// What a kernel did to a packet is told in its place; nothing is recorded of a packet that no trace follows.
TEST(PipelineTrace, NotesOfTheKernel) {
  std::vector<Stage> stages;
  stages.push_back(stage("a", {out(0)}, [](Context& c, Port, Batch& b) {
    for (unsigned i = 0; i < b.size(); i++) {
      if (b[i].data()[0] == 101) b[i].data()[0] = 102;
      c.note(b[i], "changed");
    }
  }));
  PipelineBox box(std::move(stages));
  box.send(0, {101});  // without a trace
  EventLog recorder(box.stats);
  box.pipeline.set_trace(&recorder);
  std::vector<Packet> packets = {box.packet(101), box.packet(7)};
  packets[0].meta().traced = true;
  const Arrivals arrivals{0, packets};
  box.pipeline.step(1, {&arrivals, 1});
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{"a note changed #2", "a pass #2", " leave0 #2"}));
  EXPECT_EQ(recorder.bytes, (std::vector<unsigned>{102, 102, 102}));
  EXPECT_EQ(box.pool.in_use(), 0u);
}

// A kernel may take a packet and let go of it in the same call: its bytes are still there for the trace.
TEST(PipelineTrace, APacketTakenAndDroppedAtOnce) {
  std::vector<Stage> stages;
  CounterSet* stats = nullptr;
  stages.push_back(
      stage("a", {out(0)}, [&](Context& c, Port, Batch& b) { c.drop(b.take(0), stats->counter("drop_test", "")); }));
  PipelineBox box(std::move(stages));
  stats = &box.stats;
  EventLog recorder(box.stats);
  box.pipeline.set_trace(&recorder);
  Packet packet = box.packet(103);
  packet.meta().traced = true;
  const Arrivals arrivals{0, {&packet, 1}};
  box.pipeline.step(1, {&arrivals, 1});
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{"a drop drop_test #1", "a hold #1"}));
  EXPECT_EQ(recorder.bytes, (std::vector<unsigned>{103, 103}));
  EXPECT_TRUE(box.conserved());
  EXPECT_EQ(box.pool.in_use(), 0u);
}

TEST(PipelineRandom, AStreamDependsOnItsSeedAlone) {
  auto draws = [](unsigned stages_before, std::uint64_t seed, unsigned others_draw) {
    std::vector<std::uint64_t> numbers;
    std::vector<Stage> stages;
    for (unsigned i = 0; i < stages_before; i++) {
      stages.push_back(stage("other", {{static_cast<int>(i + 1), 0}}, [=](Context& c, Port, Batch&) {
        for (unsigned n = 0; n < others_draw; n++) (void)c.random();
      }));
      stages.back().seed = 99 + i;
    }
    stages.push_back(stage(
        "k", {out(0)},
        [&](Context& c, Port, Batch& b) {
          for (unsigned i = 0; i < b.size(); i++) numbers.push_back(c.random());
          test::arm_once(c, c.now() + 1, 0);
        },
        [&](Context& c, std::uint64_t) { numbers.push_back(c.random()); }));
    stages.back().seed = seed;
    PipelineBox box(std::move(stages));
    box.send(0, {1, 2, 3});
    box.tick(1);
    box.send(2, {4});
    return numbers;
  };
  const auto expected = draws(0, 5, 0);
  EXPECT_EQ(expected.size(), 5u);
  EXPECT_EQ(draws(0, 5, 0), expected);
  EXPECT_EQ(draws(3, 5, 17), expected);
  EXPECT_NE(draws(0, 6, 0), expected);
}

TEST(PipelineRandom, SeedsDifferByRunDeviceAndKernel) {
  const std::uint64_t seed = stream_seed(1, "tap", "link");
  EXPECT_EQ(stream_seed(1, "tap", "link"), seed);
  EXPECT_NE(stream_seed(2, "tap", "link"), seed);
  EXPECT_NE(stream_seed(1, "tap2", "link"), seed);
  EXPECT_NE(stream_seed(1, "tap", "link2"), seed);
  EXPECT_NE(stream_seed(1, "ta", "plink"), seed) << "names do not run into each other";
  EXPECT_NE(stream_seed(1, "link", "tap"), seed);
}

class PipelineDeath : public testing::Test {
 protected:
};

TEST_F(PipelineDeath, BrokenInvariantsEndTheProcessWithWords) {
  auto run = [](test::ScriptKernel::Process process, test::ScriptKernel::OnTimer timer = {}) {
    std::vector<Stage> stages;
    stages.push_back(stage("culprit", {out(0)}, std::move(process), std::move(timer)));
    PipelineBox box(std::move(stages));
    box.send(10, {1});
    box.tick(9);
  };
  EXPECT_DEATH(run({}), "time went back");
  EXPECT_DEATH(run([](Context&, Port, Batch& b) { b.send(0, 7); }), "does not have.*culprit, 7");
  EXPECT_DEATH(run([](Context& c, Port, Batch& b) { c.emit(c.copy(b[0]), 9); }), "does not have.*culprit, 9");
  EXPECT_DEATH(run([](Context& c, Port, Batch& b) { c.emit(c.copy(b[0]), 0, 1); }), "does not have.*culprit, 1");
  EXPECT_DEATH(run([](Context& c, Port, Batch&) { test::arm_once(c, 0, 0); },
                   [](Context& c, std::uint64_t) { test::arm_once(c, c.now(), 0); }),
               "without end.*culprit");
}

}  // namespace
}  // namespace rocebox
