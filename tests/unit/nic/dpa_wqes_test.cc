// SPDX-License-Identifier: BSD-3-Clause
// WQEs that a device program writes, whose opcodes may be any: what the NIC does with those that it has not.
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include "tests/unit/nic/dpa_kit.h"

namespace rocebox::test {
namespace {

struct Done {
  unsigned kind, opcode, syndrome, block;  // `kind`: MLX5_CQE_...
  bool operator==(const Done&) const = default;
};

class WqeBox : public DpaBox {
 public:
  explicit WqeBox(ibv_qp_type type) {
    connect_to(load_test("forms_new"), {.type = type, .handler = ""});  // a queue that nothing activates
    run(kMillisecond);
  }
  // The next block: a WQE that has `segments` of 16 bytes and signals its completion.
  std::uint8_t* write(unsigned opcode, unsigned segments) {
    auto* wqe = reinterpret_cast<std::uint8_t*>(far().shared().send_ring) + next_ * std::size_t{64};
    std::memset(wqe, 0, 64);
    auto& control = *reinterpret_cast<mlx5_wqe_ctrl_seg*>(wqe);
    control.opmod_idx_opcode = htobe32(next_++ << 8 | opcode);
    control.qpn_ds = htobe32(far().qp().number() << 8 | segments);
    control.fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
    return wqe;
  }
  // A WRITE of no bytes.
  void write_nothing() {
    auto& remote = *reinterpret_cast<mlx5_wqe_raddr_seg*>(write(MLX5_OPCODE_RDMA_WRITE, 2) + 16);
    remote.raddr = htobe64(sides[0].address());
    remote.rkey = htobe32(sides[0].key);
  }
  void ring() {
    on(1, [&](nic_model::Host& host) { host.ring_send_doorbell(far().qp(), static_cast<std::uint16_t>(next_)); });
    run(kMillisecond);
  }
  std::vector<Done> done() const {
    std::vector<Done> all;
    const auto* cqes = reinterpret_cast<const mlx5_cqe64*>(endpoints[0]->shared().cq_ring);
    for (unsigned i = 0; i < 16; i++) {
      const mlx5_cqe64& cqe = cqes[i];
      const bool failed = cqe.op_own >> 4 == MLX5_CQE_REQ_ERR;
      if (!failed && cqe.op_own >> 4 != MLX5_CQE_REQ) continue;  // none, or of its receive queue
      all.push_back({unsigned{cqe.op_own} >> 4, be32toh(cqe.sop_drop_qpn) >> 24,
                     failed ? reinterpret_cast<const mlx5_err_cqe*>(&cqe)->syndrome : 0u, be16toh(cqe.wqe_counter)});
    }
    return all;
  }
  dpa::Endpoint& far() { return *endpoints[0]; }

 private:
  std::uint32_t next_ = 0;
};

// It is done in its turn, and nothing leaves.
TEST(DpaWqes, ANopOnlyCompletes) {
  WqeBox box(IBV_QPT_RC);
  box.write(MLX5_OPCODE_NOP, 1);
  box.write_nothing();
  box.write(MLX5_OPCODE_NOP, 4);
  box.ring();
  EXPECT_EQ(box.done(), (std::vector<Done>{{MLX5_CQE_REQ, MLX5_OPCODE_NOP, 0, 0},
                                           {MLX5_CQE_REQ, MLX5_OPCODE_RDMA_WRITE, 0, 1},
                                           {MLX5_CQE_REQ, MLX5_OPCODE_NOP, 0, 2}}));
  EXPECT_EQ(box.count(0, "rx_write_requests"), 1u);
  EXPECT_EQ(box.count(0, "rx_send_requests"), 0u);
  EXPECT_EQ(box.far().qp().attributes.state, IBV_QPS_RTS);
}

// Of flexio's names: LSO, WAIT, LOCAL_MMO; masked atomics, and what is none at all.
TEST(DpaWqes, AnOpcodeThatTheNicHasNotIsAnErrorInItsTurn) {
  for (const unsigned opcode : {0x0Eu, 0x0Fu, 0x32u, 0x14u, 0x15u, 0x7Fu, 0xFFu})
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
      SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", type " << type);
      WqeBox box(type);
      ASSERT_EQ(0, box.post_receive(0, 1, 0, 100));
      box.write_nothing();
      box.ring();
      box.write_nothing();
      box.write(opcode, 4);
      box.write(MLX5_OPCODE_NOP, 1);
      box.ring();
      const std::vector<Done> done = box.done();
      ASSERT_EQ(done.size(), 4u);
      EXPECT_EQ(done[0], (Done{MLX5_CQE_REQ, MLX5_OPCODE_RDMA_WRITE, 0, 0}));
      EXPECT_EQ(done[2], (Done{MLX5_CQE_REQ_ERR, opcode, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 2}));
      EXPECT_EQ(done[3], (Done{MLX5_CQE_REQ_ERR, MLX5_OPCODE_NOP, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, 3}));
      EXPECT_EQ(box.far().qp().attributes.state, type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
      EXPECT_EQ(box.count(0, "rx_write_requests"), 2u);
      EXPECT_EQ(box.count(0, "rx_send_requests"), 0u) << "nothing goes out as a SEND";
      EXPECT_TRUE(box.completions(0).empty());
    }
}

}  // namespace
}  // namespace rocebox::test
