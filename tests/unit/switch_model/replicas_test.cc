// SPDX-License-Identifier: BSD-3-Clause
// Replicas of multicast groups have their bytes together until one is written: nobody sees a difference.
#include <random>
#include <set>

#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model {
namespace {

// Does nothing in egress, and does not say that it asks before it writes: a switch that runs it copies its replicas.
struct Silent {
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  Silent(const Config&, const Build&) {}
  template <class Access>
  void egress(Access&, Pass&) {}
};

// Writes what it may write: in egress, to every second packet.
struct Writer {
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  static constexpr bool kOwnsWhatItWrites = true;
  Writer(const Config&, const Build&) {}
  template <class Access>
  void egress(Access&, Pass& pass) {
    for (PacketState& p : pass)
      if (p.egress_port % 2 && !p.drop_reason && pass.own(p)) p.packet.data()[p.packet.size() - 1] ^= p.egress_port;
  }
};

std::span<const Component> types() {
  static const std::vector<Component> all = [] {
    return std::vector{program<Silent>("silent", "for the tests"), program<Writer>("writer", "for the tests")};
  }();
  return all;
}

constexpr std::array<std::uint8_t, 6> kGroup = {0x01, 0, 0x5E, 0, 0, 1};
// Group 5 has all ports; behind p1 packets wait, and are marked.
std::string yaml(const std::string& programs, const std::string& more = "") {
  return "programs: [" + programs + "]\n" + more +
         "multicast_groups: [{group: 5, ports: [p0, p1, p2, p3]}]\n"
         "forward: {learning: false, mac_entries: 16, macs: [{mac: '01:00:5e:00:00:01', group: 5}]}\n";
}

roce::PacketSpec spec_of(std::uint32_t psn, std::array<std::uint8_t, 6> to = kGroup) {
  static const std::vector<std::uint8_t> payload(1024, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.destination_mac = to;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(224, 0, 0, 1)};
  spec.underlay.tos = 2;  // ECT(0)
  spec.opcode = IBV_OPCODE_RC_SEND_ONLY;
  spec.psn = psn;
  spec.payload = payload;
  return spec;
}

// What leaves is kept, not freed, until it was looked at.
struct KeepingBox : test::SwitchBox {
  explicit KeepingBox(const std::string& text) : SwitchBox(text.c_str(), types()) {
    pipeline->set_sink([this](Port port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) kept.emplace_back(port, PacketPtr(packet));
    });
  }
  std::set<const std::uint8_t*> places() const {
    std::set<const std::uint8_t*> all;
    for (const auto& [port, packet] : kept) all.insert(packet->data());
    return all;
  }
  bool any_shared() const {
    return std::ranges::any_of(kept, [](const auto& one) { return one.second->is_shared(); });
  }
  std::vector<std::pair<Port, PacketPtr>> kept;
};

TEST(Replicas, HaveOneCopyOfTheBytesWhereTheSinkOnlyReads) {
  KeepingBox box(yaml("forward"));
  for (Port port = 0; port < 4; port++) box.pipeline->allow_shared(port);
  box.send(100, 0, spec_of(7));
  ASSERT_EQ(box.kept.size(), 3u);
  EXPECT_EQ(box.places().size(), 1u);
  EXPECT_TRUE(box.any_shared());
  EXPECT_EQ(box.stats.read("replicated"), 2u);
  const std::vector<std::uint8_t> frame = test::frame(spec_of(7));
  for (const auto& [port, packet] : box.kept) {
    EXPECT_EQ(std::vector<std::uint8_t>(packet->data(), packet->data() + packet->size()), frame);
    EXPECT_EQ(packet->meta().payload_bytes, 1024u);
  }
  box.kept.erase(box.kept.begin(), box.kept.begin() + 2);
  EXPECT_FALSE(box.any_shared()) << "the last one has them alone";
  EXPECT_EQ(box.pool.in_use(), 1u);
  box.kept.clear();
}

TEST(Replicas, AreCopiesForASinkThatMayWrite) {
  KeepingBox box(yaml("forward"));
  box.pipeline->allow_shared(1);
  box.send(100, 0, spec_of(7));
  ASSERT_EQ(box.kept.size(), 3u);
  EXPECT_EQ(box.places().size(), 3u) << "p1 reads, p2 and p3 have their own";
  for (const auto& [port, packet] : box.kept)
    if (port != 1) {
      EXPECT_FALSE(packet->is_shared()) << int{port};
    }
  box.kept.clear();
}

TEST(Replicas, OfAProgramThatDoesNotAskAreCopies) {
  KeepingBox box(yaml("forward, silent"));
  for (Port port = 0; port < 4; port++) box.pipeline->allow_shared(port);
  box.send(100, 0, spec_of(7));
  EXPECT_EQ(box.places().size(), 3u);
  EXPECT_FALSE(box.any_shared());
  box.kept.clear();
}

TEST(Replicas, AreCopiedWhenAProgramWritesThem) {
  KeepingBox box(yaml("forward, writer"));
  for (Port port = 0; port < 4; port++) box.pipeline->allow_shared(port);
  box.send(100, 0, spec_of(7));
  ASSERT_EQ(box.kept.size(), 3u);
  const std::uint8_t last = test::frame(spec_of(7)).back();
  for (const auto& [port, packet] : box.kept)
    EXPECT_EQ(packet->data()[packet->size() - 1], port % 2 ? last ^ port : last) << int{port};
  box.kept.clear();
}

// All that leaves, of packets to the group, to an unknown address, and to one port, at random times.
std::vector<test::Out> run(const std::string& programs, bool shared, unsigned seed, std::uint64_t& marked) {
  const std::string queues =
      "traffic_manager: {rates: [{ports: [p1], rate: 1Gbps}, {ports: [p3], rate: 10Gbps}], "
      "buffer: 40KiB, ecn: {min: 2KiB, max: 16KiB}}\n";
  test::SwitchBox box(yaml(programs, seed % 2 ? queues : "").c_str(), types());
  for (Port port = 0; shared && port < 4; port++) box.pipeline->allow_shared(port);
  std::mt19937_64 random(seed);
  Nanos now = 0;
  for (std::uint32_t psn = 0; psn < 3000; psn++) {
    now += static_cast<Nanos>(random() % 4000);
    const std::uint8_t host = static_cast<std::uint8_t>(random() % 4);
    const auto to = random() % 3 ? kGroup : std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, host};
    std::vector<std::vector<std::uint8_t>> frames(1 + random() % 3, test::frame(spec_of(psn, to)));
    box.send_burst(now, static_cast<Port>(random() % 4), frames);
  }
  box.drain();
  EXPECT_EQ(box.conservation().held(), 0u);
  EXPECT_EQ(box.pool.in_use(), 0u);
  EXPECT_GT(box.stats.read("replicated"), 1000u);
  marked = seed % 2 ? box.stats.read("ecn_marked_packets") : 1;
  return std::move(box.out);
}

TEST(Replicas, NobodySeesADifference) {
  for (unsigned seed = 1; seed <= 4; seed++)
    for (const std::string programs : {"forward", "forward, writer"}) {
      std::uint64_t marked = 0, marked_copies = 0;
      const std::vector<test::Out> copies = run(programs + ", silent", false, seed, marked_copies);
      EXPECT_GT(marked_copies, 0u);
      for (const bool shared : {false, true}) {
        const std::vector<test::Out> out = run(programs, shared, seed, marked);
        EXPECT_EQ(marked, marked_copies);
        ASSERT_EQ(out.size(), copies.size());
        for (std::size_t i = 0; i < out.size(); i++)
          ASSERT_EQ(out[i], copies[i]) << programs << ' ' << shared << ' ' << i;
      }
    }
}

TEST(Replicas, ADryPoolLosesReplicasAndNothingElse) {
  for (const bool shared : {false, true}) {
    test::SwitchBox box(yaml("forward, writer", "traffic_manager: {rate: 1Gbps}\n").c_str(), types());
    for (Port port = 0; shared && port < 4; port++) box.pipeline->allow_shared(port);
    std::vector<PacketPtr> taken;
    constexpr std::uint32_t kAll = test::kPoolSizes.small + test::kPoolSizes.large + test::kPoolSizes.giant;
    for (std::uint32_t psn = 0; psn < 12; psn++) {
      while (box.pool.in_use() < kAll - 2) taken.push_back(box.pool.allocate(100));
      while (box.pool.in_use() > kAll - 2) taken.pop_back();
      box.send(100, 0, spec_of(psn));  // room for one of two replicas, or for one copy
    }
    box.drain();
    EXPECT_EQ(box.conservation().held(), 0u);
    EXPECT_EQ(box.pool.in_use(), taken.size());
    const auto lost = box.stats.read("copy_failed") + box.stats.read("drop_no_copy") + box.stats.read("drop_no_packet");
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(box.out.size() + lost, 3u * 12) << "each replica left, or is counted";
    for (const test::Out& out : box.out) EXPECT_EQ(out.bytes.size(), test::frame(spec_of(0)).size());
    taken.clear();
  }
}

}  // namespace
}  // namespace rocebox::switch_model
