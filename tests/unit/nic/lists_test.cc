// SPDX-License-Identifier: BSD-3-Clause
// The lists of queue pairs that have something to send: each stands in one, and once.
#include <gtest/gtest.h>

#include "nic_model/host/connect.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::ready_lists {
namespace {

using nic_model::Host;

// All packet buffers that there are.
std::vector<PacketPtr> all_of(Pool& pool) {
  std::vector<PacketPtr> all;
  for (const std::uint32_t bytes : {64u, 2048u})
    while (PacketPtr one = pool.allocate(bytes)) all.push_back(std::move(one));
  return all;
}

// What a READ's key is of is taken back, and there is no packet buffer for the NAK that ends its queue pair. That fails
// while it has its turn, and asks for another one by itself.
TEST(ReadyLists, OneThatFailsInItsTurnStandsThereOnce) {
  for (const bool loops_back : {false, true}) {
    SCOPED_TRACE(loops_back);
    NicBox box("rate: 1Gbps\nloopback: {rate: 1Gbps}");
    box.connect();
    Side& from = box.sides[1];
    Side& to = box.sides[loops_back ? 1 : 0];
    nic_model::Qp* reader = to.qp;
    std::uint32_t key = 0;
    box.on(1, [&](Host& host) {
      key = host.memory().add(from.pd, from.memory.data(), from.memory.size(), IBV_ACCESS_REMOTE_READ);
      if (!loops_back) return;
      reader = host.create_qp(from.qp->init);
      ASSERT_EQ(0, nic_model::connect(host, *reader, {roce::ipv4(10, 0, 0, 2), reader->number(), 0}, {}));
    });
    box.run(kMillisecond);  // the way is known
    box.on(loops_back ? 1 : 0, [&](Host& host) {
      for (unsigned i = 0; i < 4; i++) {  // of more packets than are under way at once
        ibv_sge sge{to.address(), 500000, to.key};
        ibv_send_wr wr{};
        wr.opcode = IBV_WR_RDMA_READ;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.wr.rdma.remote_addr = from.address() + 500000;
        wr.wr.rdma.rkey = key;
        ASSERT_EQ(0, host.post_send(*reader, &wr, nullptr));
      }
    });
    box.run(100 * kMicrosecond);
    box.on(1, [&](Host& host) { EXPECT_TRUE(host.memory().remove(key)); });
    {
      const std::vector<PacketPtr> taken = all_of(box.pool);
      box.run(100 * kMicrosecond);
    }
    box.run(kSecond);
    EXPECT_EQ(box.count(1, "naks_sent"), 1u);
  }
}

// In SQD its peer changes from one behind the wire to its own NIC, or back, while it waits for its turn.
TEST(ReadyLists, ANewAddressLeadsToTheOtherList) {
  for (const bool to_itself : {false, true}) {
    SCOPED_TRACE(to_itself);
    NicBox box("rate: 100Mbps\nloopback: {rate: 100Mbps}\nwindow: 4096");
    box.connect();
    nic_model::Qp* qp = nullptr;
    const auto address = [](bool is_own) { return roce::ipv4(10, 0, 0, is_own ? 1 : 2); };
    box.on(0, [&](Host& host) {
      qp = host.create_qp(box.sides[0].qp->init);
      ASSERT_EQ(0, nic_model::connect(host, *qp, {address(!to_itself), box.sides[1].qp->number(), 0}, {}));
      // Of more packets than are under way at once.
      ibv_sge all[3];
      for (ibv_sge& sge : all) sge = {box.sides[0].address(), 1000000, box.sides[0].key};
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      wr.sg_list = all;
      wr.num_sge = 3;
      ASSERT_EQ(0, host.post_send(*qp, &wr, nullptr));
    });
    box.run(kMillisecond);
    const std::uint64_t before = box.count(0, "tx_roce_packets");
    ASSERT_EQ(before > 0, to_itself);
    ASSERT_TRUE(qp->is_ready);
    box.on(0, [&](Host& host) {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_SQD;
      ASSERT_EQ(0, host.modify_qp(*qp, a, IBV_QP_STATE));
      a.ah_attr.is_global = 1;
      std::ranges::copy(address(to_itself), a.ah_attr.grh.dgid.raw);
      ASSERT_EQ(0, host.modify_qp(*qp, a, IBV_QP_STATE | IBV_QP_AV));
      ASSERT_EQ(qp->loops_back, to_itself);
    });
    box.run(3 * kMillisecond);
    const std::uint64_t now = box.count(0, "tx_roce_packets");
    if (to_itself)
      EXPECT_LE(now, before + 1) << "what was leaving";
    else
      EXPECT_GT(now, before + 20);
    box.on(0, [&](Host& host) { host.destroy_qp(*qp); });
  }
}

}  // namespace
}  // namespace rocebox::test::ready_lists
