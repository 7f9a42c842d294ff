// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/software_rss.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "runtime/limits.h"
#include "tests/unit/harness.h"

namespace rocebox::software_rss_test {
namespace {

constexpr PoolSizes kQueueSizes{.small = 4096, .large = 64, .giant = 8};

PacketPtr frame(Pool& pool, const roce::PacketSpec& spec) {
  PacketPtr packet = pool.allocate(roce::built_bytes(spec));
  roce::build(*packet, spec);
  return packet;
}

TEST(ShardOf, BothDirectionsMeetWhateverThePorts) {
  Pool pool(kQueueSizes);
  std::mt19937 random(1);
  for (int round = 0; round < 500; round++) {
    roce::PacketSpec data;
    data.underlay.ip_version = round % 2 ? 4 : 6;
    for (auto* address : {&data.underlay.addresses.source, &data.underlay.addresses.destination}) {
      *address = roce::ipv4(0, 0, 0, 0);
      for (std::size_t i = data.underlay.ip_version == 4 ? 12 : 0; i < 16; i++)
        (*address)[i] = static_cast<std::uint8_t>(random());
    }
    roce::PacketSpec ack = data;
    std::swap(ack.underlay.addresses.source, ack.underlay.addresses.destination);
    ack.underlay.udp_source_port = static_cast<std::uint16_t>(random());
    ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
    for (unsigned shards : {2u, 3u, 7u, 32u}) {
      const unsigned shard = shard_of(*frame(pool, data), shards);
      EXPECT_LT(shard, shards);
      EXPECT_EQ(shard, shard_of(*frame(pool, ack), shards));
    }
  }
}

TEST(ShardOf, NeighboursPart) {
  Pool pool(kQueueSizes);
  std::set<unsigned> shards;
  for (std::uint8_t host = 1; host < 65; host++) {
    roce::PacketSpec spec;
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, host), roce::ipv4(10, 0, 1, 1)};
    shards.insert(shard_of(*frame(pool, spec), 8));
  }
  EXPECT_EQ(shards.size(), 8u);
}

TEST(ShardOf, ATagChangesNothingAndWhatIsNotIpIsTheFirst) {
  Pool pool(kQueueSizes);
  roce::PacketSpec spec;
  const unsigned shard = shard_of(*frame(pool, spec), 31);
  const std::vector<std::uint8_t> plain = test::frame(spec);
  std::vector<std::uint8_t> tagged(plain);
  for (int tag = 0; tag < 2; tag++) tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  auto shard_of_bytes = [&](std::span<const std::uint8_t> bytes) {
    PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), packet->data());
    return shard_of(*packet, 31);
  };
  EXPECT_EQ(shard_of_bytes(tagged), shard);
  for (std::size_t size = 1; size < 14 + 20; size++) EXPECT_EQ(shard_of_bytes(std::span(plain).first(size)), 0u);
  std::vector<std::uint8_t> old_qinq(plain);
  old_qinq.insert(old_qinq.begin() + 12, {0x91, 0x00, 0x00, 0x05});
  EXPECT_EQ(shard_of_bytes(old_qinq), shard);
  std::vector<std::uint8_t> arp(plain);
  arp[12] = 0x08, arp[13] = 0x06;
  EXPECT_EQ(shard_of_bytes(arp), 0u);
}

TEST(SoftwareRss, HandsOverInOrderAndCountsWhatDoesNotFit) {
  Pool pool(kQueueSizes);
  {
    SoftwareRss rss(2, 2);
    constexpr unsigned kTooMany = kHandoverPackets + 10;
    std::vector<rte_mbuf*> sent;
    for (unsigned i = 0; i < kTooMany; i++) {
      Packet packet = pool.allocate(64).release();
      sent.push_back(packet.mbuf());
      rss.put(SoftwareRss::Direction::kIn, 1, 0, {&packet, 1});
    }
    const std::uint64_t room = kTooMany - rss.full();
    EXPECT_LT(room, kTooMany);
    EXPECT_EQ(pool.in_use(), room) << "what did not fit is back in the pool";
    std::array<Packet, 64> got;
    EXPECT_EQ(rss.take(SoftwareRss::Direction::kIn, 1, 1, got), 0u);
    EXPECT_EQ(rss.take(SoftwareRss::Direction::kIn, 0, 0, got), 0u);
    EXPECT_EQ(rss.take(SoftwareRss::Direction::kOut, 1, 0, got), 0u);
    EXPECT_FALSE(rss.has_room(SoftwareRss::Direction::kIn, 1, 0));
    EXPECT_TRUE(rss.has_room(SoftwareRss::Direction::kIn, 1, 1));
    EXPECT_FALSE(rss.empty(SoftwareRss::Direction::kIn, 0)) << "port 1, which shard 1 owns, has something for shard 0";
    EXPECT_TRUE(rss.empty(SoftwareRss::Direction::kIn, 1) && rss.empty(SoftwareRss::Direction::kOut, 0));
    ASSERT_EQ(rss.take(SoftwareRss::Direction::kIn, 1, 0, got), 64u);
    for (unsigned i = 0; i < 64; i++) {
      EXPECT_EQ(got[i].mbuf(), sent[i]);
      rte_pktmbuf_free(got[i].mbuf());
    }
  }
  EXPECT_EQ(pool.in_use(), 0u) << "the rss lets go of what it still holds";
}

bool readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

void hand_over(SoftwareRss& rss, Pool& pool, SoftwareRss::Direction direction, std::size_t port, unsigned shard) {
  Packet packet = pool.allocate(64).release();
  rss.put(direction, port, shard, {&packet, 1});
}

TEST(SoftwareRss, WakesTheReaderThatSleepsAndNoOther) {
  Pool pool(kQueueSizes);
  SoftwareRss rss(3, 3, SoftwareRss::Readers::kSleep);
  for (unsigned shard = 0; shard < 3; shard++) ASSERT_GE(rss.wake_descriptor(shard), 0);
  const auto woken = [&] {
    std::vector<unsigned> all;
    for (unsigned shard = 0; shard < 3; shard++)
      if (readable(rss.wake_descriptor(shard))) all.push_back(shard);
    return all;
  };
  using Woken = std::vector<unsigned>;

  hand_over(rss, pool, SoftwareRss::Direction::kIn, 0, 1);
  rss.wake_readers(0);
  EXPECT_EQ(woken(), Woken{}) << "nobody sleeps, and nothing is written";

  for (unsigned shard : {1u, 2u}) rss.sleep_on(shard, true);
  rss.wake_readers(0);
  EXPECT_EQ(woken(), Woken{}) << "what was there before is seen by the look behind sleep_on()";
  EXPECT_FALSE(rss.empty(SoftwareRss::Direction::kIn, 1));

  hand_over(rss, pool, SoftwareRss::Direction::kIn, 0, 2);
  EXPECT_EQ(woken(), Woken{}) << "once in a loop, not for each packet";
  rss.wake_readers(1);
  EXPECT_EQ(woken(), Woken{}) << "by who has handed it over";
  rss.wake_readers(0);
  EXPECT_EQ(woken(), Woken{2});

  hand_over(rss, pool, SoftwareRss::Direction::kIn, 0, 2);
  rss.wake_readers(0);
  eventfd_t written = 0;
  ASSERT_EQ(eventfd_read(rss.wake_descriptor(2), &written), 0);
  EXPECT_EQ(written, 1u) << "one write a sleep";

  hand_over(rss, pool, SoftwareRss::Direction::kOut, 1, 0);  // shard 1 owns port 1
  rss.wake_readers(0);
  EXPECT_EQ(woken(), Woken{1});
  rss.sleep_on(1, false);
  EXPECT_EQ(woken(), Woken{}) << "it is awake, and what has woken it is taken back";
  hand_over(rss, pool, SoftwareRss::Direction::kOut, 1, 0);
  rss.wake_readers(0);
  EXPECT_EQ(woken(), Woken{});
}

TEST(SoftwareRss, OfReadersThatNeverSleepNothingIsAsked) {
  Pool pool(kQueueSizes);
  SoftwareRss rss(2, 2);
  hand_over(rss, pool, SoftwareRss::Direction::kIn, 0, 1);
  rss.wake_readers(0);
  EXPECT_EQ(rss.wake_descriptor(1), -1) << "so that a core that could not be woken pauses";
}

// A core looks once more behind sleep_on(): whatever the order in which two threads run, it sees the packet or is
// woken.
TEST(SoftwareRss, NoPacketIsSleptOver) {
  Pool pool(kQueueSizes);
  SoftwareRss rss(2, 1, SoftwareRss::Readers::kSleep);
  constexpr unsigned kPackets = 2000;
  Packet packets[] = {pool.allocate(64).release(), pool.allocate(64).release()};  // one is on its way, one was taken
  std::atomic<unsigned> taken{0};
  std::thread reader([&] {
    std::array<Packet, 64> got;
    while (taken.load() < kPackets) {
      rss.sleep_on(1, true);
      const unsigned count = rss.take(SoftwareRss::Direction::kIn, 0, 1, got);
      if (count == 0) {
        pollfd one{rss.wake_descriptor(1), POLLIN, 0};
        ASSERT_EQ(poll(&one, 1, 60'000), 1) << "a packet came and nobody woke the reader";
      }
      rss.sleep_on(1, false);
      taken += count;
    }
  });
  for (unsigned sent = 0; sent < kPackets; sent++) {
    while (sent - taken.load() >= 2) std::this_thread::yield();  // so that the reader comes to sleep
    rss.put(SoftwareRss::Direction::kIn, 0, 1, {&packets[sent % 2], 1});
    rss.wake_readers(0);
  }
  reader.join();
  EXPECT_EQ(taken, kPackets);
  for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
}

TEST(SoftwareRss, IsClosedWhenEveryShardHasSaidSo) {
  SoftwareRss rss(2, 1);
  rss.close(SoftwareRss::Direction::kIn);
  EXPECT_FALSE(rss.closed(SoftwareRss::Direction::kIn));
  rss.close(SoftwareRss::Direction::kIn);
  EXPECT_TRUE(rss.closed(SoftwareRss::Direction::kIn));
  EXPECT_FALSE(rss.closed(SoftwareRss::Direction::kOut));
}

}  // namespace
}  // namespace rocebox::software_rss_test
