// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/tap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/engine/pipeline_device.h"
#include "tests/unit/harness.h"

namespace rocebox {
namespace {

using Kept = std::vector<std::uint8_t>;

// Behind a packet of this PSN the kernel makes one of the next but one, and drops it.
constexpr std::uint32_t kMakesPsn = 1000;

// A device with one kernel, which drops each packet whose PSN is odd.
class DropsOdd final : public Kernel {
 public:
  explicit DropsOdd(Stats& stats) : drop_odd_(stats.counter("drop_odd", "")) {}
  void process(Context& context, Port, Batch& batch) override {
    for (unsigned i = 0; i < batch.size(); i++) {
      const auto psn = static_cast<std::uint32_t>(roce::bth(batch[i]).psn);
      if (psn % 2) batch.drop(i, drop_odd_);
      if (psn == kMakesPsn) make_and_drop(context);
    }
  }

 private:
  void make_and_drop(Context& context) {
    roce::PacketSpec spec;
    spec.psn = kMakesPsn + 2;
    const std::vector<std::uint8_t> bytes = test::frame(spec);
    PacketPtr made = context.allocate(static_cast<std::uint32_t>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), made->data());
    context.drop(std::move(made), drop_odd_);
  }
  Counter& drop_odd_;
};

class TapTest : public testing::Test {
 protected:
  explicit TapTest(std::size_t ring_bytes = 1 << 16) : box(ring_bytes), tap(box, 5) {
    KernelPlan plan{"odd", "odd", Shape::kTwoSided, {{Edge::kOutside, 0}, {Edge::kOutside, 1}}, [](Stats& stats) {
                      return std::make_unique<DropsOdd>(stats);
                    }};
    std::vector<KernelPlan> plans;
    plans.push_back(std::move(plan));
    device = std::make_unique<PipelineDevice>("bump", std::vector<std::string>{"a", "z"},
                                              std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, 1);
    device->set_sink([this](Port, std::span<Packet> packets, Nanos) {
      left += packets.size();
      for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
    });
    device->books().for_each_counter([this](const CounterView& view) {
      if (view.kernel == "odd" && view.name == "drop_odd") drop_odd = view.counter;
    });
  }
  ~TapTest() override { EXPECT_EQ(pool.in_use(), 0u); }

  // Packets with these PSNs arrive at port a.
  void send(std::initializer_list<std::uint32_t> psns) {
    device->set_trace(tap.idle() ? nullptr : &tap);
    std::vector<Packet> packets;
    for (std::uint32_t psn : psns) {
      roce::PacketSpec spec;
      spec.psn = psn;
      PacketPtr packet = pool.allocate(roce::built_bytes(spec));
      roce::build(*packet, spec);
      frame.assign(packet->bytes().begin(), packet->bytes().end());
      packets.push_back(packet.release());
    }
    const Arrivals arrivals{0, packets};
    device->step(++now, {&arrivals, 1});
  }

  // "PSN verdict takers" of each record, and its bytes in `kept`.
  std::vector<std::string> taken() {
    static constexpr const char* kNames[] = {"arrive", "pass", "send", "drop", "hold", "emit", "leave", "note"};
    std::vector<std::string> lines;
    kept.clear();
    for (; const std::byte* at = box.ring.front(); box.ring.pop()) {
      const auto* record = reinterpret_cast<const Record*>(at);
      EXPECT_EQ(record->device, 5u);
      EXPECT_LE(record->at, now);
      lines.push_back(std::to_string(record->info.psn) + " " + kNames[static_cast<int>(record->verdict)] + " " +
                      std::to_string(record->takers) + (record->info.made ? " made" : ""));
      identities.insert(record->info.identity);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(record + 1);
      kept.emplace_back(bytes, bytes + record->held_bytes);
    }
    return lines;
  }

  using Lines = std::vector<std::string>;
  Pool pool{test::kPoolSizes};
  RecordBox box;
  Tap tap;
  std::unique_ptr<PipelineDevice> device;
  const Counter* drop_odd = nullptr;
  std::set<std::uint64_t> identities;
  Kept frame;  // the last that was sent
  std::vector<Kept> kept;
  std::size_t left = 0;
  Nanos now = 0;
};

TEST_F(TapTest, WhoWantsWhat) {
  const TraceFilter four("psn=4,5");
  const Selection trace{.follow = true, .filter = &four};
  const Selection leaving{.ports = {0, Selection::kTx}, .snap_bytes = 10'000};
  const Selection arriving{.filter = &four, .ports = {Selection::kRx, Selection::kRx}, .snap_bytes = 20};
  const Selection drops{.drops = {drop_odd}};
  send({4, 5});
  EXPECT_EQ(taken(), Lines{}) << "nobody wants anything";
  tap.set(0, &trace);
  tap.set(3, &leaving);
  send({4, 5, 6});
  EXPECT_EQ(taken(), (Lines{"4 arrive 1", "5 arrive 1", "4 pass 1", "5 drop 1", "4 leave 9", "6 leave 8"}));
  EXPECT_EQ(kept.back(), frame);
  tap.set(0, nullptr);
  tap.set(3, nullptr);
  tap.set(1, &arriving);
  tap.set(7, &drops);
  send({4, 5, 6, 7});
  EXPECT_EQ(taken(), (Lines{"4 arrive 2", "5 arrive 2", "5 drop 128", "7 drop 128"}));
  EXPECT_EQ(kept[0].size(), 20u);
  EXPECT_TRUE(kept[2].empty()) << "no bytes were asked for";
  tap.set(1, nullptr);
  tap.set(7, nullptr);
  EXPECT_TRUE(tap.idle());
  send({1, 2});
  EXPECT_EQ(taken(), Lines{});
}

// What a kernel has made and dropped, as by `rocebox capture --drop all`, has a number, a name and bytes as others
// have.
TEST_F(TapTest, WhatADeviceMadeAndDropped) {
  const TraceFilter its("psn=1002");
  const Selection trace{.follow = true, .filter = &its};
  const Selection drops{.drops = {drop_odd}, .snap_bytes = 10'000};
  const Selection drops_of_it{.filter = &its, .drops = {drop_odd}};
  tap.set(0, &trace);
  tap.set(1, &drops);
  tap.set(2, &drops_of_it);
  send({1, kMakesPsn});
  EXPECT_EQ(taken(), (Lines{"1002 drop 7 made", "1 drop 2"}));
  EXPECT_EQ(identities, (std::set<std::uint64_t>{1, 3})) << "two came, and then one was made";
  roce::PacketSpec spec;
  spec.psn = kMakesPsn + 2;
  EXPECT_EQ(kept[0], test::frame(spec));
}

class TinyTap : public TapTest {
 protected:
  TinyTap() : TapTest(1024) {}
};

// What finds no room is counted for everyone who wanted it, and the packets go their way.
TEST_F(TinyTap, AFullRingLosesRecordsAndCountsThem) {
  const Selection all{.ports = {Selection::kRx, Selection::kRx}, .snap_bytes = 1500};
  const Selection drops{.drops = {drop_odd}, .snap_bytes = 1500};
  tap.set(2, &all);
  tap.set(4, &drops);
  for (std::uint32_t i = 0; i < 100; i++) send({2 * i, 2 * i + 1});
  const std::size_t had_room = taken().size();
  EXPECT_GT(had_room, 0u);
  EXPECT_EQ(box.lost[2].read() + box.lost[4].read() + had_room, 300u);
  EXPECT_GE(box.lost[4].read(), 99u);
  EXPECT_EQ(box.lost[0].read(), 0u);
  EXPECT_EQ(left, 100u);
  EXPECT_EQ(device->books().conservation().held(), 0u);
}

}  // namespace
}  // namespace rocebox
