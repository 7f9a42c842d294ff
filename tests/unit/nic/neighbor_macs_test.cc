// SPDX-License-Identifier: BSD-3-Clause
// MAC addresses that no neighbour can have: a group's, everybody's, none (RFC 1812, 3.3.2).
#include <gtest/gtest.h>

#include "nic_model/connect/frames.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::neighbor_macs {
namespace {

// Side 0 asks for side 1, and nothing of its questions arrives.
class Asking : public NicBox {
 public:
  Asking() : NicBox("rate: 100Gbps", "loss: 100%") { connect(); }
  void say(std::uint16_t operation, const roce::Mac& mac) {
    PacketPtr packet = pool.allocate(sizeof(nic_model::ArpFrame));
    nic_model::write_arp(*packet, operation, mac, roce::ipv4(10, 0, 0, 2), {2, 0x72, 10, 0, 0, 1},
                         {2, 0x72, 10, 0, 0, 1}, roce::ipv4(10, 0, 0, 1));
    fabric.inject({0, 0}, packet.release());
    fabric.run(now);
  }
  bool knows() const { return sides[0].qp->path_known; }
};

TEST(NeighborMacs, WhatNobodyCanHaveIsNotLearnt) {
  for (const roce::Mac& mac : {roce::Mac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, roce::Mac{0x01, 0, 0x5E, 0, 0, 1},
                               roce::Mac{0x33, 0x33, 0, 0, 0, 1}, roce::Mac{}}) {
    SCOPED_TRACE(int{mac[0]});
    Asking box;
    for (const std::uint16_t operation : {nic_model::kArpReply, nic_model::kArpRequest}) box.say(operation, mac);
    EXPECT_FALSE(box.knows());
    EXPECT_EQ(box.count(0, "arp_replies_sent"), 0u) << "nor is it answered";
    box.say(nic_model::kArpReply, {2, 0x72, 10, 0, 0, 2});
    EXPECT_TRUE(box.knows());
    box.say(nic_model::kArpReply, mac);
    EXPECT_EQ(box.sides[0].qp->headers.destination_mac(), (roce::Mac{2, 0x72, 10, 0, 0, 2}));
  }
}

}  // namespace
}  // namespace rocebox::test::neighbor_macs
