// SPDX-License-Identifier: BSD-3-Clause
// Replicas that leave a switch for other devices, which write what they get: a link that corrupts, a router.
#include "runtime/component/registry.h"
#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::replicas_fabric_test {
namespace {

// sw1 knows no address, and floods to p1, p2 (a corrupting link behind it) and p3, which leads to the router sw2.
constexpr const char* kReplicasYaml = R"(devices:
  sw1: {switch: {ports: [p0, p1, p2, p3], programs: [forward], forward: {learning: false}}}
  far: {path: a <-> b}
  sw2:
    switch:
      ports: [p0, p1]
      programs: [forward]
      forward: {learning: false, router_mac: '02:00:00:00:ff:01', routes: [{prefix: 0.0.0.0/0, via: [{port: p1, mac: '02:00:00:00:01:01'}]}]}
links:
  bad: {between: [sw1.p2, far.a], corrupt: 100%}
  good: {between: [sw1.p3, sw2.p0]}
)";

class FollowAll final : public TraceSink {
 public:
  explicit FollowAll(bool drops) { every_drop = drops; }
  std::uint8_t follows(Packet) override { return 1; }
  void record(const TraceEvent& event) override { events += event.packet.size() != 0; }
  std::uint64_t events = 0;
};

enum class Trace { kNone, kFollows, kDrops };

std::multiset<std::string> run(bool shared, Trace trace, unsigned batch) {
  Registry registry;
  config::Mistakes mistakes("fabric.yaml");
  const config::RunConfig config = config::load_text(kReplicasYaml, "fabric.yaml", registry, mistakes, false);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  Pool pool(test::kPoolSizes);
  std::multiset<std::string> out;
  {
    FollowAll sink(trace == Trace::kDrops);
    Testbed testbed(
        config, pool, 1,
        [&](FabricPort from, std::span<Packet> packets, Nanos now) {
          for (Packet packet : packets) {
            out.insert(std::to_string(now) + ' ' + std::to_string(from.device) + '.' + std::to_string(from.port) + ' ' +
                       std::string(reinterpret_cast<const char*>(packet.data()), packet.size()));
            rte_pktmbuf_free(packet.mbuf());
          }
        },
        batch);
    if (shared) testbed.fabric().let_output_share();
    for (unsigned i = 0; trace != Trace::kNone && i < testbed.device_count(); i++) testbed.device(i).set_trace(&sink);
    Fabric& fabric = testbed.fabric();
    for (std::uint32_t psn = 0; psn < 200; psn++) {
      roce::PacketSpec spec;
      spec.underlay.destination_mac = {2, 0, 0, 0, 0xFF, 1};
      spec.underlay.ttl = static_cast<std::uint8_t>(psn % 5 ? 64 : 1);  // the router drops some
      spec.psn = psn;
      PacketPtr packet = pool.allocate(roce::built_bytes(spec));
      roce::build(*packet, spec);
      const Nanos now = 1000 * (psn / 8);
      fabric.advance_to(now);
      fabric.inject(testbed.port({"sw1", "p0"}), packet.release());
      if (psn % 8 == 7) fabric.run(now);
    }
    while (fabric.next_deadline() != kNever) fabric.run(fabric.next_deadline());
    EXPECT_EQ(fabric.held(), 0u);
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(sink.events != 0, trace != Trace::kNone);
  }
  EXPECT_EQ(pool.in_use(), 0u);
  return out;
}

TEST(ReplicasFabric, WhoWritesWritesItsOwn) {
  const std::multiset<std::string> all = run(false, Trace::kNone, 1);
  ASSERT_EQ(all.size(), 200 + 200 + 160u) << "by p1, through the link, and routed";
  // p1's are whole: each is there as it came in.
  for (const unsigned batch : {1u, 7u, 64u})
    for (const bool shared : {false, true})
      for (const Trace trace : {Trace::kNone, Trace::kFollows, Trace::kDrops})
        EXPECT_EQ(run(shared, trace, batch), all) << batch << ' ' << shared << ' ' << static_cast<int>(trace);
  std::size_t whole = 0;
  roce::PacketSpec spec;
  spec.underlay.destination_mac = {2, 0, 0, 0, 0xFF, 1};
  for (std::uint32_t psn = 0; psn < 200; psn++) {
    spec.underlay.ttl = static_cast<std::uint8_t>(psn % 5 ? 64 : 1);
    spec.psn = psn;
    const auto frame = test::frame(spec);
    whole += all.contains(std::to_string(1000 * (psn / 8)) + " 0.1 " + std::string(frame.begin(), frame.end()));
  }
  EXPECT_EQ(whole, 200u);
}

// Goes round once, and is written where it enters again: each replica for itself.
struct Again {
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  static constexpr bool kOwnsWhatItWrites = true;
  Again(const Config&, const Build&) {}
  template <class Access>
  void ingress(Access&, Pass& pass) {
    for (PacketState& p : pass) {
      if (p.instance != Instance::kRecirculated) {
        p.multicast_group = 5;
        continue;
      }
      p.egress_port = p.pipe ? Port{3} : Port{1};
      p.packet.data()[p.packet.size() - 1] = static_cast<std::uint8_t>(0xA0 + p.pipe);
    }
  }
  template <class Access>
  void egress(Access&, Pass& pass) {
    for (PacketState& p : pass)
      if (p.instance == Instance::kReplica && p.egress_port != 2) pass.recirculate(p);
  }
};

TEST(Replicas, ThatGoRoundAgainAreWrittenApart) {
  const Component kAgainTypes[] = {program<Again>("again", "for the tests")};
  test::SwitchBox box("pipes: 2\nprograms: [again]\nmulticast_groups: [{group: 5, ports: [p1, p2, p3]}]\n",
                      kAgainTypes);
  for (Port port = 0; port < 4; port++) box.pipeline->allow_shared(port);
  roce::PacketSpec spec;
  box.send(100, 0, spec);
  box.drain();
  ASSERT_EQ(box.out.size(), 3u);
  std::map<int, std::uint8_t> last;
  for (const test::Out& out : box.out) last[out.port] = out.bytes.back();
  EXPECT_EQ(last[1], 0xA0);
  EXPECT_EQ(last[2], test::frame(spec).back());
  EXPECT_EQ(last[3], 0xA1);
}

}  // namespace
}  // namespace rocebox::switch_model::replicas_fabric_test
