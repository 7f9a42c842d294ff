// SPDX-License-Identifier: BSD-3-Clause
// Packets from the wire in the NIC's own name: nobody else has that name, and the peer of a loopback queue pair is not
// behind the wire.
#include "nic_model/host/connect.h"
#include "nic_model/rate/peer_messages.h"
#include "nic_model/rate/rtt.h"
#include "runtime/roce/mad.h"
#include "runtime/roce/multicast.h"
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

const roce::IpAddress kOwn = roce::ipv4(10, 0, 0, 2), kOwn6 = {0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};

// Its NIC has a queue pair that is connected to itself, too.
class Named : public Victim {
 public:
  explicit Named(const roce::IpAddress& address = kOwn)
      : Victim(IBV_QPT_RC, "rate: 100Gbps\naddress6: fd77::$"), address_(address) {
    box.on(1, [&](nic_model::Host& host) {
      own = host.create_qp(box.sides[1].qp->init);
      nic_model::ConnectOptions with;
      with.psn = kPsn;
      EXPECT_EQ(0, nic_model::connect(host, *own, {address_, own->number(), kPsn}, with));
    });
  }
  // As that queue pair would send it.
  PacketSpec own_write() const {
    PacketSpec spec = good();
    spec.underlay.addresses = {address_, address_};
    spec.underlay.ip_version = address_ == kOwn6 ? 6 : 4;
    spec.destination_qp = own->number();
    return spec;
  }
  std::uint64_t dropped() const { return box.count(1, "drop_own_address"); }
  nic_model::Qp* own = nullptr;

 private:
  const roce::IpAddress address_;
};

TEST(OwnName, AWriteIsNotTheLoopbackPeers) {
  for (const roce::IpAddress& address : {kOwn, kOwn6}) {
    SCOPED_TRACE(address == kOwn6 ? "IPv6" : "IPv4");
    Named victim(address);
    PacketSpec spec = victim.own_write();
    victim.inject(victim.build(spec));
    spec.underlay.tos = roce::kEcnCe;
    victim.inject(victim.build(spec));
    EXPECT_EQ(victim.dropped(), 2u);
    EXPECT_EQ(victim.own->responder.expected_psn(), kPsn);
    EXPECT_EQ(victim.box.sides[1].memory[0], 0);
    victim.expect_alive();
  }
}

TEST(OwnName, NorIsAResponse) {
  Named victim;
  victim.box.on(1, [&](nic_model::Host& host) {
    ibv_sge sge{victim.box.sides[1].address(), 64, victim.box.sides[1].key};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;  // for which no receive request is posted
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(0, host.post_send(*victim.own, &wr, nullptr));
  });
  PacketSpec ack = victim.own_write();
  ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  ack.payload = {};
  ack.syndrome = 0x63;
  victim.inject(victim.build(ack));
  EXPECT_EQ(victim.dropped(), 1u);
  EXPECT_EQ(victim.own->attributes.state, IBV_QPS_RTS);
}

TEST(OwnName, NorAreDatagramsOfAnyKind) {
  Named victim;
  PacketSpec mad = victim.own_write();
  mad.opcode = IBV_OPCODE_UD_SEND_ONLY;
  mad.destination_qp = roce::kGsiQpn;
  victim.inject(victim.build(mad));
  PacketSpec cnp = victim.own_write();
  cnp.opcode = roce::kOpcodeCnp;
  cnp.payload = {};
  victim.inject(victim.build(cnp));
  EXPECT_EQ(victim.dropped(), 2u);
  EXPECT_EQ(victim.box.count(1, "rp_cnp_ignored"), 0u);
  ForgedDatagram message;
  message.source = message.destination = 2;
  message.destination_port = nic_model::kPeerMessageUdpPort;
  message.payload.resize(128);
  victim.box.inject(1, message);
  EXPECT_EQ(victim.dropped(), 3u);
  EXPECT_EQ(victim.box.count(1, "drop_peer_message_damaged"), 0u);
}

// It names the queue pair that is connected to itself, whose own peer it then comes from.
TEST(OwnName, NorIsAProbeOfTheRoundTripTime) {
  Named victim;
  ForgedDatagram probe;
  probe.source = probe.destination = 2;
  probe.destination_port = nic_model::kRttUdpPort;
  probe.payload = {'R', 'B', 'R', 'T', 1, 1, 0, 0};
  probe.payload.resize(80);
  put_number(&probe.payload[8], victim.own->number(), 4);
  put_number(&probe.payload[12], victim.own->number(), 4);
  victim.box.inject(1, probe);
  EXPECT_EQ(victim.dropped(), 1u);
  EXPECT_EQ(victim.box.count(1, "rtt_responses_sent"), 0u);
  EXPECT_EQ(victim.box.count(1, "drop_rtt"), 0u);
}

// A switch that sends a group's packets back to their sender doubles them: the sender's own have come by loopback.
TEST(OwnName, NorAreCopiesThatTheWireSendsBack) {
  Victim victim(IBV_QPT_UD);
  const roce::IpAddress group = roce::ipv4(239, 1, 0, 0);
  victim.box.on(1, [&](nic_model::Host& host) { ASSERT_EQ(0, host.attach_mcast(*victim.box.sides[1].qp, group)); });
  victim.post_receive(1, 0, 4096);
  PacketSpec spec = victim.good();
  spec.underlay.destination_mac = roce::multicast_mac(group);
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 2), group};
  spec.destination_qp = nic_model::kMulticastQpn;
  victim.inject(victim.build(spec));
  EXPECT_EQ(victim.box.count(1, "drop_own_address"), 1u);
  EXPECT_TRUE(victim.statuses().empty());
}

}  // namespace
}  // namespace rocebox::test::forged
