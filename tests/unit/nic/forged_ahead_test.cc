// SPDX-License-Identifier: BSD-3-Clause
// Forged packets where WRITEs are placed as they come: what came ahead of its turn, and may not have it then.
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

// A WRITE with immediate of which the PSN lies in the midst of a SEND would take that one's receive request, which
// would complete twice and be written once it is the host's again.
TEST(Forged, AWriteThatCameAheadIsRefusedInTheMidstOfASend) {
  for (const char* recovery : {"rnic_sr", "selective", "timeout_only"}) {
    SCOPED_TRACE(recovery);
    Victim victim(IBV_QPT_RC, std::string("rate: 100Gbps\nrecovery: ") + recovery, 4);
    victim.post_receive(7, 0, 4096);
    victim.post_receive(8, 4096, 4096);
    PacketSpec spec = victim.good();
    spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    spec.psn = kPsn + 1;
    spec.virtual_address += 8192;
    victim.inject(victim.build(spec));
    spec = victim.good();
    spec.opcode = IBV_OPCODE_RC_SEND_FIRST;
    spec.payload = std::span(victim.payload).first(kMtu);
    victim.inject(victim.build(spec));
    spec.opcode = IBV_OPCODE_RC_SEND_LAST;
    spec.psn = kPsn + 2;
    victim.inject(victim.build(spec));
    EXPECT_EQ(victim.statuses(), (Victim::Statuses{{7, IBV_WC_WR_FLUSH_ERR}}));
    EXPECT_EQ(victim.box.count(1, "resp_invalid_requests"), 1u);
    EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
    EXPECT_EQ(victim.box.sides[1].memory[kMtu], 0) << "nothing behind the first packet";
  }
}

// A WRITE with immediate that came ahead and found no receive request in its turn. What comes in its place need not be
// what was placed.
struct NotReady : Victim {
  explicit NotReady(const char* recovery) : Victim(IBV_QPT_RC, std::string("rate: 100Gbps\nrecovery: ") + recovery) {
    write = good();
    write.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    write.psn = kPsn + 1;
    write.virtual_address += 8192;
    inject(build(write));
    inject(build(good()));
    EXPECT_EQ(box.count(1, "out_of_buffer"), 1u);
    EXPECT_EQ(byte(8192), 0xAB) << "it was placed";
    box.sides[1].memory[8192] = 1;
    post_receive(7, 0, 4096);
  }
  std::uint8_t byte(std::size_t offset) const { return box.sides[1].memory[offset]; }
  PacketSpec write;
};

TEST(Forged, WhatWasPlacedAheadIsNotPlacedAgain) {
  for (const char* recovery : {"rnic_sr", "selective", "timeout_only"}) {
    SCOPED_TRACE(recovery);
    NotReady same(recovery);
    same.inject(same.build(same.write));
    EXPECT_EQ(same.byte(8192), 1) << "the host's, who may have read it already";
    EXPECT_EQ(same.statuses(), (Victim::Statuses{{7, IBV_WC_SUCCESS}}));

    NotReady elsewhere(recovery);
    elsewhere.write.virtual_address += 4096;
    elsewhere.inject(elsewhere.build(elsewhere.write));
    EXPECT_EQ(elsewhere.byte(12288), 0xAB);
    EXPECT_EQ(elsewhere.statuses(), (Victim::Statuses{{7, IBV_WC_SUCCESS}}));

    NotReady sent(recovery);
    sent.box.sides[1].memory[0] = 1;
    sent.write.opcode = IBV_OPCODE_RC_SEND_ONLY;
    sent.inject(sent.build(sent.write));
    EXPECT_EQ(sent.byte(0), 0xAB);
    EXPECT_EQ(sent.statuses(), (Victim::Statuses{{7, IBV_WC_SUCCESS}}));

    NotReady read(recovery);
    read.write.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST;
    read.write.payload = {};
    read.inject(read.build(read.write));
    PacketSpec behind = read.good();
    behind.psn = kPsn + 2;
    behind.virtual_address += 4096;
    read.inject(read.build(behind));
    EXPECT_EQ(read.byte(4096), 0xAB);
  }
}

TEST(Forged, AReadOverWhatCameAheadIsRefused) {
  for (const char* recovery : {"rnic_sr", "selective", "timeout_only"}) {
    SCOPED_TRACE(recovery);
    Victim victim(IBV_QPT_RC, std::string("rate: 100Gbps\nrecovery: ") + recovery);
    PacketSpec spec = victim.good();
    spec.psn = kPsn + 2;
    victim.inject(victim.build(spec));
    spec = victim.good();
    spec.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST;
    spec.payload = {};
    spec.dma_length = 3 * kMtu;
    victim.inject(victim.build(spec));
    EXPECT_EQ(victim.box.count(1, "resp_invalid_requests"), 1u);
    EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
  }
}

// IRN has a NAK for each packet out of order, ConnectX one for each ePSN (Themis, 2.3): as the queue pair recovers,
// whatever its NIC's other ones do.
TEST(Forged, NaksOfCopiesAreTheQueuePairsChoice) {
  const auto naks = [](nic_model::Recovery of_queue_pair, const std::string& of_nic) {
    Victim victim(IBV_QPT_RC, "rate: 100Gbps\nrecovery: " + of_nic, 0, nic_model::LossRecovery{of_queue_pair});
    PacketSpec ahead = victim.good();
    ahead.psn = kPsn + 1;
    for (int i = 0; i < 3; i++) victim.inject(victim.build(ahead));
    victim.box.run(kMillisecond);  // no NAK takes another one's place, not even in the same instant
    EXPECT_EQ(victim.box.count(1, "duplicate_request"), 2u);
    return victim.box.count(1, "naks_sent");
  };
  for (const char* nic : {"go_back_n", "rnic_sr", "selective", "timeout_only"}) {
    SCOPED_TRACE(nic);
    EXPECT_EQ(naks(nic_model::Recovery::kSelective, nic), 3u);
    EXPECT_EQ(naks(nic_model::Recovery::kRnicSr, nic), 1u);
    EXPECT_EQ(naks(nic_model::Recovery::kTimeoutOnly, nic), 0u);
  }
}

// Two gaps, of which the first closes: nothing has asked for the second yet, and then only a copy comes.
TEST(Forged, ACopyBehindAGapThatHasHadNoNakBringsOneIfTheNicSaysSo) {
  for (const bool naks_copies : {false, true}) {
    SCOPED_TRACE(naks_copies);
    Victim victim(IBV_QPT_RC,
                  std::string("rate: 100Gbps\nrecovery: rnic_sr\nnak_copies: ") + (naks_copies ? "true" : "false"));
    PacketSpec write = victim.good();
    for (const std::uint32_t psn : {kPsn + 1, kPsn + 3, kPsn, kPsn + 3, kPsn + 3}) {
      write.psn = psn;
      victim.inject(victim.build(write));
      victim.box.run(kMillisecond);
    }
    EXPECT_EQ(victim.box.count(1, "duplicate_request"), 2u);
    EXPECT_EQ(victim.box.count(1, "naks_sent"), naks_copies ? 2u : 1u);
  }
}

}  // namespace
}  // namespace rocebox::test::forged
