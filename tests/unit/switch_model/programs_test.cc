// SPDX-License-Identifier: BSD-3-Clause
// What a program can do in a switch: mirror, truncate, recirculate, drop, be woken, and be caught in strict mode.
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "switch_model/tables/exact_table.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::programs_test {
namespace {

// Data to QP n leave by port 1. QP 2: each is mirrored, cut, back to where it came from; the mirror becomes an ACK of
// the data's PSN. QP 3: goes round three times. QP 4: dropped in egress. QP 5: a loop over data. QP 6: two copies.
class Demo {
 public:
  struct Config {
    std::int64_t stage = 1;
    void fields(Fields& f, const SwitchInfo&) { f.integer("stage", stage, {0, 100}, "of the register"); }
  };
  Demo(const Config& config, const Build& build)
      : qps_(build.layout, "qps", {Gress::kIngress, 1}, 16),
        packets_(build.layout.registers<std::uint32_t>("packets",
                                                       {Gress::kIngress, static_cast<unsigned>(config.stage)}, 16, 1)),
        rounds_(build.layout.registers<std::uint8_t>("rounds", {Gress::kEgress, 0}, 16)),
        word_(build.layout.metadata(1)),
        drop_(build.stats.counter("drop_demo", "to QP 4")),
        woken_(build.stats.counter("woken", "timers")) {
    for (std::uint32_t qp = 0; qp < 16; qp++) qps_.insert(qp, {});
  }
  template <class Access>
  void ingress(Access& access, Pass& pass) {
    std::array<std::uint32_t, kBatchMax> keys, entries;
    std::array<PacketState*, kBatchMax> packets;
    for (std::size_t i = 0; i < pass.size(); i++) {
      packets[i] = &pass[i];
      keys[i] = static_cast<std::uint32_t>(roce::bth(pass[i].packet).destination_qp);
    }
    access.lookup_bulk({packets.data(), pass.size()}, qps_, {keys.data(), pass.size()}, {entries.data(), pass.size()});
    for (std::size_t i = 0; i < pass.size(); i++) {
      PacketState& p = pass[i];
      const auto count = [](std::uint32_t& n) { return ++n; };
      p.egress_port = 1;
      p.metadata[word_] = keys[i];
      access.update(p, packets_, keys[i], count);
      if (keys[i] == 5)
        for (unsigned n = 0; n < 2; n++) access.update(p, packets_, n, count);
      if (keys[i] == 6) p.multicast_group = 9;
      if (keys[i] == 7) pass.arm(timer_, pass.now());
    }
  }
  template <class Access>
  void egress(Access& access, Pass& pass) {
    for (PacketState& p : pass) {
      const std::uint32_t qp = p.metadata[word_];
      if (p.instance == Instance::kMirror) {
        answer(p);
        continue;
      }
      if (qp == 2) pass.mirror(p, p.ingress_port, 62);
      if (qp == 3 && access.update(p, rounds_, qp, [](std::uint8_t& n) { return ++n; }) < 4) pass.recirculate(p);
      if (qp == 4) pass.drop(p, drop_);
    }
  }
  void on_timer(Pass& pass, Timer& timer) {
    EXPECT_EQ(&timer, &timer_);
    EXPECT_EQ(pass.size(), 0u);
    woken_.add();
  }

 private:
  static void answer(PacketState& p) {
    roce::PacketSpec ack;
    ack.underlay = roce::reversed_underlay(p.packet);
    ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
    ack.psn = static_cast<std::uint32_t>(roce::bth(p.packet).psn);
    ASSERT_EQ(roce::built_bytes(ack), p.packet.size());
    roce::build(p.packet, ack);
  }
  ExactTable<std::uint32_t, std::uint8_t> qps_;
  RegisterArray<std::uint32_t> packets_;
  RegisterArray<std::uint8_t> rounds_;
  unsigned word_;
  Counter &drop_, &woken_;
  Timer timer_;
};

const Component kTypes[] = {program<Demo>("demo", "for the tests")};
constexpr const char* kYaml = R"(strict: true
ports: [a, b, c, d]
programs: [demo]
multicast_groups: [{group: 9, ports: [a, b, d]}]
)";

roce::PacketSpec send_to(std::uint32_t qp, std::uint32_t psn) {
  static const std::vector<std::uint8_t> kPayload(1024, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
  spec.opcode = IBV_OPCODE_RC_SEND_ONLY;
  spec.destination_qp = qp;
  spec.psn = psn;
  spec.payload = kPayload;
  return spec;
}

TEST(PacketState, IsPlainUntilOneThingIsAskedFor) {
  Counter reason;
  PacketState p;
  p.egress_port = p.ingress_port = 0xFE;
  p.application = 0x7F;
  p.traffic_class = p.passes = 0xFF;
  p.mirror_bytes = 0xFFFF;
  p.pipe = 3;
  EXPECT_TRUE(is_plain(p));
  for (const auto& ask : std::initializer_list<void (*)(PacketState&)>{
           [](PacketState& s) { s.multicast_group = 1; }, [](PacketState& s) { s.multicast_group = 0x8000; },
           [](PacketState& s) { s.mirror_port = 0; }, [](PacketState& s) { s.mirror_port = 0xFE; },
           [](PacketState& s) { s.recirculate = true; }}) {
    PacketState asked = p;
    ask(asked);
    EXPECT_FALSE(is_plain(asked));
  }
  p.drop_reason = &reason;
  EXPECT_FALSE(is_plain(p));
}

TEST(Switch, MirrorsAPacketAsAnother) {
  test::SwitchBox box(kYaml, kTypes);
  box.send(0, 2, send_to(2, 77));
  EXPECT_EQ(box.ports(), (std::vector<int>{1, 2}));
  EXPECT_EQ(box.out[0].bytes, test::frame(send_to(2, 77)));
  roce::PacketSpec ack;
  ack.underlay.addresses = {roce::ipv4(10, 0, 0, 2), roce::ipv4(10, 0, 0, 1)};
  ack.underlay.source_mac.swap(ack.underlay.destination_mac);
  ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  ack.psn = 77;
  EXPECT_EQ(box.out[1].bytes, test::frame(ack));
  EXPECT_EQ(box.out[1].meta.status, ParseStatus::kRoce);
  EXPECT_EQ(box.stats.read("mirrored"), 1u);
  EXPECT_EQ(box.stats.read("strict_violations"), 0u);
}

TEST(Switch, RecirculatesAfterTheLoopbacksDelay) {
  test::SwitchBox box(kYaml, kTypes);
  box.send(1000, 0, send_to(3, 1));
  EXPECT_EQ(box.conservation().held(), 1u);
  box.drain();
  ASSERT_EQ(box.ports(), (std::vector<int>{1}));
  EXPECT_EQ(box.out[0].at, 1000 + 3 * kMicrosecond);
  EXPECT_EQ(box.stats.read("recirculated"), 3u);
}

TEST(Switch, DropsReplicatesAndWakes) {
  test::SwitchBox box(kYaml, kTypes);
  box.send(0, 0, send_to(4, 1));
  EXPECT_EQ(box.stats.read("drop_demo"), 1u);
  box.send(0, 0, send_to(6, 1));
  EXPECT_EQ(box.ports(), (std::vector<int>{1, 3})) << "not back by the port it came in by";
  EXPECT_EQ(box.out[0].bytes, box.out[1].bytes);
  box.send(0, 2, send_to(6, 1));
  EXPECT_EQ(box.ports(), (std::vector<int>{0, 1, 3}));
  box.send(0, 0, send_to(7, 1));
  EXPECT_EQ(box.stats.read("woken"), 1u);
}

TEST(Switch, NamesAProgramsLoopOverData) {
  test::SwitchBox box(kYaml, kTypes);
  box.send(0, 0, send_to(1, 1));
  EXPECT_EQ(box.stats.read("strict_violations"), 0u);
  box.send(0, 0, send_to(5, 1));
  EXPECT_EQ(box.stats.read("strict_violations"), 2u);
  EXPECT_EQ(box.ports(), (std::vector<int>{1, 1})) << "it is told, and nothing else changes";
}

TEST(Switch, RefusesWhatGoesBackAndWhatDoesNotFit) {
  const std::string backwards = std::string(kYaml) + "demo: {stage: 0}\n";
  test::SwitchBox box(backwards.c_str(), kTypes);
  box.send(0, 0, send_to(1, 1));
  EXPECT_EQ(box.stats.read("strict_violations"), 1u);
  const std::string beyond = std::string(kYaml) + "demo: {stage: 3}\nprofile: {stages: 3}\n";
  CounterSet stats;
  try {
    test::make_switch(beyond.c_str(), stats, kTypes);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("program demo, ingress, stage 3, register `packets`: needs 1 SRAM pages, 1 map RAMs"))
        << error.what();
  }
}

}  // namespace
}  // namespace rocebox::switch_model::programs_test
