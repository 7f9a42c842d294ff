// SPDX-License-Identifier: BSD-3-Clause
// SDR's backend on the NIC and its DPA. The oracle of bitmaps is the receiver's memory: the sender's bytes are never
// 0xFF, with which it was filled, so it shows which packets were placed, whatever the workers say.
#include "tests/unit/sdr/backend_kit.h"

namespace rocebox::sdr {
namespace {

TEST(SdrBackend, MessagesLandInOrderAndSetTheirChunks) {
  SdrBox box(small_queue_pair());
  std::vector<Receive*> receives;
  for (unsigned i = 0; i < 4; i++) receives.push_back(box.receive(i * 65536, 10000 + 4096 * i));
  for (unsigned i = 0; i < 4; i++) box.send(200000 + i * 65536, 10000 + 4096 * i);
  box.run();
  for (unsigned i = 0; i < 4; i++) {
    EXPECT_TRUE(box.same(200000 + i * 65536, i * 65536, 10000 + 4096 * i)) << i;
    EXPECT_TRUE(box.untouched(i * 65536 + 10000 + 4096 * i, 1000));
    ASSERT_EQ(receives[i]->chunks, 3 + i);
    for (std::uint32_t chunk = 0; chunk < receives[i]->chunks; chunk++) EXPECT_EQ(receives[i]->bitmap[chunk], 1);
  }
  EXPECT_EQ(box.arrivals(SDR_MESSAGE), 4u);
  EXPECT_EQ(box.arrivals(SDR_PACKET) + box.arrivals(SDR_CHUNK) + box.arrivals(SDR_MESSAGE), 10u + 14 + 18 + 22);
  EXPECT_EQ(box.backends[1]->errors(), 0u);
}

TEST(SdrBackend, TakesTheMemoryThatItSays) {
  for (const std::uint32_t packets : {1u, 64u, 128u}) {
    QueuePairOptions o = small_queue_pair();
    o.mtu = 256, o.packets_a_chunk = packets;
    const MemoryOfQueuePair of = QueuePair::memory_of(o);
    SdrBox box(o);
    EXPECT_EQ(box.qps[1]->device_bytes(), o.slots * of.device_a_message + of.device) << packets;
    EXPECT_EQ(of.device_a_message, 64u + 256 / 8 + (packets > 64 ? 4 * 256 / packets : 0));
    EXPECT_GT(of.host_a_message, 256 / packets);
  }
}

TEST(SdrBackend, ASendWaitsForItsBuffer) {
  SdrBox box(small_queue_pair());
  Send* send = box.send(0, 5000);
  box.run();
  EXPECT_FALSE(send->completed());
  EXPECT_EQ(box.qps[0]->clear_to_send(), 0u);
  Receive* receive = box.receive(0, 5000);
  box.run();
  EXPECT_TRUE(send->completed());
  EXPECT_FALSE(send->failed);
  EXPECT_TRUE(box.same(0, 0, 5000));
  EXPECT_EQ(receive->bitmap[0] + receive->bitmap[1], 2);
}

TEST(SdrBackend, AUserImmediateComesInFragmentsOfAnyMessage) {
  for (const std::uint32_t bytes : {1u, 1024u, 3000u, 8192u, 60000u}) {
    SdrBox box(small_queue_pair());
    Receive* receive = box.receive(0, bytes);
    std::uint32_t value = 0;
    EXPECT_EQ(box.qps[1]->user_immediate(*receive, value), Status::kRetry);
    const std::uint32_t user = 0xDEADBEEF;
    box.send(0, bytes, &user);
    box.run();
    EXPECT_EQ(box.qps[1]->user_immediate(*receive, value), Status::kSuccess) << bytes;
    EXPECT_EQ(value, user);
    EXPECT_EQ(box.arrivals(SDR_FRAGMENT), bytes > 7168 ? 0u : 8 - (bytes + 1023) / 1024);
    EXPECT_TRUE(box.untouched(bytes, 4096));
    EXPECT_EQ(receive->bitmap[receive->chunks - 1], 1);
  }
}

// Half of all Writes are lost; a message of one packet is sent again and again.
TEST(SdrBackend, FragmentsComeOverLossAndRepetition) {
  SdrBox box(small_queue_pair(), "delay: 1us\nloss: 50%");
  Receive* receive = box.receive(0, 1000);
  box.run();
  const std::uint32_t user = 0x01234567;
  Send* send = box.start(&user);
  std::uint32_t value = 0;
  int tries = 0;
  for (; box.qps[1]->user_immediate(*receive, value) == Status::kRetry && tries < 100; tries++) {
    box.add(*send, 0, 1000);
    box.run(kMillisecond);
  }
  EXPECT_EQ(value, user);
  EXPECT_GT(tries, 1);
}

TEST(SdrBackend, OtherSplitsAndMtusWork) {
  struct Case {
    ImmediateLayout layout;
    std::uint32_t mtu, chunk;
  };
  for (const Case& c :
       {Case{{8, 22, 2}, 256, 1}, Case{{4, 12, 16}, 4096, 1}, Case{{10, 22, 0}, 64, 64}, Case{{10, 21, 1}, 64, 256}}) {
    QueuePairOptions o = small_queue_pair();
    o.layout = c.layout, o.mtu = c.mtu, o.packets_a_chunk = c.chunk;
    SdrBox box(o);
    Receive* receive = box.receive(0, 50001);
    box.send(3, 50001);
    box.run();
    EXPECT_TRUE(box.same(3, 0, 50001)) << c.mtu;
    EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
  }
}

TEST(SdrBackend, OverRcNothingIsLost) {
  QueuePairOptions o = small_queue_pair();
  o.unreliable = false;
  o.ack_timeout = 4;
  SdrBox box(o, "delay: 1us\nloss: 5%");
  Receive* receive = box.receive(0, 65536);
  box.send(0, 65536);
  box.run();
  EXPECT_TRUE(box.same(0, 0, 65536));
  EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
}

// What packets were placed, by the memory's own account.
std::vector<bool> placed(const SdrBox& box, std::size_t sent, std::size_t received, std::uint32_t length,
                         std::uint32_t mtu) {
  std::vector<bool> all;
  for (std::uint32_t at = 0; at < length; at += mtu)
    all.push_back(box.same(sent + at, received + at, std::min(mtu, length - at)));
  return all;
}

TEST(SdrBackend, TheBitmapIsWhatWasPlaced) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < 12; round++) {
    QueuePairOptions o = small_queue_pair();
    o.mtu = 256u << random() % 3;
    o.packets_a_chunk = 1u << random() % 8;
    o.channels = 1 + random() % 4;
    o.send_batch = 1 + random() % 16;
    SdrBox box(o, "delay: 2us\nloss: 8%\njitter: 3us\njitter_reorders: true\nduplicate: 4%");
    std::uint64_t lost = 0;
    for (unsigned message = 0; message < 12; message++) {
      const auto length = static_cast<std::uint32_t>(1 + random() % o.message_bytes);
      const std::size_t from = random() % 100000, to = 65536 * (message % 4);
      std::fill_n(&box.memory[1][to], 65536, 0xFF);
      Receive* receive = box.receive(to, length);
      Send* send = box.send(from, length);
      box.run(kSecond);
      const std::vector<bool> here = placed(box, from, to, length, o.mtu);
      for (std::uint32_t chunk = 0; chunk < receive->chunks; chunk++) {
        bool whole = true;
        std::uint64_t bits = 0;
        for (std::uint32_t i = 0; i < o.packets_a_chunk; i++) {
          const std::uint32_t packet = chunk * o.packets_a_chunk + i;
          if (packet >= here.size()) break;
          whole = whole && here[packet];
          if (i < 64) bits |= std::uint64_t{here[packet]} << i;
          lost += !here[packet];
        }
        ASSERT_EQ(receive->bitmap[chunk], whole) << round << " " << message << " " << chunk;
        std::uint64_t told = 0;
        if (o.packets_a_chunk > 64) {
          ASSERT_EQ(box.qps[1]->packets_of_chunk(*receive, chunk, told), Status::kError);
        } else {
          ASSERT_EQ(box.qps[1]->packets_of_chunk(*receive, chunk, told), Status::kSuccess);
          ASSERT_EQ(told, bits) << round << " " << message << " " << chunk;
        }
      }
      EXPECT_TRUE(box.untouched(to + length, 65536 - length));
      box.complete(*receive);
      ASSERT_TRUE(send->completed());
      box.qps[0]->release(*send);
    }
    EXPECT_GT(lost, 0u);
  }
}

// A message is completed early, its ID goes round, and then the rest of it comes.
TEST(SdrBackend, LatePacketsTouchNothing) {
  for (const std::uint32_t generations : {1u, 2u, 4u}) {
    QueuePairOptions o = small_queue_pair();
    o.generations = o.root_keys = generations;
    SdrBox box(o);
    Receive* first = box.receive(0, 32768);
    Send* old = box.start();
    box.add(*old, 0, 8192);
    box.run();
    EXPECT_TRUE(box.same(0, 0, 8192));
    box.complete(*first);
    // For nobody: the NULL key takes the payload, and no bitmap changes.
    box.add(*old, 8192, 4096, 2);
    box.run();
    EXPECT_TRUE(box.untouched(8192, 4096));
    EXPECT_EQ(box.arrivals(SDR_NO_MESSAGE), 4u);
    for (std::uint32_t number = 1; number <= 4 * generations; number++) {
      Receive* receive = box.receive(65536, 32768);
      ASSERT_EQ(receive->number, number);
      std::fill_n(&box.memory[1][65536], 32768, 0xFF);
      Send* send = box.start();
      if (number % 4 == 0) {
        // Its ID is that of the old one, whose packets come now.
        box.run();
        const std::uint64_t late = box.arrivals(SDR_LATE_GENERATION);
        box.add(*old, 500000, 32768);
        box.run();
        const bool protects = number < 4 * generations;  // as many rounds as there are generations
        EXPECT_EQ(box.untouched(65536, 32768), protects) << generations << " " << number;
        EXPECT_EQ(box.arrivals(SDR_LATE_GENERATION) - late, protects ? 32u : 0u);
        EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 0), protects ? receive->chunks : 0);
      }
      box.add(*send, 300000, 32768);
      box.end(*send);
      box.run();
      EXPECT_TRUE(box.same(300000, 65536, 32768));
      EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
      box.complete(*receive);
      box.qps[0]->release(*send);
    }
  }
}

TEST(SdrBackend, MisuseIsRefused) {
  SdrBox box(small_queue_pair());
  const std::uint32_t read_only = box.backends[1]->add_memory(box.memory[1].data(), 4096, false);
  box.on(1, [&](nic_model::Host& host) {
    Receive* made = nullptr;
    QueuePair& qp = *box.qps[1];
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 0, box.keys[1], made), Status::kError);
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 65537, box.keys[1], made), Status::kError);
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 100, box.keys[1] + 1, made), Status::kError);
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 100, read_only, made), Status::kError);
    EXPECT_EQ(qp.post_receive(host, box.at(1, SdrBox::kBytes - 10), 100, box.keys[1], made), Status::kError);
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 8192, box.keys[1], made), Status::kSuccess);
    for (unsigned i = 0; i < 3; i++)
      EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 8192, box.keys[1], made), Status::kSuccess);
    EXPECT_EQ(qp.post_receive(host, box.at(1, 0), 8192, box.keys[1], made), Status::kRetry);
    EXPECT_EQ(qp.complete(host, *made), Status::kSuccess);
    EXPECT_EQ(qp.complete(host, *made), Status::kError);
  });
  Send* send = box.start();
  box.add(*send, 0, 65536, 1, Status::kError);
  box.add(*send, 0, 1024, 1 << 20, Status::kError);
  box.add(*send, SdrBox::kBytes - 10, 100, 0, Status::kError);
  box.run();
  box.add(*send, 0, 8193, 0, Status::kError);  // more than the peer has posted
  EXPECT_FALSE(send->failed);
  QueuePairInfo info = box.qps[1]->info();
  box.on(0, [&](nic_model::Host& host) {
    EXPECT_EQ(box.qps[0]->connect(host, info), "it is connected already");
    std::string error;
    QueuePairOptions other = small_queue_pair();
    other.packets_a_chunk = 8;
    QueuePair* made = box.backends[0]->create(host, other, error);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->connect(host, info), "a chunk's packets is 8 here and 4 at the peer");
    Send* none = nullptr;
    EXPECT_EQ(made->start_send(nullptr, none), Status::kError);
    other.channels = 64;
    EXPECT_EQ(box.backends[0]->create(host, other, error), nullptr);
  });
  std::vector<std::uint8_t> bytes = info.encode();
  EXPECT_EQ(bytes.size(), QueuePairInfo::bytes(small_queue_pair()));
  EXPECT_TRUE(QueuePairInfo::decode(bytes));
  EXPECT_EQ(QueuePairInfo::decode(bytes)->encode(), bytes);
  for (std::size_t n = 0; n < bytes.size(); n++) EXPECT_FALSE(QueuePairInfo::decode(std::span(bytes).first(n)));
  EXPECT_EQ(QueuePairInfo::decode(bytes)->psn, info.psn);
  std::size_t length = 0;
  EXPECT_EQ(QueuePairInfo::mistake_of(bytes.data(), length), "");
  EXPECT_EQ(length, bytes.size());
  for (const auto& [at, value] : {std::pair{28, 0xFF}, {72, 1}, {3, '1'}}) {  // MTU, a PSN of 25 bits, the version
    std::vector<std::uint8_t> other = bytes;
    other[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(value);
    EXPECT_FALSE(QueuePairInfo::decode(other)) << at;
  }
  bytes[3] = '1';
  EXPECT_EQ(QueuePairInfo::mistake_of(bytes.data(), length),
            "the peer's info is of version 1, and this library's of version 2: both ends need the same");
  bytes[0] = 'X';
  EXPECT_EQ(QueuePairInfo::mistake_of(bytes.data(), length), "that is no info of a queue pair");
}

// A peer whose host does not run, as beside other load, must not cost the connection: nobody would tell the other end,
// which would wait for its buffers until the global timeout.
TEST(SdrBackend, ASilentPeerDoesNotCostTheControlConnection) {
  for (const bool cut : {false, true}) {
    QueuePairOptions o = small_queue_pair();
    o.ack_timeout = 8;  // 1 ms
    SdrBox box(o);
    Receive* first = box.receive(0, 10000);
    Send* sent = box.send(0, 10000);
    box.run(kMillisecond);
    box.qps[0]->release(*sent);
    ASSERT_TRUE(box.same(0, 0, 10000));
    box.complete(*first);
    box.link(cut ? "up: false" : "{delay: 1us, reverse: {delay: 1us}, forward: {up: false}}");  // all, or only ACKs
    Receive* second = box.receive(0, 20000);
    for (unsigned i = 1; i < 4; i++) box.receive(i * 65536, 20000);
    box.run(60 * kMillisecond);
    EXPECT_GT(box.count(1, "retries_exceeded"), 2u);
    EXPECT_FALSE(box.qps[1]->broken());
    box.link("delay: 1us");
    for (unsigned i = 0; i < 4; i++) box.send(100000 + i * 65536, 20000);
    box.run(100 * kMillisecond);
    EXPECT_EQ(box.qps[0]->clear_to_send(), 5u);
    for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(box.same(100000 + i * 65536, i * 65536, 20000)) << i;
    EXPECT_FALSE(box.qps[0]->broken() || box.qps[1]->broken());
    // For ever it does not go on.
    box.complete(*second);
    box.link("up: false");
    box.receive(0, 1000);
    box.run(kSecond);
    EXPECT_TRUE(box.qps[1]->broken());
  }
}

// What there was no room for in the end leaves room for what fits: queue pairs of the NIC, and keys.
TEST(SdrBackend, ABuildThatFailsGivesBackWhatItTook) {
  SdrBox box(small_queue_pair(), "delay: 1us",
             "rate: 100Gbps\nqueue_pairs: 40\ndpa: {heap: 64MiB}");  // of which it takes 10
  QueuePairOptions large = small_queue_pair();
  large.generations = 16;
  box.on(0, [&](nic_model::Host& host) {
    const std::size_t keys = host.memory().regions();
    std::string error;
    for (unsigned i = 0; i < 20; i++) {
      EXPECT_EQ(box.backends[0]->create(host, large, error), nullptr);
      EXPECT_NE(error.find("no more queue pairs"), std::string::npos) << error;
    }
    EXPECT_EQ(host.memory().regions(), keys);
    for (unsigned i = 0; i < 3; i++)
      EXPECT_NE(box.backends[0]->create(host, small_queue_pair(), error), nullptr) << error;
  });
}

}  // namespace
}  // namespace rocebox::sdr
