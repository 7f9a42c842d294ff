// SPDX-License-Identifier: BSD-3-Clause
// The device API's names in all their forms: compiled as programs write them, and what they wrote, read by mlx5's
// structures.
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include "tests/unit/nic/dpa_kit.h"

namespace rocebox::test {
namespace {

template <class T>
const T& segment(const dpa::Endpoint& of, unsigned i) {
  return *reinterpret_cast<const T*>(of.shared().send_ring + i * 16);
}

struct Control {
  std::uint32_t opcode, index, modifier, segments, qpn;
  std::uint8_t flags;
};
Control control(const dpa::Endpoint& of, unsigned i) {
  const auto& c = segment<mlx5_wqe_ctrl_seg>(of, i);
  const std::uint32_t one = be32toh(c.opmod_idx_opcode), two = be32toh(c.qpn_ds);
  return {one & 0xFF, one >> 8 & 0xFFFF, one >> 24, two & 0x3F, two >> 8, c.fm_ce_se};
}

TEST(DpaForms, OfAllVersionsCompileAndDoTheSame) {
  for (const char* name : {"forms_old", "forms_new", "forms_both"}) {
    SCOPED_TRACE(name);
    DpaBox box;
    dpa::Process& process = box.load_test(name);
    box.connect_to(process, {});  // a queue that nothing activates
    const dpa::Endpoint& e = *box.endpoints[0];
    ASSERT_EQ(box.call(process, "forms", {e.address()}), 0u) << process.error();
    EXPECT_EQ(box.window->data()[0], 0x08);
    EXPECT_EQ(box.window->data()[15], 0x01);
    const std::uint32_t qpn = e.qp().number();
    Control c = control(e, 0);
    EXPECT_EQ(c.opcode, unsigned{MLX5_OPCODE_SEND});
    EXPECT_EQ(c.index, 5u);
    EXPECT_EQ(c.segments, 2u);
    EXPECT_EQ(c.qpn, qpn);
    EXPECT_EQ(c.flags, MLX5_WQE_CTRL_CQ_UPDATE);
    const auto& data = segment<mlx5_wqe_data_seg>(e, 1);
    EXPECT_EQ(be32toh(data.byte_count), 100u);
    EXPECT_EQ(be32toh(data.lkey), 0x1234u);
    EXPECT_EQ(be64toh(data.addr), 0x1122334455667788u);
    c = control(e, 4);
    EXPECT_EQ(c.opcode, unsigned{MLX5_OPCODE_RDMA_WRITE_IMM});
    EXPECT_EQ(c.index, 6u);  // of 16 bits
    EXPECT_EQ(c.segments, 3u);
    EXPECT_EQ(c.flags, 0);
    EXPECT_EQ(be32toh(segment<mlx5_wqe_ctrl_seg>(e, 4).imm), 77u);
    const auto& remote = segment<mlx5_wqe_raddr_seg>(e, 5);
    EXPECT_EQ(be64toh(remote.raddr), 0x8877665544332211u);
    EXPECT_EQ(be32toh(remote.rkey), 0x5678u);
    EXPECT_EQ(be32toh(segment<mlx5_wqe_inl_data_seg>(e, 6).byte_count), MLX5_INLINE_SEG | 12u);
    c = control(e, 8);
    EXPECT_EQ(c.opcode, unsigned{MLX5_OPCODE_ATOMIC_CS});
    EXPECT_EQ(c.segments, 4u);
    EXPECT_EQ(be64toh(segment<mlx5_wqe_atomic_seg>(e, 10).swap_add), 3u);
    EXPECT_EQ(be64toh(segment<mlx5_wqe_atomic_seg>(e, 10).compare), 4u);
    EXPECT_EQ(control(e, 12).opcode, unsigned{MLX5_OPCODE_SEND});
    EXPECT_EQ(control(e, 12).segments, 3u);
    const auto& ethernet = segment<mlx5_wqe_eth_seg>(e, 13);
    EXPECT_EQ(be16toh(ethernet.mss), 1000);
    EXPECT_EQ(be16toh(ethernet.inline_hdr_sz), 2);
    EXPECT_EQ(ethernet.cs_flags, MLX5_ETH_WQE_L3_CSUM);
    EXPECT_EQ(control(e, 16).opcode, unsigned{MLX5_OPCODE_RDMA_WRITE});
    EXPECT_EQ(control(e, 20).opcode, unsigned{MLX5_OPCODE_RDMA_READ});
    EXPECT_EQ(control(e, 24).opcode, unsigned{MLX5_OPCODE_ATOMIC_FA});
    EXPECT_EQ(control(e, 28).opcode, unsigned{MLX5_OPCODE_NOP});
    EXPECT_EQ(control(e, 28).segments, 1u);
  }
}

}  // namespace
}  // namespace rocebox::test
