// SPDX-License-Identifier: BSD-3-Clause
// As many responses wait as a responder keeps: what is refused then is counted, and what ends the queue pair is said.
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

// Its port is slow, and one READ has come again and again.
class Flooded : public Victim {
 public:
  static constexpr unsigned kReads = 400;  // more than wait
  Flooded() : Victim(IBV_QPT_RC, "rate: 1Mbps") {
    PacketSpec read = good();
    read.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST;
    read.payload = {};
    for (unsigned i = 0; i < kReads; i++) inject(build(read));
  }
  PacketSpec next() const {
    PacketSpec spec = good();
    spec.psn += 1;
    return spec;
  }
  std::uint64_t count(std::string_view name) const { return box.count(1, name); }
};

TEST(FullResponses, ANakThatEndsTheQueuePairIsStillSaid) {
  Flooded victim;
  const std::uint64_t dropped = victim.count("responses_dropped");
  EXPECT_GT(dropped, 0u);
  PacketSpec wrong = victim.next();
  wrong.rkey ^= 0x5500;
  victim.inject(victim.build(wrong));
  EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
  victim.box.run();
  EXPECT_EQ(victim.count("naks_sent"), 1u);
  EXPECT_EQ(victim.count("responses_dropped"), dropped) << "it is none of them";
  EXPECT_EQ(victim.count("tx_roce_packets"), Flooded::kReads - dropped + 1);
}

// Nobody has heard that NAK, so the gap is told of when it shows again.
TEST(FullResponses, ANakOfAGapThatFoundNoRoomIsSaidLater) {
  Flooded victim;
  PacketSpec ahead = victim.next();
  ahead.psn += 1;
  const std::uint64_t dropped = victim.count("responses_dropped");
  victim.inject(victim.build(ahead));
  EXPECT_EQ(victim.count("responses_dropped"), dropped + 1);
  victim.box.run();
  EXPECT_EQ(victim.count("naks_sent"), 0u);
  victim.inject(victim.build(ahead));
  victim.box.run();
  EXPECT_EQ(victim.count("naks_sent"), 1u);
  victim.inject(victim.build(ahead));
  victim.box.run();
  EXPECT_EQ(victim.count("naks_sent"), 1u) << "once for each PSN";
}

TEST(FullResponses, AnRnrNakThatFoundNoRoomIsSaidLater) {
  Flooded victim;
  PacketSpec send = victim.next();
  send.opcode = IBV_OPCODE_RC_SEND_ONLY;
  victim.inject(victim.build(send));
  victim.box.run();
  EXPECT_EQ(victim.count("rnr_naks_sent"), 0u);
  PacketSpec behind = send;
  behind.psn += 1;
  victim.inject(victim.build(behind));
  victim.box.run();
  EXPECT_EQ(victim.count("naks_sent"), 1u) << "what has not been said of the one before";
}

// The rest of a READ's response cannot be sent once its key is taken back: as where the key was never good, the queue
// pair ends, and what was asked for behind it gets no answer.
TEST(FullResponses, AKeyTakenBackInTheMidstOfAReadEndsTheQueuePair) {
  NicBox box("rate: 1Gbps");
  box.connect();
  for (std::uint64_t id = 1; id <= 3; id++) ASSERT_EQ(0, box.post(0, id, IBV_WR_RDMA_READ, 0, 300'000));
  box.run(3 * kMillisecond);  // one takes 2.5 ms
  ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
  box.on(1, [&](nic_model::Host& host) { EXPECT_TRUE(host.memory().remove(box.sides[1].key)); });
  box.run(kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 3u) << box.state();
  EXPECT_EQ(box.completions(0)[1].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(box.completions(0)[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(box.sides[1].qp->attributes.state, IBV_QPS_ERR);
  EXPECT_EQ(box.hosts[1]->events, std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR});
  EXPECT_EQ(box.count(1, "resp_remote_access_errors"), 1u);
  EXPECT_EQ(box.count(1, "naks_sent"), 1u);
}

}  // namespace
}  // namespace rocebox::test::forged
