// SPDX-License-Identifier: BSD-3-Clause
// What programs see of times, queues and ports: exact numbers.
#include "switch_model/forward/forward.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::intrinsic_test {  // a room of its own: its names are other tests', too
namespace {

std::vector<Intrinsic> seen_in[2];  // by control

// Writes down what each packet brings along, and mirrors those of QP 2 to port a.
class Watch {
 public:
  struct Config {
    void fields(Fields&, const SwitchInfo&) {}
  };
  Watch(const Config&, const Build&) {
    for (auto& seen : seen_in) seen.clear();
  }
  template <class Access>
  void ingress(Access&, Pass& pass) {
    for (const PacketState& p : pass) seen_in[0].push_back(pass.intrinsic(p));
  }
  template <class Access>
  void egress(Access&, Pass& pass) {
    for (PacketState& p : pass) {
      seen_in[1].push_back(pass.intrinsic(p));
      if (p.instance == Instance::kNormal && roce::bth(p.packet).destination_qp == 2) pass.mirror(p, 0);
    }
  }
  static constexpr bool kOwnsWhatItWrites = true;
};
const Component kWatch = program<Watch>("watch", "for the tests");

// 1082 bytes of frame, 1106 on the wire: at 8.848 Mbps a millisecond.
constexpr std::uint32_t kFrameBytes = 14 + 20 + 8 + 12 + 1024 + 4;
constexpr Nanos kPacketTime = kMillisecond;

roce::PacketSpec data(std::uint32_t qp, std::uint8_t tos = 0) {
  static const std::vector<std::uint8_t> kPayload(1024, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
  spec.underlay.tos = tos;
  spec.opcode = IBV_OPCODE_RC_SEND_ONLY;
  spec.destination_qp = qp;
  spec.payload = kPayload;
  return spec;
}

struct WatchBox : test::SwitchBox {
  explicit WatchBox(const std::string& more)
      : SwitchBox(("ports: [a, b, c, d]\nprograms: [forward, watch]\n"
                   "forward:\n  learning: false\n  macs: [{mac: '02:00:00:00:00:02', ports: [b]}]\n" +
                   more)
                      .c_str(),
                  types()) {}
  static std::span<const Component> types() {
    static const std::array all = {forward_component(), kWatch};
    return all;
  }
};

TEST(Intrinsic, TimesAndDepthsOfAQueue) {
  WatchBox box("traffic_manager: {rate: 8848kbps, class_of: dscp}\n");
  for (const Nanos at : {100, 200, 300}) box.send(at, 3, data(5, 0x60));
  box.send(400, 2, data(5));  // of another class: its queue is empty, and it goes last
  box.drain();
  ASSERT_EQ(seen_in[0].size(), 4u);
  EXPECT_EQ(seen_in[0][1].ingress_port, 3);
  EXPECT_EQ(seen_in[0][1].ingress_mac_tstamp, 200);
  EXPECT_EQ(seen_in[0][1].global_tstamp, 200);
  EXPECT_EQ(seen_in[0][1].egress_port, kNoPort);
  EXPECT_EQ(seen_in[0][1].pkt_length, 0u) << "egress only";
  struct Wanted {
    Nanos in, out;
    std::uint64_t found, left;
    Port from;
    std::uint8_t cos;
  };
  const Wanted wanted[] = {{100, 100, 0, 0, 3, 3},
                           {200, 100 + kPacketTime, 0, kFrameBytes, 3, 3},
                           {300, 100 + 2 * kPacketTime, kFrameBytes, 0, 3, 3},
                           {400, 100 + 3 * kPacketTime, 0, 0, 2, 0}};
  ASSERT_EQ(seen_in[1].size(), std::size(wanted));
  for (std::size_t i = 0; i < std::size(wanted); i++) {
    const Intrinsic& seen = seen_in[1][i];
    EXPECT_EQ(seen.ingress_port, wanted[i].from) << i;
    EXPECT_EQ(seen.ingress_mac_tstamp, wanted[i].in) << i;
    EXPECT_EQ(seen.enq_tstamp, wanted[i].in) << i;
    EXPECT_EQ(seen.global_tstamp, wanted[i].out) << i;
    EXPECT_EQ(seen.deq_timedelta, wanted[i].out - wanted[i].in) << i;
    EXPECT_EQ(seen.enq_qdepth, wanted[i].found) << i;
    EXPECT_EQ(seen.deq_qdepth, wanted[i].left) << i;
    EXPECT_EQ(seen.egress_port, 1) << i;
    EXPECT_EQ(seen.egress_cos, wanted[i].cos) << i;
    EXPECT_EQ(seen.egress_qid, wanted[i].cos) << i;
    EXPECT_EQ(seen.pkt_length, kFrameBytes) << i;
  }
}

// In one burst: each packet has its own numbers, those that wait and those that do not.
TEST(Intrinsic, PacketsOfABatchHaveTheirOwn) {
  WatchBox box("traffic_manager: {rates: [{ports: [b], rate: 8848kbps}]}\n");
  std::vector<std::vector<std::uint8_t>> frames(3, test::frame(data(5)));
  frames[1][5] = 0xFF;  // to nobody: flooded
  box.send_burst(1000, 3, frames);
  // To b: at once. Then a, b (waits), c of the flood; the third waits too.
  ASSERT_EQ(seen_in[1].size(), 3u);
  EXPECT_EQ(seen_in[1][1].egress_port, 0);
  EXPECT_EQ(seen_in[1][2].egress_port, 2);
  EXPECT_TRUE(seen_in[1][1].egress_rid_first);
  EXPECT_EQ(seen_in[1][2].egress_rid, 2);
  for (const Intrinsic& seen : seen_in[1]) EXPECT_EQ(seen.deq_timedelta, 0);
  box.drain();
  ASSERT_EQ(seen_in[1].size(), 5u);
  EXPECT_EQ(seen_in[1][3].egress_rid, 1);
  EXPECT_FALSE(seen_in[1][3].egress_rid_first);
  EXPECT_EQ(seen_in[1][3].enq_qdepth, 0u);
  EXPECT_EQ(seen_in[1][3].deq_qdepth, kFrameBytes);
  EXPECT_EQ(seen_in[1][3].deq_timedelta, kPacketTime);
  EXPECT_EQ(seen_in[1][4].enq_qdepth, kFrameBytes);
  EXPECT_EQ(seen_in[1][4].deq_timedelta, 2 * kPacketTime);
  EXPECT_EQ(seen_in[1][4].enq_tstamp, 1000);
}

TEST(Intrinsic, WithoutQueuesNothingHasWaited) {
  WatchBox box("");
  box.send(700, 2, data(2));
  box.drain();
  ASSERT_EQ(seen_in[1].size(), 2u) << "and its mirror";
  for (std::size_t i = 0; i < 2; i++) {
    const Intrinsic& seen = seen_in[1][i];
    EXPECT_EQ(seen.egress_port, i == 0 ? 1 : 0);
    EXPECT_EQ(seen.ingress_mac_tstamp, 700);
    EXPECT_EQ(seen.enq_tstamp, 700);
    EXPECT_EQ(seen.deq_timedelta, 0);
    EXPECT_EQ(seen.enq_qdepth + seen.deq_qdepth, 0u);
    EXPECT_EQ(seen.egress_rid, 0);
    EXPECT_FALSE(seen.egress_rid_first);
  }
}

}  // namespace
}  // namespace rocebox::switch_model::intrinsic_test
