// SPDX-License-Identifier: BSD-3-Clause
// Receive requests that cannot take what comes: who drops a message for it, and whose queue pair fails (IB
// specification, volume 1, 9.9.3). tests/conformance has the same packet by packet.
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

// A SEND or datagram of so many bytes, and the room that it needs.
PacketSpec send_of(const Victim& victim, std::uint32_t bytes, std::uint32_t psn) {
  PacketSpec spec = victim.good();
  const bool is_datagram = victim.box.sides[1].qp->is(IBV_QPT_UD);
  spec.opcode = is_datagram ? IBV_OPCODE_UD_SEND_ONLY : IBV_OPCODE_UC_SEND_ONLY;
  spec.psn = psn;
  spec.payload = std::span(victim.payload).first(bytes);
  return spec;
}
std::uint32_t room_of(ibv_qp_type type, std::uint32_t bytes) { return bytes + (type == IBV_QPT_UD ? 40 : 0); }

// Class D: a stranger who has the Q_Key takes nothing away.
TEST(ReceiveErrors, AnUnreliableMessageWithoutRoomIsDroppedAndItsRequestStays) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    SCOPED_TRACE(type);
    Victim victim(type);
    victim.post_receive(7, 0, room_of(type, 7));
    victim.post_receive(8, 100, room_of(type, 100));
    for (std::uint32_t i = 0; i < 3; i++) victim.inject(victim.build(send_of(victim, 8, kPsn + i)));
    EXPECT_EQ(victim.statuses(), Victim::Statuses());
    EXPECT_EQ(victim.box.count(1, "resp_local_length_error"), 3u);
    EXPECT_EQ(victim.box.count(1, "drop_invalid"), 3u);
    EXPECT_EQ(victim.box.sides[1].memory[room_of(type, 0)], 0) << "nothing was written";
    victim.inject(victim.build(send_of(victim, 7, kPsn + 3)));
    victim.inject(victim.build(send_of(victim, 8, kPsn + 4)));
    EXPECT_EQ(victim.statuses(), (Victim::Statuses{{7, IBV_WC_SUCCESS}, {8, IBV_WC_SUCCESS}}));
    EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_RTS);
  }
}

// Class E: what is shared cannot be given back.
TEST(ReceiveErrors, ASharedRequestThatIsTooShortEndsItsQueuePair) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    SCOPED_TRACE(type);
    Victim victim(type, "rate: 100Gbps", 4);
    victim.post_receive(7, 0, room_of(type, 7));
    victim.post_receive(8, 100, room_of(type, 100));
    victim.inject(victim.build(send_of(victim, 8, kPsn)));
    EXPECT_EQ(victim.statuses(), (Victim::Statuses{{7, IBV_WC_LOC_LEN_ERR}})) << "the other one is not its own";
    EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
    victim.inject(victim.build(send_of(victim, 8, kPsn + 1)));
    EXPECT_EQ(victim.box.count(1, "drop_qp_state"), 1u);
    EXPECT_EQ(victim.statuses(), Victim::Statuses());
  }
}

// Class A: of every service.
TEST(ReceiveErrors, ARequestWhoseOwnKeyIsWrongEndsItsQueuePair) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD})
    for (const std::uint32_t shared : {0u, 4u}) {
      SCOPED_TRACE(testing::Message() << type << " shared " << shared);
      Victim victim(type, "rate: 100Gbps", shared);
      victim.post_receive(7, 0, 1000, 0x5500);
      victim.post_receive(8, 0, 1000);
      victim.inject(victim.build(send_of(victim, 8, kPsn)));
      const Victim::Statuses own = {{7, IBV_WC_LOC_PROT_ERR}, {8, IBV_WC_WR_FLUSH_ERR}};
      EXPECT_EQ(victim.statuses(), shared ? Victim::Statuses{own[0]} : own);
      EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
      EXPECT_EQ(victim.box.sides[1].memory[40], 0);
    }
}

// Also where it is the sender's own, to a group that it is attached to.
TEST(ReceiveErrors, ASenderMayFailByWhatItSendsItself) {
  Victim victim(IBV_QPT_UD);
  constexpr roce::IpAddress kGroup = roce::ipv4(239, 1, 2, 3);
  victim.post_receive(7, 0, 1000, 0x5500);
  victim.box.on(1, [&](nic_model::Host& host) {
    Side& side = victim.box.sides[1];
    ASSERT_EQ(0, host.attach_mcast(*side.qp, kGroup));
    nic_model::AddressHandle to;
    ASSERT_EQ(0, host.create_ah(to, kGroup, 0, 0x1234));
    for (unsigned i = 0; i < 3; i++) ASSERT_EQ(0, post_datagram(host, side, to, 100));
  });
  victim.statuses();
  EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
  EXPECT_EQ(victim.box.sides[1].qp->requester.incomplete(), 0u);
  EXPECT_EQ(victim.box.count(1, "multicast_xmit_packets"), 1u);
}

}  // namespace
}  // namespace rocebox::test::forged
