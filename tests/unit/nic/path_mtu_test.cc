// SPDX-License-Identifier: BSD-3-Clause
// The option `mtu`: which path MTUs a port has room for, and who is told.
#include "nic_model/host/connect.h"
#include "runtime/roce/opcodes.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test::path_mtu {
namespace {

// An interface's MTU of 1500 has room for a path MTU of 1024 (Linux: iboe_get_mtu), one of 4192 for the longest.
TEST(PathMtu, WhatThePortHasNoRoomForIsRefused) {
  const std::pair<std::uint64_t, std::uint32_t> most[] = {{0, 4096},    {352, 256},   {607, 256},   {608, 512},
                                                          {1500, 1024}, {4191, 2048}, {4192, 4096}, {9000, 4096}};
  for (const auto& row : most) {
    const std::uint64_t mtu = row.first;
    const std::uint32_t path_mtu = row.second;
    NicBox box("rate: 100Gbps\nmtu: " + std::to_string(mtu));
    box.connect({.type = IBV_QPT_UD});
    EXPECT_EQ(box.sides[0].qp->attributes.path_mtu, path_mtu) << "of a datagram";
    box.on(0, [&](Host& host) {
      for (const std::uint32_t wanted : roce::kPathMtus) {
        nic_model::QpInit init = box.sides[0].qp->init;
        init.type = IBV_QPT_UC;
        Qp* qp = host.create_qp(init);
        ASSERT_NE(qp, nullptr);
        EXPECT_EQ(nic_model::connect(host, *qp, {roce::ipv4(10, 0, 0, 2), 0x99}, {.mtu = wanted}),
                  wanted <= path_mtu ? 0 : EINVAL)
            << mtu << ", " << wanted;
      }
    });
  }
}

TEST(PathMtu, ADatagramLongerThanThePortTakesFails) {
  NicBox box("rate: 100Gbps\nmtu: 1500");
  box.connect({.type = IBV_QPT_UD});
  nic_model::AddressHandle handle;
  const auto create = [&](Host& host) {
    return host.create_ah(handle, roce::ipv4(10, 0, 0, 2), box.sides[1].qp->number(), 0x1234);
  };
  box.on(0, [&](Host& host) { EXPECT_EQ(EAGAIN, create(host)) << "its MAC address is asked for"; });
  box.run(kMillisecond);
  for (const std::uint32_t bytes : {1024u, 1025u})
    box.on(0, [&](Host& host) {
      ASSERT_EQ(0, create(host));
      ASSERT_EQ(0, post_datagram(host, box.sides[0], handle, bytes));
    });
  box.run(kSecond);
  ASSERT_EQ(box.completions(0).size(), 2u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.completions(0)[1].status, IBV_WC_LOC_LEN_ERR);
}

TEST(PathMtu, AnActiveSideAsksForNoMoreThanItsPortTakes) {
  CmBox box("delay: 1us", "rate: 100Gbps\nmtu: 1500");
  ConnectionOptions active;
  active.path_mtu = 4096;
  box.establish(active);
  for (unsigned side = 0; side < 2; side++) EXPECT_EQ(box.sides[side].qp->attributes.path_mtu, 1024u) << side;
}

TEST(PathMtu, APassiveSideRejectsMoreThanItsPortTakes) {
  CmBox box("delay: 1us", "rate: 100Gbps", 1, "mtu: 1500");
  ConnectionOptions active;
  active.path_mtu = 2048;
  box.establish(active);
  EXPECT_EQ(box.last(0).type, ConnectionEventType::kRejected);
  EXPECT_EQ(box.last(0).status, 26) << "invalid path MTU (IB specification, 12.6.7.2)";
  EXPECT_TRUE(box.events(1).empty());
  active.path_mtu = 1024;
  box.connect(0, box.sides[0].qp, active);
  box.run();
  EXPECT_EQ(box.last(0).type, ConnectionEventType::kEstablished);
}

}  // namespace
}  // namespace rocebox::test::path_mtu
