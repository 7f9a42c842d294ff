// SPDX-License-Identifier: BSD-3-Clause
// The packet generator: exact times, numbers that programs read, catching up, and what it refuses.
#include "switch_model/packet_generator/packet_generator.h"

#include <fmt/format.h>

#include <random>

#include "runtime/roce/ipv4_checksum.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model {
namespace {

struct Due {
  std::int64_t trigger, batch, packet;
  Nanos at;
};

// As the words of the options say it.
std::vector<Due> all_due(const ApplicationConfig& c, Nanos origin, std::int64_t triggers) {
  std::vector<Due> all;
  for (std::int64_t t = 0; t < triggers; t++) {
    Nanos at = origin + c.start + t * c.every;
    for (std::int64_t b = 0; b < c.batches; b++, at += c.batch_gap - c.packet_gap)
      for (std::int64_t k = 0; k < c.packets; k++, at += c.packet_gap) all.push_back({t, b, k, at});
  }
  return all;
}

ApplicationConfig drawn(std::mt19937& random) {
  ApplicationConfig c;
  c.start = random() % 50;
  c.batches = 1 + random() % 4;
  c.packets = 1 + random() % 5;
  c.packet_gap = random() % 3 ? random() % 20 : 0;
  c.batch_gap = 1 + random() % 30;
  if (random() % 2) {
    c.every = c.duration() + 1 + random() % 40;
    c.times = random() % 5;
  }
  return c;
}

TEST(Schedule, IsThatOfTheWords) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; round++) {
    const ApplicationConfig config = drawn(random);
    Schedule schedule(config, 1000);
    const bool endless = config.every != 0 && config.times == 0;
    for (const Due& due : all_due(config, 1000, config.every ? (endless ? 7 : config.times) : 1)) {
      ASSERT_EQ(schedule.due(), due.at);
      ASSERT_EQ(schedule.batch(), due.batch);
      ASSERT_EQ(schedule.packet(), due.packet);
      schedule.advance();
    }
    EXPECT_EQ(schedule.due() == kNever, !endless);
  }
}

TEST(Schedule, SkipsWhatIsTooLateAndNothingElse) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; round++) {
    const ApplicationConfig config = drawn(random);
    Schedule schedule(config, 0);
    std::vector<Due> all = all_due(config, 0, config.every ? (config.times ? config.times : 100) : 1);
    const std::size_t done = random() % all.size();
    for (std::size_t i = 0; i < done; i++) schedule.advance();
    const Nanos limit = static_cast<Nanos>(random() % 500);
    std::size_t next = done;
    while (next < all.size() && all[next].at < limit) next++;
    ASSERT_EQ(schedule.skip_to(limit), next - done);
    ASSERT_EQ(schedule.due(), next < all.size() ? all[next].at : kNever);
  }
}

// Writes what it is told of a packet into the packet, and sends it by port 1.
class Tell {
 public:
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  Tell(const Config&, const Build&) {}
  template <class Access>
  void ingress(Access&, Pass& pass) {
    for (PacketState& p : pass) {
      p.egress_port = 1;
      if (p.instance != Instance::kGenerated) continue;
      std::uint8_t* at = p.packet.data();
      at[0] = p.application;
      at[1] = static_cast<std::uint8_t>(p.generator_batch);
      at[2] = static_cast<std::uint8_t>(p.replica);
      at[3] = p.ingress_port;
    }
  }
};
const Component kTellTypes[] = {program<Tell>("tell", "for the tests")};

struct GeneratorBox : test::SwitchBox {
  explicit GeneratorBox(const std::string& applications)
      : SwitchBox(("strict: true\nprograms: [tell]\npacket_generator:\n" + applications).c_str(), kTellTypes) {}
  /// "application batch packet port @time", of those that have left since the last call.
  std::string told() {
    std::string text;
    for (; seen < out.size(); seen++) {
      const auto& b = out[seen].bytes;
      text += fmt::format("{} {} {} {} @{}; ", b[0], b[1], b[2], b[3], out[seen].at);
    }
    return text;
  }
};

TEST(PacketGenerator, SendsBatchesAtTheirTimesWithTheirNumbers) {
  GeneratorBox box(
      "  - {port: p2, start: 100ns, batches: 2, packets: 3, packet_gap: 10ns, batch_gap: 50ns}\n"
      "  - {port: p3, start: 110ns, every: 1us, times: 2, packets: 2, packet_gap: 0}\n");
  box.drain();
  EXPECT_EQ(box.told(),
            "1 0 0 2 @100; 1 0 1 2 @110; 2 0 0 3 @110; 2 0 1 3 @110; 1 0 2 2 @120; 1 1 0 2 @170; 1 1 1 2 @180; "
            "1 1 2 2 @190; 2 0 0 3 @1110; 2 0 1 3 @1110; ");
  EXPECT_EQ(box.stats.read("generated"), 10u);
  EXPECT_EQ(box.conservation().made, 10u);
  Json json;
  JsonReport writer(json);
  box.kernel->report(writer);
  EXPECT_EQ(json["packet_generator"][1]["triggers"], 2);
  EXPECT_EQ(json["packet_generator"][0]["packets"], 6);
}

TEST(PacketGenerator, ABurstOfOneInstantStaysThere) {
  GeneratorBox box("  - {port: p0, start: 5us, packets: 5000, packet_gap: 0, packet: {payload: 8}}\n");
  box.send(0, 2, std::vector<std::uint8_t>(64));
  box.drain();
  ASSERT_EQ(box.out.size(), 5001u);
  EXPECT_EQ(box.out[1].at, 5000);
  EXPECT_EQ(box.out.back().at, 5000);
  EXPECT_EQ(box.stats.read("generator_missed"), 0u);
}

// A live run is woken late: what is not too late follows, in bounded steps, and the rest is counted.
TEST(PacketGenerator, CatchesUpOnAtMostTenMilliseconds) {
  constexpr Nanos kStart = 1'000 * kSecond;  // the clock of a live run is not at 0
  GeneratorBox box("  - {port: p0, every: 10us, packet: {payload: 8}}\n");
  box.pipeline->step(kStart, {});
  EXPECT_EQ(box.out.size(), 1u) << "time 0 is the start";
  box.pipeline->step(kStart + 5 * kMillisecond, {});
  EXPECT_LE(box.out.size(), 1u + kBatchMax) << "one batch at a time, so that ports are served between";
  for (Nanos more = 1; more < 100; more++) box.pipeline->step(kStart + 5 * kMillisecond + more, {});
  EXPECT_EQ(box.out.size(), 501u);
  EXPECT_EQ(box.stats.read("generator_missed"), 0u);
  box.pipeline->step(kStart + kSecond, {});
  for (Nanos more = 1; more < 100; more++) box.pipeline->step(kStart + kSecond + more, {});
  EXPECT_EQ(box.out.size() + box.stats.read("generator_missed"), 100'001u);
  EXPECT_EQ(box.stats.read("generator_missed"), 100'001u - 501 - 1001);
}

// However late each call is, none of the applications waits for another to have nothing to do.
TEST(PacketGenerator, ABusyApplicationHoldsNoOther) {
  GeneratorBox box(
      "  - {name: probe, port: p0, every: 1us, packet: {payload: 8}}\n  - {name: beat, port: p0, every: 1ms, packet: "
      "{payload: 9}}\n");
  for (Nanos now = 0; now <= 20 * kMillisecond; now += 3 * kMicrosecond) box.pipeline->step(kSecond + now, {});
  const auto beats = std::ranges::count_if(box.out, [](const test::Out& out) { return out.bytes[0] == 2; });
  EXPECT_EQ(beats, 20);
  EXPECT_GE(box.out.size(), 19'990u);
}

TEST(PacketGenerator, ADryPoolIsCounted) {
  GeneratorBox box("  - {port: p0, packets: 3, packet_gap: 1us}\n");
  std::vector<PacketPtr> held;
  while (PacketPtr packet = box.pool.allocate(64)) held.push_back(std::move(packet));
  while (PacketPtr packet = box.pool.allocate(9000)) held.push_back(std::move(packet));
  while (PacketPtr packet = box.pool.allocate(60000)) held.push_back(std::move(packet));
  box.pipeline->step(0, {});
  EXPECT_EQ(box.stats.read("generator_pool_empty"), 1u);
  held.clear();
  box.drain();
  EXPECT_EQ(box.out.size(), 2u);
}

TEST(PacketGenerator, FramesAreWhatIsWritten) {
  test::SwitchBox box(R"(programs: [forward]
packet_generator:
  - {port: p0, packet: {hex: "ffff ffff ffff 0200:0000:0001 0806 0001080006040001"}}
  - {port: p0, start: 1us, packet: {vlan: 5, dscp: 46, ttl: 7, source: 10.1.2.3, destination: 10.4.5.6, payload: 3}}
  - {port: p0, start: 2us, packet: {source: '2001:db8::1', destination: '2001:db8::2', source_port: 4791, destination_port: 7}}
)");
  box.drain();
  ASSERT_EQ(box.out.size(), 9u) << "each is flooded";
  EXPECT_EQ(box.out[0].bytes.size(), 22u);
  EXPECT_EQ(box.out[0].meta.status, ParseStatus::kNotIp);
  const auto& four = box.out[3];
  EXPECT_EQ(four.bytes.size(), 14u + 4 + 20 + 8 + 3);
  EXPECT_EQ(four.meta.ip_version, 4);
  const auto& ip = *reinterpret_cast<const roce::Ipv4*>(four.bytes.data() + four.meta.l3_offset);
  EXPECT_TRUE(roce::ipv4_checksum_holds(ip));
  EXPECT_EQ(ip.tos, 46 << 2);
  EXPECT_EQ(ip.ttl, 7);
  EXPECT_EQ(box.out[6].meta.ip_version, 6);
  EXPECT_EQ(box.out[6].bytes.size(), 14u + 40 + 8 + 64);
}

std::string generator_mistakes(const std::string& application) {
  return test::switch_mistakes("packet_generator: [{" + application + "}]\n");
}

TEST(PacketGenerator, NamesMistakes) {
  EXPECT_EQ(generator_mistakes("port: p0"), "");
  const std::pair<const char*, const char*> wrong[] = {
      {"packets: 3", "`port` must name a port of the switch"},
      {"port: p9", "`port` names no port of the switch: `p9`"},
      {"port: p0, every: 10us, packets: 20", "`every` is not longer than what a trigger starts takes"},
      {"port: p0, every: 1ns", "`every` must be 1us at least"},
      {"port: p0, times: 2", "`times` needs `every`"},
      {"port: p0, batches: 2, batch_gap: 0", "`batch_gap` must not be 0 where there are several batches"},
      {"port: p0, packet: {hex: 02001}", "`hex` must hold two hexadecimal digits a byte"},
      {"port: p0, packet: {hex: 020011}", "`hex` must have 14 to 9216 bytes, has 3"},
      {"port: p0, packet: {source: '::1'}", "`destination` is of another address family than `source`"},
      {"port: p0, packet: {source_mac: here}", "`source_mac` must be a MAC address"},
      {"name: a, port: p0}, {name: a, port: p0", "`packet_generator` has two named `a`"}};
  for (const auto& [text, why] : wrong)
    EXPECT_NE(generator_mistakes(text).find(why), std::string::npos) << generator_mistakes(text);
}

}  // namespace
}  // namespace rocebox::switch_model
