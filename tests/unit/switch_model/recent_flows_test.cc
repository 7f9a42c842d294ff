// SPDX-License-Identifier: BSD-3-Clause
// What `forward` remembers of RoCEv2 flows changes no answer: a switch in strict mode, which asks its tables for each
// packet, and one that remembers give the same.
#include <random>

#include "runtime/roce/hop_fields.h"
#include "runtime/roce/ipv4_checksum.h"
#include "switch_model/forward/recent_flows.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::forward {
namespace {

// Routes of different lengths and ways; `round` moves them.
std::string yaml(bool strict, unsigned round) {
  const auto via = [round](unsigned first, unsigned count) {
    std::string rows;
    for (unsigned i = 0; i < count; i++) {
      const std::string port = std::to_string((first + i + round) % 4);
      rows += "{port: p" + port + ", mac: '02:00:00:00:01:0" + port + "'},";
    }
    return "[" + rows + "]";
  };
  return std::string("strict: ") + (strict ? "true" : "false") +
         "\npipes: 2\nprograms: [forward]\nforward: {mac_entries: 64, hop_entries: 64, router_mac: "
         "'02:00:00:00:ff:01', routes: ["
         "{prefix: 10.0.1.0/24, via: " +
         via(0, 4) + "}, {prefix: 10.0.1.128/25, via: " + via(1, 1) + "}, {prefix: 10.0.2.0/24, via: " + via(2, 3) +
         "}, {prefix: '2001:db8::/32', via: " + via(0, 2) + "}]}\n";
}

// A packet of one of many flows; some are no RoCEv2, some must not be forwarded.
std::vector<std::uint8_t> draw_frame(std::mt19937_64& random) {
  roce::PacketSpec spec;
  spec.underlay.destination_mac = {2, 0, 0, 0, 0xFF, 1};
  spec.underlay.source_mac = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(random() % 8)};
  const auto byte = [&](unsigned limit) { return static_cast<std::uint8_t>(random() % limit); };
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, byte(4)),
                             roce::ipv4(10, 0, static_cast<std::uint8_t>(1 + byte(3)), byte(255))};
  spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + random() % 4);
  spec.underlay.ttl = static_cast<std::uint8_t>(random() % 16 ? 64 : random() % 3);
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_MIDDLE;
  spec.psn = static_cast<std::uint32_t>(random() & 0xFFFFFF);
  static const std::vector<std::uint8_t> payload(64, 0x5A);
  spec.payload = payload;
  if (random() % 8 == 0) spec.underlay.vlans = {static_cast<std::uint16_t>(1 + byte(3)), 0};
  if (random() % 8 == 0) {
    spec.underlay.ip_version = 6;
    spec.underlay.addresses.destination = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(8)};
  }
  std::vector<std::uint8_t> frame = test::frame(spec);
  const std::size_t ip = spec.underlay.vlans[0] ? 18 : 14;
  switch (random() % 24) {
    case 0:
      frame[ip + 20 + 3] ^= 1;  // another UDP port
      break;
    case 1:
      frame[ip + 10] ^= static_cast<std::uint8_t>(1u << random() % 8);  // IPv4: a wrong checksum
      break;
    case 2:
      frame[ip + 4] ^= 0x10;  // IPv4: identification, and so a wrong checksum, too
      break;
    case 3: {  // IPv4 with an option; IPv6: nonsense
      frame.insert(frame.begin() + static_cast<std::ptrdiff_t>(ip + 20), 4, 1);
      frame[ip] = 0x46;
      frame[ip + 3] = static_cast<std::uint8_t>(frame[ip + 3] + 4);
      auto& header = *reinterpret_cast<roce::Ipv4*>(&frame[ip]);
      if (random() % 4) roce::store_ipv4_checksum(header);
      break;
    }
    default:
      break;
  }
  return frame;
}

struct Outcome {
  std::vector<test::Out> out;
  std::array<std::uint64_t, 4> counters;
};

// In bursts that are cut into batches of at most `batch`. One switch at a time: rte_lpm takes 64 MiB for each.
Outcome run(bool strict, unsigned batch) {
  test::SwitchBox box(yaml(strict, 0).c_str());
  box.pipeline->set_batch_max(batch);
  std::mt19937_64 random(11);
  Nanos now = 0;
  for (unsigned round = 1; round < 12; round++) {
    for (int burst = 0; burst < 60; burst++) {
      std::vector<std::vector<std::uint8_t>> frames;
      for (int i = 0; i < 50; i++) {
        frames.push_back(draw_frame(random));
        if (random() % 4 == 0) frames.push_back(frames.back());  // a flow's first packets side by side
      }
      box.send_burst(now += 100, static_cast<Port>(random() % 4), frames);
    }
    test::prepare_change(box, yaml(strict, round))->apply(*box.kernel, now);
  }
  EXPECT_EQ(box.stats.read("strict_violations"), 0u);
  return {std::move(box.out),
          {box.stats.read("drop_no_route"), box.stats.read("drop_ttl"), box.stats.read("drop_ip_header"),
           box.stats.read("drop_for_router")}};
}

TEST(RecentFlows, ChangeNoAnswer) {
  // By port: a burst's packets leave port by port, as many at once as a batch has.
  const auto by_port = [](Outcome outcome) {
    std::ranges::stable_sort(outcome.out, {}, [](const test::Out& out) { return std::pair(out.at, out.port); });
    return outcome;
  };
  const Outcome asks = by_port(run(true, 1));
  for (std::size_t i = 0; i < 3; i++) EXPECT_GT(asks.counters[i], 100u) << i;
  for (const unsigned batch : {1u, 7u, 64u}) {
    const Outcome remembers = by_port(run(false, batch));
    EXPECT_EQ(asks.counters, remembers.counters);
    ASSERT_EQ(asks.out.size(), remembers.out.size());
    for (std::size_t i = 0; i < asks.out.size(); i++) ASSERT_EQ(asks.out[i], remembers.out[i]) << batch << ' ' << i;
  }
}

TEST(RecentFlows, AreForgottenForGood) {
  RecentFlows flows;
  const RecentFlows::Key key{0x0102030405060708, 0xC0DE}, other{0x0102030405060709, 0xC0DE}, none{};
  EXPECT_FALSE(flows.holds(flows.place(none), none)) << "an empty place is no flow's, of addresses of zeros neither";
  flows.remember(key, {3, 4});
  ASSERT_TRUE(flows.holds(flows.place(key), key));
  EXPECT_EQ(flows.place(key).way.group, 3);
  EXPECT_EQ(flows.place(key).way.hop, 4);
  EXPECT_FALSE(flows.holds(flows.place(key), other));
  EXPECT_FALSE(flows.holds(flows.place(key), {key.addresses, 0xC0DF}));
  for (unsigned round = 0; round < 0x20003; round++) {
    flows.forget();
    ASSERT_FALSE(flows.holds(flows.place(key), key)) << "round " << round;
    ASSERT_FALSE(flows.holds(flows.place(none), none)) << "round " << round;
  }
}

// Few flows have few places, and there are more where many need them.
TEST(RecentFlows, FindPlacesForMany) {
  RecentFlows flows;
  constexpr std::uint16_t kFlows = 8192;
  const auto key = [](std::uint16_t i) { return RecentFlows::Key{0x0A0000010A000101 + i * 0x100000001u, i}; };
  unsigned held = 0;
  for (unsigned round = 0; round < 16; round++) {
    held = 0;
    for (std::uint16_t i = 0; i < kFlows; i++) {
      if (flows.holds(flows.place(key(i)), key(i))) {
        held++;
        ASSERT_EQ(flows.place(key(i)).way.hop, i % 7) << i;
      } else {
        flows.remember(key(i), {1, static_cast<std::uint16_t>(i % 7)});
      }
    }
  }
  EXPECT_GT(held, kFlows / 8 * 7);
}

// The header's checksum against the sum as RFC 791 words it.
bool checksum_holds(const roce::Ipv4& ip) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&ip);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < ip.header_bytes(); i += 2) sum += std::uint32_t{bytes[i]} << 8 | bytes[i + 1];
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF;
}

TEST(Ipv4Checksum, HoldsWhereTheSumSaysSo) {
  std::mt19937_64 random(12);
  struct {
    roce::Ipv4 ip;
    std::uint8_t options[40];
  } header;
  unsigned right = 0;
  for (int i = 0; i < 200'000; i++) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(&header);
    const unsigned kind = random() % 4;
    for (unsigned at = 0; at < sizeof header; at++)
      bytes[at] = kind == 0 ? 0 : kind == 1 ? 0xFF : static_cast<std::uint8_t>(random());
    if (kind < 2) bytes[random() % 20] = static_cast<std::uint8_t>(random());
    header.ip.version_ihl = static_cast<std::uint8_t>(0x40 | (random() % 4 ? 5 : 5 + random() % 11));
    if (random() % 2) roce::store_ipv4_checksum(header.ip);
    if (random() % 4 == 0) header.ip.checksum.bytes[random() % 2] ^= static_cast<std::uint8_t>(1u << random() % 8);
    const bool holds = checksum_holds(header.ip);
    right += holds;
    ASSERT_EQ(roce::ipv4_checksum_holds(header.ip), holds) << i;
    if (header.ip.ttl == 0) continue;
    // One less, by RFC 1624 word by word.
    const std::uint32_t word = std::uint32_t{header.ip.ttl} << 8 | header.ip.protocol;
    std::uint32_t sum = (~static_cast<std::uint32_t>(header.ip.checksum) & 0xFFFF) + (~word & 0xFFFF) + (word - 0x100);
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    const std::uint8_t ttl = header.ip.ttl;
    roce::lower_ttl(header.ip);
    ASSERT_EQ(header.ip.ttl, ttl - 1);
    ASSERT_EQ(static_cast<std::uint32_t>(header.ip.checksum), ~sum & 0xFFFF) << i;
    ASSERT_EQ(checksum_holds(header.ip), holds) << "neither laundered nor broken";
  }
  EXPECT_GT(right, 50'000u);
}

}  // namespace
}  // namespace rocebox::switch_model::forward
