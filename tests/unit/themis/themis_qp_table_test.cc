// SPDX-License-Identifier: BSD-3-Clause
// The keys of QPs, and what a packet brings from ingress to egress about its QP.
#include <random>

#include "kernels/themis/qp_table.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

bool same_bytes(const QpKey& a, const QpKey& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(QpKey, IsThatOfTheHalf) {
  std::mt19937_64 random(3);
  Pool pool(test::kPoolSizes);
  const auto draw = [&random](bool mapped) {
    std::array<std::uint8_t, 16> address{};
    if (mapped) address = roce::ipv4(10, 0, 0, 0);
    for (std::size_t i = mapped ? 12 : 0; i < 16; i++) address[i] = static_cast<std::uint8_t>(random());
    return address;
  };
  for (int i = 0; i < 2000; i++) {
    roce::PacketSpec spec = write(false, 0);
    const unsigned kind = random() % 4;  // 0: IPv4; 1, 2: one address of an IPv6 packet is mapped; 3: both are
    spec.underlay.ip_version = kind == 0 ? 4 : 6;
    spec.underlay.addresses = {draw(kind != 1), draw(kind != 2)};
    spec.destination_qp = static_cast<std::uint32_t>(random() & 0xFFFFFF);
    PacketPtr packet = pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    QpKey read;
    std::memset(&read, 0xA5, sizeof read);
    read.read(*packet, spec.destination_qp);
    const QpKey of = QpKey::of(DirectionKey{spec.underlay.addresses, spec.destination_qp});
    ASSERT_TRUE(same_bytes(read, of)) << kind;
    ASSERT_TRUE(read.same_as(of));
    ASSERT_EQ(read.hash(), of.hash());
  }
}

// Any difference between two directions is one between their keys, for the table's own comparison and for rte_hash's.
TEST(QpKey, DiffersWhereTheHalvesDo) {
  const DirectionKey v4{{kLocal, kRemote}, 0x11};
  DirectionKey v6 = v4;
  for (std::size_t i = 0; i < 16; i++) v6.addresses.source[i] = static_cast<std::uint8_t>(i);
  DirectionKey zeros{};
  for (const DirectionKey& direction : {v4, v6, zeros}) {
    const QpKey key = QpKey::of(direction);
    EXPECT_TRUE(key.same_as(QpKey::of(direction)));
    for (std::size_t bit = 0; bit < 8 * 32 + 24; bit++) {
      DirectionKey other = direction;
      if (bit < 128)
        other.addresses.source[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      else if (bit < 256)
        other.addresses.destination[bit / 8 - 16] ^= static_cast<std::uint8_t>(1u << bit % 8);
      else
        other.destination_qp ^= 1u << (bit - 256);
      const QpKey differs = QpKey::of(other);
      EXPECT_FALSE(key.same_as(differs)) << bit;
      EXPECT_FALSE(differs.same_as(key)) << bit;
      EXPECT_FALSE(same_bytes(key, differs)) << bit;
    }
  }
  EXPECT_NE(QpKey::of(zeros).hash() >> 16, 0u) << "rte_hash's signature of a key of zeros: see key_hash()";
}

// Packets wait at p0 while their connection ends and begins anew, in time in the same entry: the new one knows nothing
// of them.
TEST(ThemisGeneration, WhatWaitedIsNotRecordedForTheNextConnection) {
  Tor tor(std::string("qps: 1, qp_timeout: 2ms, ") + kConnection,
          "traffic_manager: {rates: [{ports: [p0], rate: 10Mbps}]}");  // a packet takes 0.9 ms
  tor.meet();
  constexpr unsigned kWaiting = 300, kConnections = 40;
  for (std::uint32_t i = 0; i < kWaiting; i++) tor.data(i % 8);
  tor.run_until(tor.now += 4 * kMillisecond);
  std::size_t responses = 0;
  for (unsigned number = 2; number <= kConnections; number++) {
    tor.meet();
    ASSERT_EQ(tor.count("qps_made"), number);
    tor.data(0);  // begins it, and waits behind the others
    tor.run_until(tor.now += kMillisecond);
    const std::size_t before = tor.out.size();
    for (std::uint32_t epsn = 1; epsn < 8; epsn++) tor.nack(epsn);
    for (std::size_t i = before; i < tor.out.size(); i++) responses += tor.out[i].port >= 2;
    tor.run_until(tor.now += 4 * kMillisecond);
    ASSERT_EQ(tor.count("qps_aged"), number);
  }
  EXPECT_GT(tor.conservation().held(), 0u) << "some of the first connection's packets still wait";
  EXPECT_EQ(tor.count("nack_invalid"), 0u) << "no bit was set by a packet from before";
  EXPECT_EQ(responses, 7 * (kConnections - 1)) << "the NACKs pass";
  tor.drain();
}

TEST(ThemisWrongPort, DataThatLeavesByAnotherPortIsCountedAndNotRecorded) {
  // The NIC is at p0 as its requests say; its address is that of p1, and then of an uplink.
  for (const std::string port : {"p1", "p3"}) {
    std::string yaml = tor_yaml(kConnection);
    const std::string row = "{mac: 02:00:00:00:00:01, ports: [p0]}";
    yaml.replace(yaml.find(row), row.size(), "{mac: 02:00:00:00:00:01, ports: [" + port + "]}");
    Tor tor = Tor::with(yaml);
    tor.meet();
    tor.give(2, write(true, 0));
    tor.give(2, write(true, 1));
    EXPECT_EQ(tor.count("data_wrong_port"), 2u) << port;
    tor.nack(1);
    EXPECT_EQ(tor.count("nack_invalid"), 0u) << port;
  }
}

}  // namespace
}  // namespace rocebox::themis
