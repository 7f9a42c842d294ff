// SPDX-License-Identifier: BSD-3-Clause
// Transmit workers on the DPA: what they post is what the host posts by itself.
#include <endian.h>

#include <map>

#include "tests/unit/sdr/backend_kit.h"

namespace rocebox::sdr {
namespace {

// By queue pair, the Writes of packets from their transport header to before their ICRC, in order.
using Wire = std::map<std::uint32_t, std::vector<std::string>>;

struct Posted {
  Wire wire;
  Backend::Sent sent;
};

// Messages of random sizes in pieces that overlap, with and without immediates, over a wire that loses nothing.
Posted post(std::uint32_t senders, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  QueuePairOptions o;
  o.mtu = 256u << random() % 3;
  o.packets_a_chunk = 4;
  o.slots = 4;
  o.message_bytes = 128 << 10;
  o.channels = 1 + random() % 4;
  o.send_batch = 1 + random() % 16;
  o.layout = random() % 2 ? ImmediateLayout{10, 18, 4} : ImmediateLayout{6, 10, 16};
  SdrBox box(o, "delay: 1us", "rate: 100Gbps\nqueue_pairs: 2048\ndpa: {heap: 64MiB}", senders);
  Posted run;
  box.fabric.tap({0, 0}, [&](FabricPort, std::span<const Packet> packets, Nanos) {
    for (const Packet& packet : packets) {
      constexpr std::size_t kBth = 14 + 20 + 8, kIcrc = 4;
      const std::string bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
      if (bytes.size() < kBth + 12 + kIcrc ||
          bytes[kBth] != static_cast<char>(IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE))
        continue;
      std::uint32_t qpn;
      std::memcpy(&qpn, &bytes[kBth + 4], 4);
      run.wire[be32toh(qpn)].push_back(bytes.substr(kBth, bytes.size() - kBth - kIcrc));
    }
  });
  for (unsigned message = 0; message < 20; message++) {
    const auto length = static_cast<std::uint32_t>(1 + random() % o.message_bytes);
    const std::size_t from = random() % 100000;
    const std::uint32_t user = static_cast<std::uint32_t>(random());
    const bool has_user = random() % 2;
    Receive* receive = box.receive(0, length);
    std::fill_n(&box.memory[1][0], o.message_bytes, 0xFF);
    Send* send = box.start(has_user ? &user : nullptr);
    const std::uint32_t chunk = 4 * o.mtu;
    for (std::uint32_t at = 0; at < length;) {
      const std::uint32_t bytes =
          std::min<std::uint32_t>(length - at, chunk * static_cast<std::uint32_t>(1 + random() % 8));
      box.add(*send, from + at, bytes, at / chunk);
      if (random() % 4 == 0) box.add(*send, from + at, bytes, at / chunk);  // once more
      at += bytes;
    }
    box.end(*send);
    box.run(kSecond);
    EXPECT_TRUE(send->completed());
    EXPECT_FALSE(send->failed);
    EXPECT_TRUE(box.same(from, 0, length)) << message;
    EXPECT_TRUE(box.untouched(length, o.message_bytes - length));
    EXPECT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
    std::uint32_t value = 0;
    if (has_user) {
      EXPECT_EQ(box.qps[1]->user_immediate(*receive, value), Status::kSuccess);
      EXPECT_EQ(value, user);
    }
    box.complete(*receive);
    box.qps[0]->release(*send);
  }
  run.sent = box.backends[0]->sent();
  return run;
}

TEST(SdrSenders, PostWhatTheHostPosts) {
  for (std::uint64_t seed = 1; seed <= 6; seed++) {
    const Posted by_host = post(0, seed);
    EXPECT_EQ(by_host.sent.packets, 0u);
    for (const std::uint32_t senders : {1u, 3u}) {
      const Posted by_workers = post(senders, seed);
      std::size_t packets = 0;
      for (const auto& [qpn, writes] : by_workers.wire) packets += writes.size();
      EXPECT_EQ(by_workers.sent.packets, packets);
      EXPECT_GT(by_workers.sent.activations, 0u);
      ASSERT_EQ(by_workers.wire, by_host.wire) << seed << " " << senders;
    }
  }
}

// Two queue pairs a side, of which one transmit worker posts each packet as a batch of its own: many more than its ring
// has room for.
struct TwoPairs {
  explicit TwoPairs(const std::string& timing)
      : box(one_by_one(), "delay: 1us", "rate: 100Gbps\nqueue_pairs: 2048\ndpa: {heap: 128MiB" + timing + "}", 1) {
    for (unsigned side = 0; side < 2; side++) {
      first[side] = box.qps[side];
      box.make(side, one_by_one());
      second[side] = box.qps[side];
    }
    box.connect_both();
  }
  static QueuePairOptions one_by_one() {
    QueuePairOptions o;
    o.mtu = 256;
    o.packets_a_chunk = 1;
    o.slots = 32;
    o.message_bytes = kBytes;
    o.channels = 16;
    o.generations = 2;
    o.send_batch = 1;
    return o;
  }
  void receive(unsigned messages) {
    box.on(1, [&](nic_model::Host& host) {
      for (unsigned i = 0; i < messages; i++)
        for (QueuePair* const pair : {first[1], second[1]}) {
          Receive* made = nullptr;
          ASSERT_EQ(pair->post_receive(host, box.at(1, i * kBytes), kBytes, box.keys[1], made), Status::kSuccess);
        }
    });
    box.run(kMillisecond);
  }
  // A whole message, from there; not ended.
  Send* send(nic_model::Host& host, QueuePair& pair, std::size_t from) {
    Send* made = nullptr;
    EXPECT_EQ(pair.start_send(nullptr, made), Status::kSuccess);
    EXPECT_EQ(pair.add(host, *made, box.at(0, from), kBytes, box.keys[0], 0), Status::kSuccess);
    return made;
  }

  static constexpr std::uint32_t kBytes = 64 << 10;
  SdrBox box;
  QueuePair *first[2], *second[2];  // by side
};

// More batches than a worker's ring has room for, of two queue pairs: who finds none goes on when there is some again.
TEST(SdrSenders, AFullRingHoldsNobodyUp) {
  TwoPairs pairs("");
  SdrBox& box = pairs.box;
  pairs.receive(32);
  std::vector<Send*> sends;
  box.on(0, [&](nic_model::Host& host) {
    for (unsigned i = 0; i < 32; i++)
      for (QueuePair* const pair : {pairs.first[0], pairs.second[0]}) {
        sends.push_back(pairs.send(host, *pair, i * 65536));
        pair->end_send(host, *sends.back());
      }
  });
  box.run(kSecond);
  ASSERT_EQ(sends.size(), 64u);
  for (const Send* send : sends) EXPECT_TRUE(send->completed() && !send->failed);
  EXPECT_EQ(box.backends[0]->sent().packets, 2u * 32 * 256);
  EXPECT_TRUE(box.same(0, 0, 32 * 65536));
}

// No completion comes of orders that were taken back, and whoever waits for their places goes on all the same.
TEST(SdrSenders, WhoWaitsForPlacesOfOrdersThatWereTakenBackGoesOn) {
  TwoPairs pairs(", timing: {cycles_per_cqe: 2000, clock_mhz: 1000}");
  SdrBox& box = pairs.box;
  pairs.receive(8);
  Send* last = nullptr;
  box.on(0, [&](nic_model::Host& host) {
    for (unsigned i = 0; i < 4; i++) pairs.send(host, *pairs.first[0], 0);  // 1024 packets: all places
    last = pairs.send(host, *pairs.second[0], 1000);
    pairs.second[0]->end_send(host, *last);
    box.backends[0]->destroy(host, *pairs.first[0]);
  });
  box.run(100 * kMillisecond);
  EXPECT_TRUE(last->completed() && !last->failed);
  EXPECT_EQ(box.backends[0]->sent().packets, 256u);
  EXPECT_TRUE(box.same(1000, 0, 65536));
}

// What a destroyed queue pair had ordered is not posted for the one that is made of it.
TEST(SdrSenders, OrdersOfADestroyedQueuePairAreTakenBack) {
  const QueuePairOptions o = small_queue_pair();
  for (const char* timing : {"", ", timing: {cycles_per_cqe: 2000, clock_mhz: 1000}"}) {
    SdrBox box(o, "delay: 1us", std::string("rate: 100Gbps\nqueue_pairs: 2048\ndpa: {heap: 64MiB") + timing + "}", 2);
    for (unsigned round = 0; round < 30; round++) {
      box.receive(0, 60000);
      box.run(100 * kMicrosecond);
      Send* unfinished = box.start();
      box.add(*unfinished, 0, 60000);
      box.run(round * 200);
      for (unsigned side = 0; side < 2; side++)
        box.on(side, [&](nic_model::Host& host) { box.backends[side]->destroy(host, *box.qps[side]); });
      if (round % 2) box.run(kMillisecond);
      for (unsigned side = 0; side < 2; side++) box.make(side, o);
      box.connect_both();
      box.run(kMillisecond);
      std::fill_n(&box.memory[1][0], 65536, 0xFF);
      Receive* receive = box.receive(0, 60000);
      Send* send = box.send(1000, 60000);
      box.run(kMillisecond);
      ASSERT_TRUE(send->completed());
      ASSERT_TRUE(box.same(1000, 0, 60000)) << round;
      ASSERT_EQ(std::count(receive->bitmap, receive->bitmap + receive->chunks, 1), receive->chunks);
      ASSERT_EQ(box.arrivals(SDR_PACKET) + box.arrivals(SDR_CHUNK) + box.arrivals(SDR_MESSAGE), 59u);
      box.complete(*receive);
      box.qps[0]->release(*send);
    }
  }
}

}  // namespace
}  // namespace rocebox::sdr
