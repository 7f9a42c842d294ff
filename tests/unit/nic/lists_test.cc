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

}  // namespace
}  // namespace rocebox::test::ready_lists
