// SPDX-License-Identifier: BSD-3-Clause
// READs and atomics of a queue pair that may have none under way (max_rd_atomic 0): an error, not for ever.
#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::no_reads {
namespace {

using Statuses = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;

Statuses statuses(NicBox& box) {
  box.run();
  Statuses all;
  for (const ibv_wc& wc : box.completions(0)) all.emplace_back(wc.wr_id, wc.status);
  return all;
}

TEST(NoReads, AreErrorsInTheirTurn) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    SCOPED_TRACE(opcode);
    NicBox box;
    PairOptions options;
    options.rd_atomic = 0;
    box.connect(options);
    EXPECT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 5000));
    EXPECT_EQ(0, box.post(0, 2, opcode, 0, 8));
    EXPECT_EQ(0, box.post(0, 3, IBV_WR_RDMA_WRITE, 0, 64));
    EXPECT_EQ(statuses(box), (Statuses{{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_LOC_QP_OP_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
    EXPECT_EQ(box.sides[0].qp->attributes.state, IBV_QPS_ERR);
    EXPECT_EQ(box.count(1, "rx_read_requests") + box.count(1, "rx_atomic_requests"), 0u);
  }
}

// In SQD it may be changed: READs that have begun are asked for again and end, later ones are errors.
TEST(NoReads, ThoseThatHaveBegunGoToTheirEnd) {
  NicBox box("rate: 100Gbps", "delay: 100us\nforward: {events: [{opcode: 0x0c, do: drop, occurrence: 1}]}");
  box.connect();
  box.run(kMillisecond);  // the way is known
  EXPECT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64));
  EXPECT_EQ(0, box.post(0, 2, IBV_WR_RDMA_READ, 0, 64));
  EXPECT_EQ(0, box.post(0, 3, IBV_WR_RDMA_READ, 0, 64));
  box.run(10 * kMicrosecond);
  box.on(0, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_SQD;
    ASSERT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
    ASSERT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC));
    a.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
  });
  EXPECT_EQ(statuses(box), (Statuses{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
  EXPECT_EQ(0, box.post(0, 4, IBV_WR_RDMA_READ, 0, 64));
  EXPECT_EQ(statuses(box).back(), (Statuses::value_type{4, IBV_WC_LOC_QP_OP_ERR}));
}

}  // namespace
}  // namespace rocebox::test::no_reads
