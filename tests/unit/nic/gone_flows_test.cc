// SPDX-License-Identifier: BSD-3-Clause
// What a congestion control knew of a queue pair that is no more is not the next one's with its number.
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

// The next one does not send, and so has not begun anew for the congestion control: it answers READs alone.
TEST(GoneFlows, TheNextQueuePairsResponsesHaveNoRateOfTheOneBefore) {
  for (const std::string name : {"dcqcn", "pcc", "scr_control"}) {
    SCOPED_TRACE(name);
    Victim victim(IBV_QPT_RC, "rate: 100Gbps\ncongestion_control: " + name);
    NicBox& box = victim.box;
    PacketSpec cnp = victim.good();
    cnp.opcode = roce::kOpcodeCnp;
    cnp.payload = {};
    victim.inject(victim.build(cnp));
    ASSERT_EQ(box.count(1, "rp_cnp_handled"), 1u);
    ASSERT_GT(box.sides[1].qp->response_rate, 0) << "of the one before";
    const std::uint32_t number = box.sides[1].qp->number();
    box.disconnect();
    PairOptions options;
    options.far_stays_in_rtr = true;
    box.connect(options);
    ASSERT_EQ(box.sides[1].qp->number(), number);
    ASSERT_EQ(0, box.post(0, 1, IBV_WR_RDMA_READ, 0, 64));
    box.run(kMillisecond);
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.sides[1].qp->response_rate, 0);
  }
}

}  // namespace
}  // namespace rocebox::test::forged
