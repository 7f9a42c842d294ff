// SPDX-License-Identifier: BSD-3-Clause
// The short cut of a link that only delays (DelayLine): what becomes of packets is what process() and on_timer() make
// of them.
#include <gtest/gtest.h>

#include <random>

#include "runtime/drives/testbed.h"
#include "runtime/engine/trace_sink.h"
#include "tests/unit/kernels/link_kit.h"
#include "tests/unit/options.h"

namespace rocebox::link_line_test {
namespace {

// Follows nothing, but a device with a trace takes no short cut.
class Onlooker final : public TraceSink {
 public:
  std::uint8_t follows(Packet) override { return 0; }
  void record(const TraceEvent&) override {}
};

// Two bumps and a link between them, whose options change now and then.
class Line {
 public:
  explicit Line(const std::string& options)
      : pool_({.small = 4096, .large = 16, .giant = 2}),
        config_(load("devices: {l: {path: a <-> b}, r: {path: a <-> b}}\nlinks: {k: {between: [l.b, r.a]" + options +
                     "}}\n")),
        testbed_(config_, pool_, 1, [this](FabricPort from, std::span<Packet> packets, Nanos now) {
          for (const Packet packet : packets) {
            log.push_back({now, from.device, packet.data()[0]});
            rte_pktmbuf_free(packet.mbuf());
          }
        }) {}

  Device& link() { return testbed_.device(testbed_.number("k")); }
  Fabric& fabric() { return testbed_.fabric(); }
  void send(Nanos now, bool from_left, std::uint8_t mark, unsigned packets = 1) {
    fabric().advance_to(now);
    while (packets-- > 0) {
      PacketPtr packet = pool_.allocate(60);
      std::memset(packet->data(), mark, 60);
      fabric().inject(testbed_.port({from_left ? "l" : "r", from_left ? "a" : "b"}), packet.release());
    }
    fabric().run(now);
  }
  void change(Nanos now, const std::string& options) {
    fabric().advance_to(now);
    test::options_of(link_component(), options)->change(link().kernel(0))->apply(link().kernel(0), now);
  }
  void drain() {
    while (fabric().next_deadline() != kNever) fabric().run(fabric().next_deadline());
  }
  std::vector<std::uint64_t> counters() {
    std::vector<std::uint64_t> values;
    link().books().for_each_counter([&](const CounterView& view) { values.push_back(view.value); });
    return values;
  }
  std::uint32_t in_use() const { return pool_.in_use(); }

  struct Left {
    Nanos at;
    unsigned device;
    std::uint8_t mark;
    bool operator==(const Left&) const = default;
  };
  std::vector<Left> log;

 private:
  static config::RunConfig load(const std::string& yaml) {
    static Registry registry;
    config::Mistakes mistakes("line.yaml");
    config::RunConfig config = config::load_text(yaml, "line.yaml", registry, mistakes, false);
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
    return config;
  }
  Pool pool_;
  config::RunConfig config_;
  Testbed testbed_;
};

TEST(LinkLine, APacketOnItsWayCostsTheFabricOneWakeUpAndTheLinkNoStep) {
  Line line(", delay: 1us");
  line.send(0, true, 1);
  const std::uint64_t work = line.fabric().work();
  EXPECT_EQ(line.link().next_deadline(), kNever) << "no timer of the link's own";
  EXPECT_EQ(line.fabric().next_deadline(), 1'000);
  EXPECT_EQ(line.fabric().held(), 1u);
  line.drain();
  EXPECT_EQ(line.fabric().work() - work, 1u + 2u) << "the link's end, and a step of the device behind it with a packet";
  EXPECT_EQ(line.log, (std::vector<Line::Left>{{1'000, 1, 1}}));
}

// Each seed with and without the short cut: random times, both ways, equal instants, and options that change.
TEST(LinkLine, IsWhatTheLinkDoesStepByStep) {
  const char* const kOptions[] = {"delay: 1us",
                                  "delay: 1us\nup: false",
                                  "delay: 300ns",
                                  "delay: 5us",
                                  "delay: 1us\nloss: 20%",
                                  "delay: 2us\nrate: 1Gbps",
                                  "delay: 40us",
                                  "delay: 1us\njitter: 3us",
                                  "delay: 1us\nreorder: 30%",
                                  "delay: 1us\nduplicate: 20%",
                                  "delay: 1us\nburst_loss: {enter: 10%, leave: 50%}",
                                  "delay: 2us\nqueue: 4KiB"};
  for (std::uint32_t seed = 1; seed <= 30; seed++) {
    Line lines[] = {Line(", delay: 1us, packets: 64"), Line(", delay: 1us, packets: 64")};
    Onlooker onlooker;
    lines[1].link().set_trace(&onlooker);
    for (Line& line : lines) {
      std::mt19937 random(seed);
      Nanos now = 0;
      for (int i = 0; i < 300; i++) {
        now += random() % 3 ? random() % 1'200 : 0;
        const auto draw = random(), which = random();
        if (draw % 16 == 0)
          line.change(now, std::string(kOptions[which % std::size(kOptions)]) + "\npackets: 64\n");
        else
          line.send(now, draw & 16, static_cast<std::uint8_t>(i));
      }
      line.drain();
      EXPECT_EQ(line.in_use(), 0u);
    }
    EXPECT_EQ(lines[0].log, lines[1].log) << seed;
    EXPECT_EQ(lines[0].counters(), lines[1].counters()) << seed;
    EXPECT_GT(lines[0].log.size(), 100u);
  }
}

// What goes by the short cut until the link is full, and the rest, which the link steps for, in one burst.
TEST(LinkLine, ABurstThatFillsItIsCountedWhole) {
  Line line(", delay: 1us, packets: 64");
  line.send(0, true, 1, 40);
  line.send(10, true, 2, 60);
  const Conservation full = line.link().books().conservation();
  EXPECT_EQ(full.in, 100u);
  EXPECT_EQ(full.dropped, 36u);
  EXPECT_EQ(full.held(), 64u);
  line.drain();
  EXPECT_EQ(line.link().books().conservation().out, 64u);
}

TEST(LinkLine, ATraceThatIsSwitchedOnMeanwhileLeavesNothingBehind) {
  Line line(", delay: 10us");
  Onlooker onlooker;
  line.send(0, true, 1);
  line.link().set_trace(&onlooker);
  line.send(2'000, true, 2);
  line.link().set_trace(nullptr);
  line.send(4'000, true, 3);
  line.drain();
  EXPECT_EQ(line.log, (std::vector<Line::Left>{{10'000, 1, 1}, {12'000, 1, 2}, {14'000, 1, 3}}));
}

}  // namespace
}  // namespace rocebox::link_line_test
