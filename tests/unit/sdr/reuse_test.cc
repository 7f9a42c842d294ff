// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of SDR that are made of ones that were destroyed.
#include <algorithm>
#include <span>

#include "tests/unit/sdr/backend_kit.h"

namespace rocebox::sdr {
namespace {

TEST(SdrReuse, AQueuePairIsMadeOfOneThatWasDestroyed) {
  SdrBox box(small_queue_pair());
  for (unsigned round = 0; round < 40; round++) {
    Receive* receive = box.receive(0, 30000);
    Send* unfinished = box.start();
    box.add(*unfinished, 0, 4096);
    box.run(2 * kMicrosecond);
    EXPECT_TRUE(receive->posted);
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](nic_model::Host& host) { box.backends[side]->destroy(host, *box.qps[side]); });
    box.run(kMillisecond);
    for (unsigned side = 0; side < 2; side++) box.make(side, small_queue_pair());
    box.connect_both();
    std::fill_n(&box.memory[1][0], 65536, 0xFF);
    receive = box.receive(0, 30000);
    box.send(0, 30000);
    box.run(kMillisecond);
    ASSERT_TRUE(box.same(0, 0, 30000)) << round;
    ASSERT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
  }
}

struct Listener final : QueuePairListener {
  void on_datagram(nic_model::Host&, std::span<const std::uint8_t> bytes) override { heard.emplace_back(bytes[0]); }
  std::vector<std::uint8_t> heard;
};

// All that an earlier connection of the same queue pairs sent comes again, to both ends: packets of messages,
// clear-to-send, datagrams.
class SdrReuseOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Transports, SdrReuseOver, testing::Bool(),
                         [](const auto& one) { return one.param ? "Uc" : "Rc"; });

TEST_P(SdrReuseOver, LatePacketsOfAnEarlierConnectionTouchNothing) {
  QueuePairOptions options = small_queue_pair();
  options.unreliable = GetParam();
  SdrBox box(options);
  std::vector<std::vector<std::uint8_t>> wire[2];
  bool records = true;
  for (std::uint32_t side = 0; side < 2; side++)
    box.fabric.tap({side, 0}, [&, side](FabricPort, std::span<const Packet> packets, Nanos) {
      for (const Packet& packet : packets)
        if (records) wire[1 - side].emplace_back(packet.data(), packet.data() + packet.size());
    });
  const auto replay = [&] {
    for (std::uint32_t side = 0; side < 2; side++)
      for (const auto& bytes : wire[side]) {
        PacketPtr packet = box.pool.allocate(static_cast<std::uint32_t>(bytes.size()));
        std::ranges::copy(bytes, packet->data());
        box.fabric.inject({side, 0}, packet.release());
        box.fabric.run(box.now);
      }
    box.run(kMillisecond);
  };
  Listener listeners[2];
  const auto say = [&](std::uint8_t what) {
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](nic_model::Host& host) {
        box.qps[side]->set_listener(&listeners[side]);
        EXPECT_TRUE(box.qps[side]->send_datagram(host, std::span(&what, 1)));
      });
    box.run(kMillisecond);
  };
  for (unsigned i = 0; i < 4; i++) box.receive(i * 65536, 30000), box.send(i * 65536, 30000);
  say(1);
  box.run(kMillisecond);
  ASSERT_TRUE(box.same(0, 0, 30000));
  records = false;
  const QueuePairInfo earlier[2] = {box.qps[0]->info(), box.qps[1]->info()};
  for (unsigned side = 0; side < 2; side++)
    box.on(side, [&](nic_model::Host& host) { box.backends[side]->destroy(host, *box.qps[side]); });
  box.run(kMillisecond);
  for (unsigned side = 0; side < 2; side++) box.make(side, options);
  box.connect_both();
  std::fill_n(&box.memory[1][0], 4 * 65536, 0xFF);
  for (unsigned side = 0; side < 2; side++) {
    const QueuePairInfo info = box.qps[side]->info();
    ASSERT_EQ(info.qpns, earlier[side].qpns) << "not reused";
    EXPECT_NE(info.psn, earlier[side].psn);
    EXPECT_NE(info.root_keys, earlier[side].root_keys) << "UC has these alone";
    box.on(side, [&](nic_model::Host&) { box.qps[side]->set_listener(&listeners[side]); });
    listeners[side].heard.clear();
  }
  replay();
  EXPECT_EQ(box.qps[0]->clear_to_send(), 0u) << "by an earlier clear-to-send";
  std::vector<Receive*> receives;
  for (unsigned i = 0; i < 4; i++) receives.push_back(box.receive(i * 65536, 30000));
  replay();
  for (const Receive* one : receives) EXPECT_EQ(std::count(one->bitmap, one->bitmap + one->chunks, 1), 0);
  EXPECT_TRUE(box.untouched(0, 4 * 65536));
  for (const Listener& one : listeners) EXPECT_TRUE(one.heard.empty());
  for (unsigned i = 0; i < 4; i++) box.send(i * 65536 + 100, 30000);
  say(2);
  for (unsigned i = 0; i < 4; i++) {
    EXPECT_TRUE(box.same(i * 65536 + 100, i * 65536, 30000)) << i;
    EXPECT_EQ(std::count(receives[i]->bitmap, receives[i]->bitmap + receives[i]->chunks, 1), receives[i]->chunks);
  }
  for (const Listener& one : listeners) EXPECT_EQ(one.heard, std::vector<std::uint8_t>{2});
  EXPECT_FALSE(box.qps[0]->broken() || box.qps[1]->broken());
}

// Workers that are slow have completions before them of a message when this returns.
Receive* begin_message(SdrBox& box) {
  Receive* receive = box.receive(0, 30000);
  box.run(kMillisecond);
  box.send(0, 30000);
  box.run(10 * kMicrosecond);
  const std::span chunks(receive->bitmap, receive->chunks);
  EXPECT_FALSE(std::ranges::all_of(chunks, [](std::uint8_t byte) { return byte; })) << "too fast for this test";
  return receive;
}
constexpr const char* kSlow =
    "rate: 100Gbps\nqueue_pairs: 2048\n"
    "dpa: {heap: 64MiB, timing: {clock_mhz: 1, cycles_per_cqe: 20, instructions_per_cqe: 20}}";

TEST(SdrReuse, CompletionsOfOneThatWasDestroyedAreOfNoOther) {
  SdrBox box(small_queue_pair(), "delay: 1us", kSlow);
  begin_message(box);
  QueuePair* const first = box.qps[1];
  box.on(1, [&](nic_model::Host& host) { box.backends[1]->destroy(host, *box.qps[1]); });
  box.make(1, small_queue_pair());
  box.on(1, [&](nic_model::Host& host) { EXPECT_EQ(box.qps[1]->connect(host, box.qps[0]->info()), ""); });
  Receive* const receive = box.receive(0, 30000);
  box.run(kSecond);
  EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 0), receive->chunks) << "nothing was sent";
  for (unsigned what = 0; what < SDR_ARRIVALS; what++) EXPECT_EQ(box.arrivals(what), 0u) << what;
  // Once they have gone by, a queue pair is made of what is there.
  QueuePair* const second = box.qps[1];
  EXPECT_NE(second, first);
  box.on(1, [&](nic_model::Host& host) { box.backends[1]->destroy(host, *second); });
  box.make(1, small_queue_pair());
  EXPECT_TRUE(box.qps[1] == first || box.qps[1] == second);
}

TEST(SdrReuse, WhereThereIsRoomForOneItWaitsForItsWorkers) {
  SdrBox box(small_queue_pair(), "delay: 1us", kSlow, 0, 1);
  begin_message(box);
  QueuePair* const first = box.qps[1];
  box.on(1, [&](nic_model::Host& host) {
    box.backends[1]->destroy(host, *first);
    std::string error;
    EXPECT_EQ(box.backends[1]->create(host, small_queue_pair(), error), nullptr);
    EXPECT_NE(error, "");
    EXPECT_TRUE(box.backends[1]->is_draining(small_queue_pair()));
  });
  box.run(kSecond);
  EXPECT_FALSE(box.backends[1]->is_draining(small_queue_pair()));
  box.make(1, small_queue_pair());
  EXPECT_EQ(box.qps[1], first);
}

}  // namespace
}  // namespace rocebox::sdr
