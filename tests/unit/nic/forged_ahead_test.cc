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

}  // namespace
}  // namespace rocebox::test::forged
