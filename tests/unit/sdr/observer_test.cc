// SPDX-License-Identifier: BSD-3-Clause
// The kernel sdr against a model that keeps what was sent, written from the paper: message IDs go round, each round by
// the next generation of queue pairs, and packets are lost, doubled, late and out of order.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "kernels/sdr/observer/observer.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/harness.h"

namespace rocebox::sdr::observer {
namespace {

const auto kA = roce::ipv4(10, 0, 0, 1), kB = roce::ipv4(10, 0, 0, 2);
constexpr std::uint32_t kFirstQpn = 0x100;

struct Box : test::KernelBox {
  explicit Box(const Config& config = {})
      : KernelBox([&](Stats& s) { return std::make_unique<Observer>(config, s); }), layout(config.layout()) {}
  void write(std::uint32_t qpn, std::uint32_t message, std::uint32_t offset, std::uint32_t size = 64,
             std::uint32_t fragment = 0, std::uint32_t rkey = 7) {
    static const std::array<std::uint8_t, 4096> kBytes{};
    roce::PacketSpec spec;
    spec.opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    spec.destination_qp = qpn, spec.psn = psn++ & 0xFFFFFF, spec.rkey = rkey, spec.dma_length = size;
    spec.underlay.addresses = {kA, kB};
    spec.immediate = layout.pack({message, offset, fragment});
    spec.payload = std::span(kBytes).first(size);
    send(now += 100, 0, spec);
    ASSERT_EQ(out.size(), psn);
  }
  std::uint64_t count(const std::string& name) const {
    for (const CounterSet::Row& row : stats.rows())
      if (row.name == name) return row.read();
    ADD_FAILURE() << name;
    return 0;
  }
  Json report() const {
    Json json;
    JsonReport to(json);
    kernel->report(to);
    return json;
  }

  ImmediateLayout layout;
  std::uint32_t psn = 0;
  Nanos now = 0;
};

TEST(SdrObserver, AMessageWithAGap) {
  Config config;
  config.chunk = 4;
  config.bitmaps = true;
  Box box(config);
  for (std::uint32_t offset : {0u, 1u, 2u, 3u, 5u, 7u, 8u, 8u}) box.write(kFirstQpn, 3, offset);
  box.write(kFirstQpn, 3, 9, 10);  // shorter than 64: the last one
  const Json said = box.report();
  const Json& message = said["messages"][0];
  EXPECT_EQ(message["id_number"], 3);
  EXPECT_EQ(message["packets"], 8);
  EXPECT_EQ(message["expected"], 10);
  EXPECT_EQ(message["end_known"], true);
  EXPECT_EQ(message["state"], "incomplete");
  EXPECT_EQ(message["missing_packets"], "4, 6");
  EXPECT_EQ(message["chunk_bitmap"], "101");
  EXPECT_EQ(message["chunks_complete"], 2);
  EXPECT_EQ(message["duplicates"], 1);
  EXPECT_EQ(message["bytes"], 7 * 64 + 10);
  EXPECT_EQ(said["events"][0]["what"], "duplicate");
  EXPECT_EQ(said["events"][0]["packet_offset"], 8);
  box.write(kFirstQpn, 3, 4);
  box.write(kFirstQpn, 3, 6);
  const Json after = box.report();
  EXPECT_EQ(after["messages"][0]["state"], "complete");
  EXPECT_EQ(after["messages"][0]["complete_after_ns"], 1000);
  EXPECT_EQ(box.count("messages_complete"), 1u);
  EXPECT_EQ(box.count("chunks_complete"), 3u);
}

TEST(SdrObserver, TheUsersImmediateInFragmentsAndEmptyWrites) {
  Box box;
  // A message of three packets, the user's immediate 0x89abcdef in eight fragments of 4 bits.
  const std::uint32_t user = 0x89abcdef;
  for (const std::uint32_t offset : {7u, 0u, 2u, 1u, 4u, 3u, 6u, 5u})
    box.write(kFirstQpn, 0, offset, offset < 3 ? 64 : 0, user >> 4 * offset & 15);
  const Json message = box.report()["messages"][0];
  EXPECT_EQ(message["immediate_known"], true);
  EXPECT_EQ(message["immediate"], user);
  EXPECT_EQ(message["empty"], 5);
  EXPECT_EQ(message["expected"], 3);
  EXPECT_EQ(message["state"], "complete");
  box.write(kFirstQpn, 0, 1, 64, 1);  // forged: what came first counts
  const Json again = box.report();
  EXPECT_EQ(again["messages"][0]["immediate"], user);
  EXPECT_EQ(again["messages"][0]["immediate_conflicts"], 1);
  EXPECT_EQ(again["events"][0]["what"], "immediate_conflict");
  box.write(kFirstQpn, 0, 9, 64);
  EXPECT_EQ(box.count("outside"), 1u);
}

TEST(SdrObserver, LatePacketsAreToldByTheirGeneration) {
  // IDs 0 to 7, of which the next round goes by other queue pairs: that there are no more is learnt.
  Box box;
  for (std::uint32_t id = 0; id < 8; id++) box.write(kFirstQpn, id, 0);
  for (std::uint32_t id = 0; id < 3; id++) box.write(kFirstQpn + 1, id, 0);
  box.write(kFirstQpn, 1, 1);  // of the first round
  const Json said = box.report();
  EXPECT_EQ(said["connections"][0]["message_ids"], 8);
  EXPECT_EQ(said["connections"][0]["message_ids_known"], true);
  EXPECT_EQ(said["connections"][0]["late"], 1);
  EXPECT_EQ(said["events"][0]["what"], "late");
  EXPECT_EQ(said["events"][0]["message_number"], 1);
  EXPECT_EQ(said["qps"][1]["generation"], 1);
  EXPECT_EQ(said["messages"].size(), 11u);
  EXPECT_EQ(box.count("messages"), 11u);
}

TEST(SdrObserver, ManyMessagesInFlightOverManyChannelsAreNoNewRound) {
  Box box;
  // Channel 1 begins when the first packet of the sixteenth message has come.
  for (std::uint32_t offset = 0; offset < 8; offset++)
    for (std::uint32_t id = 0; id < 16; id++) box.write(kFirstQpn + offset % 4, id, offset, offset < 7 ? 64 : 10);
  const Json said = box.report();
  EXPECT_EQ(said["connections"][0]["message_ids_known"], false);
  EXPECT_EQ(said["messages"].size(), 16u);
  EXPECT_EQ(box.count("messages_complete"), 16u);
  EXPECT_EQ(box.count("late"), 0u);
}

TEST(SdrObserver, ConnectionsAreToldApartByRemoteKeyOrOptions) {
  Config config;
  config.connections_by = GroupBy::kRkey;
  Box box(config);
  box.write(0x10, 0, 0, 64, 0, 1);
  box.write(0x20, 0, 0, 64, 0, 2);
  EXPECT_EQ(box.report()["connections"].size(), 2u);
  Config rows;
  rows.messages = 8;
  rows.queue_pairs = {{kB, 0x10, 2, 5, 0}, {kB, 0x20, 2, 5, 1}};
  Box known(rows);
  known.write(0x10, 0, 0);
  known.write(0x11, 0, 1);
  known.write(0x11, 3, 0);
  known.write(0x10, 6, 0);  // not more than half the IDs ahead
  known.write(0x21, 0, 0);  // of the next generation
  known.write(0x30, 0, 0);  // of nobody that is known
  const Json said = known.report();
  ASSERT_EQ(said["connections"].size(), 2u);
  ASSERT_EQ(said["connections"].size(), 2u);
  EXPECT_EQ(said["connections"][0]["configured_number"], 5);
  EXPECT_EQ(said["connections"][0]["messages"], 4);
  EXPECT_EQ(said["connections"][0]["late"], 0);
  EXPECT_EQ(said["messages"][0]["packets"], 2);
}

TEST(SdrObserver, ItsMemoryIsBounded) {
  Config config;
  config.connections = 1, config.qps = 2, config.messages = 4, config.packets = 32, config.listed = 2;
  config.events = 3;
  Box box(config);
  box.write(1, 0, 31);
  box.write(1, 0, 32);  // no bit
  box.write(1, 4, 0);   // no slot
  box.write(1, 0, 1u << 17);
  box.write(2, 1, 0);
  box.write(3, 1, 0);  // no queue pair
  EXPECT_EQ(box.count("beyond"), 3u);
  EXPECT_EQ(box.count("full"), 1u);
  for (std::uint32_t i = 0; i < 10; i++) box.write(1, 2, 5);
  const Json said = box.report();
  EXPECT_EQ(said["events"].size(), 3u);
  EXPECT_EQ(box.count("events_not_listed"), 6u);
}

// What has come of each message, as somebody who knows the sender sees it.
struct Expected {
  std::set<std::uint32_t> packets;
  std::uint32_t duplicates = 0, late = 0;
};

TEST(SdrObserver, AgreesWithAModelOfTheSender) {
  for (std::uint64_t seed = 1; seed <= 30; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::uint32_t ids = 4u << random() % 4, generations = 2u << random() % 2, channels = 1 + random() % 4;
    Config config;
    config.messages = ids;
    config.generations = generations;
    config.mtu = 1;  // 64 B
    config.chunk = 1 << random() % 8;
    config.listed = 1000;
    Box box(config);
    struct Sent {
      std::uint64_t number, at;
      std::uint32_t offset, bytes;
    };
    std::vector<Sent> sent;
    std::map<std::uint64_t, std::uint32_t> sizes;
    std::set<std::uint64_t> known;
    for (std::uint64_t number = 0; number < ids * 5; number++) {
      const auto packets = static_cast<std::uint32_t>(1 + random() % 150);
      sizes[number] = packets;
      for (std::uint32_t offset = 0; offset < packets; offset++) {
        // The first packet of a queue pair comes in time: by it the generation is learnt.
        const bool is_first = known.insert(number / ids % generations * channels + offset % channels).second;
        if (!is_first && random() % 20 == 0) continue;
        // Some of the others are late by up to what can be told.
        std::uint64_t at = number * 1000 + offset;
        if (!is_first && random() % 30 == 0) at += random() % ((ids * (2 * generations - 1) / 2 - 1) * 1000 - 3200);
        const std::uint32_t bytes = offset + 1 == packets ? 1 + static_cast<std::uint32_t>(random() % 63) : 64;
        sent.push_back({number, at, offset, bytes});
        if (random() % 25 == 0) sent.push_back({number, at + random() % 3000, offset, bytes});
      }
    }
    std::stable_sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) { return a.at < b.at; });
    std::map<std::uint64_t, Expected> model;
    std::map<std::uint32_t, std::uint64_t> holder;  // of each ID
    std::uint64_t late = 0;
    for (const Sent& one : sent) {
      const auto id = static_cast<std::uint32_t>(one.number % ids);
      const auto generation = static_cast<std::uint32_t>(one.number / ids % generations);
      box.write(kFirstQpn + generation * channels + one.offset % channels, id, one.offset, one.bytes);
      const auto held = holder.find(id);
      if (held != holder.end() && held->second > one.number) {
        late++;
        continue;
      }
      holder[id] = one.number;
      Expected& message = model[one.number];
      if (!message.packets.insert(one.offset).second) message.duplicates++;
    }
    ASSERT_EQ(box.count("late"), late);
    const Json said = box.report();
    ASSERT_EQ(said["messages"].size(), model.size());
    for (const Json& row : said["messages"]) {
      const auto number = row["message_number"].get<std::uint64_t>();
      const Expected& message = model[number];
      SCOPED_TRACE(number);
      const std::uint32_t high = *message.packets.rbegin() + 1;
      ASSERT_EQ(row["packets"], message.packets.size());
      ASSERT_EQ(row["duplicates"], message.duplicates);
      ASSERT_EQ(row["expected"], high);
      ASSERT_EQ(row["end_known"], high == sizes[number]);
      ASSERT_EQ(row["state"] == "complete", message.packets.size() == sizes[number]);
      ASSERT_EQ(row["missing"], high - message.packets.size());
      std::uint32_t chunks = 0;
      for (std::uint32_t first = 0; first < high; first += static_cast<std::uint32_t>(config.chunk)) {
        const std::uint32_t end = std::min(first + static_cast<std::uint32_t>(config.chunk), sizes[number]);
        std::uint32_t have = 0;
        for (std::uint32_t i = first; i < end; i++) have += message.packets.contains(i) ? 1u : 0u;
        chunks += have == end - first && (end < sizes[number] || high == sizes[number]) ? 1 : 0;
      }
      ASSERT_EQ(row["chunks_complete"], chunks);
    }
  }
}

}  // namespace
}  // namespace rocebox::sdr::observer
