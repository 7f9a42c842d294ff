// SPDX-License-Identifier: BSD-3-Clause
// Windows of type 2 that work requests bind: in order with the others, and for what a region grants.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/nic/bind_kit.h"

namespace rocebox::test::binding {
namespace {

TEST(Bind, OpensAPartOfARegion) {
  Bound box;
  ASSERT_EQ(0, box.bind(1, 1000, 500));
  box.run(kMillisecond);
  ASSERT_EQ(box.completions(1).size(), 1u) << box.state();
  EXPECT_EQ(box.completions(1)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(1)[0].opcode, IBV_WC_BIND_MW);
  std::fill_n(box.sides[0].memory.begin(), 500, 0xA5);
  EXPECT_EQ(box.write(1000, 500), IBV_WC_SUCCESS);
  EXPECT_EQ(std::count(box.sides[1].memory.begin(), box.sides[1].memory.end(), 0xA5), 500);
  EXPECT_EQ(box.write(1001, 500), IBV_WC_REM_ACCESS_ERR) << "a byte too far";
}

// Its user counts from its first byte, whatever the region's addresses are.
TEST(Bind, AWindowMayBeginAtZero) {
  Bound box;
  ASSERT_EQ(0, box.bind(1, 1000, 500, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED));
  EXPECT_EQ(box.statuses(), (Bound::Statuses{{1, IBV_WC_SUCCESS}}));
  std::fill_n(box.sides[0].memory.begin(), 400, 0xA5);
  const std::uint64_t zero = 0 - box.sides[1].address();  // write() counts from the region's beginning
  EXPECT_EQ(box.write(zero + 100, 400), IBV_WC_SUCCESS);
  EXPECT_EQ(std::count(box.sides[1].memory.begin() + 1100, box.sides[1].memory.begin() + 1500, 0xA5), 400);
  EXPECT_EQ(std::count(box.sides[1].memory.begin(), box.sides[1].memory.end(), 0xA5), 400);
  EXPECT_EQ(box.write(zero + 101, 400), IBV_WC_REM_ACCESS_ERR) << "a byte too far";
}

TEST(Bind, GrantsWhatItSays) {
  for (const unsigned access : {unsigned{IBV_ACCESS_REMOTE_WRITE}, unsigned{IBV_ACCESS_REMOTE_READ}}) {
    Bound box;
    ASSERT_EQ(0, box.bind(1, 0, 4096, access));
    EXPECT_EQ(box.statuses(), (Bound::Statuses{{1, IBV_WC_SUCCESS}}));
    EXPECT_EQ(box.write(0, 64), access == IBV_ACCESS_REMOTE_WRITE ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
  }
}

// Each is done when those before it are; a WRITE that comes before the binding is refused.
TEST(Bind, IsDoneInItsTurn) {
  Bound box;
  ASSERT_EQ(0, box.post(1, 1, IBV_WR_RDMA_WRITE, 0, 1 << 19));
  ASSERT_EQ(0, box.bind(2, 0, 4096));
  ASSERT_EQ(0, box.invalidate(3));
  ASSERT_EQ(0, box.bind(4, 8192, 4096));
  EXPECT_EQ(box.sides[1].qp->requester.incomplete(), 4u);
  EXPECT_EQ(box.statuses(),
            (Bound::Statuses{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}}));
  EXPECT_EQ(box.write(8192, 64), IBV_WC_SUCCESS);
  EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR);
  Bound early;
  EXPECT_EQ(early.write(0, 64), IBV_WC_REM_ACCESS_ERR);
}

TEST(Bind, NoBytesEndIt) {
  Bound box;
  ASSERT_EQ(0, box.bind(1, 0, 4096));
  ASSERT_EQ(box.write(0, 64), IBV_WC_SUCCESS);
  const std::uint32_t bound = box.window.rkey;
  ASSERT_EQ(0, box.bind(2, 0, 0));
  EXPECT_EQ(box.statuses(), (Bound::Statuses{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  box.window.rkey = bound;
  EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR);
}

// What the request cannot have ends in a completion, and all behind it are flushed; so do UC's, whose receive queue
// goes on.
TEST(Bind, WhatIsNotGrantedIsABindError) {
  struct Row {
    const char* what;
    std::function<void(Bound&, ibv_send_wr&)> spoil;
  } const rows[] = {
      {"beyond the region", [](Bound&, ibv_send_wr& wr) { wr.bind_mw.bind_info.length = (1 << 20) + 1; }},
      {"before the region", [](Bound&, ibv_send_wr& wr) { wr.bind_mw.bind_info.addr -= 1; }},
      {"no such region", [](Bound& box, ibv_send_wr&) { box.region.lkey ^= 0x55; }},
      {"no such window", [](Bound& box, ibv_send_wr& wr) { box.window.rkey += 0x700, wr.bind_mw.rkey += 0x700; }},
      {"a window that is a region",
       [](Bound& box, ibv_send_wr& wr) { box.window.rkey = wr.bind_mw.rkey = box.sides[1].key; }},
      {"a region that no window may open",
       [](Bound& box, ibv_send_wr&) {
         nic_model::Memory& memory = box.nics[1]->host().memory();
         box.region.lkey = memory.add(box.sides[1].pd, box.sides[1].memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
       }},
      {"a region that cannot be written",
       [](Bound& box, ibv_send_wr&) {
         nic_model::Memory& memory = box.nics[1]->host().memory();
         box.region.lkey = memory.add(box.sides[1].pd, box.sides[1].memory.data(), 4096, IBV_ACCESS_MW_BIND);
       }},
      {"another domain's",
       [](Bound& box, ibv_send_wr&) {
         nic_model::Memory& memory = box.nics[1]->host().memory();
         box.region.lkey = memory.add(memory.new_domain(), box.sides[1].memory.data(), 4096,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
       }},
      {"one that is bound",
       [](Bound& box, ibv_send_wr& wr) {
         ASSERT_EQ(0, box.bind(9, 0, 4096));
         EXPECT_EQ(box.statuses(), (Bound::Statuses{{9, IBV_WC_SUCCESS}}));
         wr.bind_mw.rkey = box.next_key();
       }},
  };
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC})
    for (const Row& row : rows) {
      SCOPED_TRACE(testing::Message() << row.what << ", type " << type);
      Bound box({.type = type});
      ibv_send_wr wr = box.request(1, 0, 4096, IBV_ACCESS_REMOTE_WRITE);
      row.spoil(box, wr);
      ASSERT_EQ(0, box.send(wr));
      ASSERT_EQ(0, box.post(1, 2, IBV_WR_RDMA_WRITE, 0, 64));
      EXPECT_EQ(box.statuses(), (Bound::Statuses{{1, IBV_WC_MW_BIND_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
      EXPECT_EQ(box.sides[1].qp->attributes.state, type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
    }
}

TEST(Bind, WhatCannotBeWrittenIsEinval) {
  Bound box;
  const std::function<void(ibv_send_wr&)> rows[] = {
      [](ibv_send_wr& wr) { wr.bind_mw.mw = nullptr; }, [](ibv_send_wr& wr) { wr.bind_mw.bind_info.mr = nullptr; },
      [](ibv_send_wr& wr) { wr.bind_mw.rkey += 0x100; },
      [](ibv_send_wr& wr) { wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_LOCAL_WRITE; }};
  for (const auto& spoil : rows) {
    ibv_send_wr wr = box.request(1, 0, 4096, IBV_ACCESS_REMOTE_WRITE);
    spoil(wr);
    EXPECT_EQ(EINVAL, box.send(wr));
  }
  EXPECT_TRUE(box.statuses().empty());
  Bound datagrams({.type = IBV_QPT_UD});
  EXPECT_EQ(EINVAL, datagrams.send(datagrams.request(1, 0, 4096, IBV_ACCESS_REMOTE_WRITE)));
}

// They are longer than other requests: a queue takes fewer at once, and loses none, round and round.
TEST(Bind, AQueueTakesAsManyAsItHasRoomFor) {
  Bound box;
  box.on(1, [&](nic_model::Host& host) {
    nic_model::QpInit init;
    init.domain = box.sides[1].pd;
    init.send_cq = init.receive_cq = box.sides[1].cq;
    init.capacity = {4, 1, 1, 1, 0};
    box.sides[1].qp = host.create_qp(init);
  });
  box.make_ready(1, *box.sides[1].qp, 0x99);
  ASSERT_EQ(0, box.bind(0, 0, 64));
  ASSERT_EQ(0, box.invalidate(1));
  ASSERT_EQ(0, box.bind(2, 0, 64));
  ASSERT_EQ(ENOMEM, box.bind(3, 0, 64)) << "eight blocks";
  ASSERT_EQ(3u, box.statuses().size());
  ASSERT_EQ(0, box.invalidate(3));
  ASSERT_EQ(1u, box.statuses().size());
  std::uint64_t posted = 4, done = 4;
  for (unsigned round = 0; round < 200; round++) {
    unsigned taken = 0;
    for (unsigned i = 0; i < 5; i++) {
      const int error = i % 2 ? box.invalidate(posted) : box.bind(posted, 64 * round, 64);
      ASSERT_TRUE(error == 0 || error == ENOMEM);
      if (error) break;
      posted++, taken++;
    }
    if (taken % 2) {  // leaves it bound to nothing
      EXPECT_EQ(box.statuses().size(), taken);
      done += taken;
      ASSERT_EQ(0, box.invalidate(posted++));
      taken = 1;
    }
    for (const auto& [id, status] : box.statuses()) {
      ASSERT_EQ(status, IBV_WC_SUCCESS) << id;
      ASSERT_EQ(id, done++);
    }
    ASSERT_EQ(done, posted);
    ASSERT_GE(taken, 1u);
  }
  EXPECT_GT(posted, 400u);
}

// The number of a queue pair that is destroyed is given out again at once, in the same domain.
TEST(Bind, EndsWithItsQueuePair) {
  for (const bool is_destroyed : {true, false}) {
    SCOPED_TRACE(is_destroyed);
    Bound box;
    ASSERT_EQ(0, box.bind(1, 0, 4096));
    ASSERT_EQ(box.write(0, 64), IBV_WC_SUCCESS);
    const std::uint32_t before = box.sides[1].qp->number();
    box.on(1, [&](nic_model::Host& host) {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_RESET;
      const nic_model::QpInit init = box.sides[1].qp->init;
      if (!is_destroyed) {
        EXPECT_EQ(0, host.modify_qp(*box.sides[1].qp, a, IBV_QP_STATE));
        return;
      }
      host.destroy_qp(*box.sides[1].qp);
      box.sides[1].qp = host.create_qp(init);
    });
    ASSERT_EQ(box.sides[1].qp->number(), before);
    box.on(0, [&](nic_model::Host& host) {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
    });
    for (unsigned side = 0; side < 2; side++)
      box.make_ready(side, *box.sides[side].qp, box.sides[1 - side].qp->number());
    EXPECT_EQ(box.write(0, 64), IBV_WC_REM_ACCESS_ERR);
    ASSERT_TRUE(box.nics[1]->host().memory().find(box.window.rkey)) << "the window is still there";
    ASSERT_TRUE(box.nics[1]->host().memory().remove(box.window.rkey));
  }
}

}  // namespace
}  // namespace rocebox::test::binding
