// SPDX-License-Identifier: BSD-3-Clause
// Multicast of datagrams: groups, who gets what, and what comes back to its sender.
#include <gtest/gtest.h>

#include <cerrno>

#include "nic_model/host/connect.h"
#include "runtime/roce/multicast.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::multicast {
namespace {

constexpr roce::IpAddress kGroup = roce::ipv4(239, 129, 2, 3), kOther = roce::ipv4(224, 0, 1, 9);
constexpr roce::IpAddress kGroup6 = {0xFF, 0x1E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77, 0xAB, 0, 0, 1};
constexpr std::uint32_t kQkey = 0x1234;  // NicBox's
constexpr std::uint32_t kBytes = 600;

TEST(Multicast, AddressesAreMappedAsLinuxDoes) {
  EXPECT_EQ(roce::multicast_mac(kGroup), (roce::Mac{0x01, 0x00, 0x5E, 0x01, 0x02, 0x03})) << "23 bits";
  EXPECT_EQ(roce::multicast_mac(kGroup6), (roce::Mac{0x33, 0x33, 0xAB, 0x00, 0x00, 0x01})) << "32 bits";
  for (const char* one : {"224.0.0.1", "239.255.255.255", "ff02::1", "ff1e::77:1"})
    EXPECT_TRUE(roce::is_multicast(*roce::parse_address(one))) << one;
  for (const char* one : {"223.255.255.255", "240.0.0.1", "10.0.0.1", "fe80::1", "::"})
    EXPECT_FALSE(roce::is_multicast(*roce::parse_address(one))) << one;
}

TEST(Multicast, GroupsAreBounded) {
  nic_model::MulticastGroups groups;
  EXPECT_EQ(groups.attach(roce::ipv4(10, 0, 0, 1), 17), EINVAL);
  EXPECT_EQ(groups.detach(kGroup, 17), EINVAL);
  for (std::uint32_t qpn = 0; qpn < nic_model::kMulticastQpsMax; qpn++) EXPECT_EQ(groups.attach(kGroup, qpn), 0);
  EXPECT_EQ(groups.attach(kGroup, 1 << 20), ENOMEM);
  EXPECT_EQ(groups.attach(kGroup, 3), 0) << "it is there already";
  EXPECT_EQ(groups.members(kGroup).size(), nic_model::kMulticastQpsMax);
  for (unsigned i = 1; i < nic_model::kMulticastGroupsMax; i++)
    EXPECT_EQ(groups.attach(roce::ipv4(225, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)), 3), 0);
  EXPECT_EQ(groups.attach(kOther, 3), ENOMEM);
  groups.detach_from_all(3);
  EXPECT_EQ(groups.groups(), 1u) << "groups without members are none";
  EXPECT_EQ(groups.members(kGroup).size(), nic_model::kMulticastQpsMax - 1);
  EXPECT_EQ(groups.attach(kOther, 3), 0);
}

// Two NICs, each with the box's queue pair of datagrams; more can be made.
class MulticastBox : public NicBox {
 public:
  explicit MulticastBox(const std::string& more = "") : NicBox("rate: 100Gbps\naddress6: fd77::$" + more) {
    connect({.type = IBV_QPT_UD});
    for (unsigned side = 0; side < 2; side++)
      for (std::size_t i = 0; i < sides[side].memory.size(); i++)
        sides[side].memory[i] = static_cast<std::uint8_t>(i * 7 + side);
  }
  nic_model::Qp& make(unsigned side, std::uint32_t qkey, bool block_loopback = false) {
    nic_model::Qp* made = nullptr;
    on(side, [&](nic_model::Host& host) {
      nic_model::QpInit init = sides[side].qp->init;
      init.block_multicast_loopback = block_loopback;
      made = host.create_qp(init);
      EXPECT_EQ(0, nic_model::start_datagrams(host, *made, qkey));
    });
    return *made;
  }
  int attach(unsigned side, nic_model::Qp& qp, const roce::IpAddress& group) {
    int result = -1;
    on(side, [&](nic_model::Host& host) { result = host.attach_mcast(qp, group); });
    return result;
  }
  // Receive requests one behind the other, by `place`.
  void receive(unsigned side, nic_model::Qp& qp, std::uint64_t place) {
    on(side, [&](nic_model::Host& host) {
      ibv_sge sge{sides[side].address() + place * 1024, kBytes + 40, sides[side].key};
      ibv_recv_wr request{place, nullptr, &sge, 1};
      EXPECT_EQ(0, host.post_receive(qp, &request, nullptr));
    });
  }
  void send(unsigned side, nic_model::Qp& qp, const roce::IpAddress& group, std::uint32_t qpn = 0) {
    on(side, [&](nic_model::Host& host) {
      nic_model::AddressHandle handle;
      ASSERT_EQ(0, host.create_ah(handle, group, qpn, kQkey));
      ibv_sge sge{sides[side].address() + 500000, kBytes, sides[side].key};
      ibv_send_wr request{};
      request.opcode = IBV_WR_SEND;
      request.sg_list = &sge;
      request.num_sge = 1;
      ASSERT_EQ(0, host.post_send(qp, &request, nullptr, &handle));
    });
    run(kMillisecond);
  }
  // The queue pairs that got it since, each with the bytes that side `from` sent.
  std::vector<std::uint32_t> got(unsigned side, unsigned from) {
    std::vector<std::uint32_t> qpns;
    for (const ibv_wc& wc : std::exchange(completions(side), {})) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.byte_len, kBytes + 40);
      EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
      EXPECT_EQ(wc.src_qp, sides[from].qp->number());
      const auto at = static_cast<std::ptrdiff_t>(wc.wr_id * 1024 + 40);
      EXPECT_TRUE(std::equal(sides[from].memory.begin() + 500000, sides[from].memory.begin() + 500000 + kBytes,
                             sides[side].memory.begin() + at));
      qpns.push_back(wc.qp_num);
    }
    return qpns;
  }
};

TEST(Multicast, EachAttachedQueuePairGetsOneCopy) {
  for (const roce::IpAddress& group : {kGroup, kGroup6}) {
    MulticastBox box;
    nic_model::Qp &first = *box.sides[1].qp, &second = box.make(1, kQkey), &stranger = box.make(1, kQkey + 1);
    nic_model::Qp* const all[] = {&first, &second, &stranger};
    for (nic_model::Qp* qp : all) EXPECT_EQ(box.attach(1, *qp, group), 0);
    EXPECT_EQ(box.attach(1, second, group), 0) << "again";
    for (std::uint64_t i = 0; i < 9; i++) box.receive(1, *all[i % 3], i);
    box.send(0, *box.sides[0].qp, group);
    EXPECT_EQ(box.got(1, 0), (std::vector{first.number(), second.number()})) << "the third has another Q_Key";
    EXPECT_EQ(box.count(0, "multicast_xmit_packets"), 1u);
    EXPECT_EQ(box.count(1, "multicast_rcv_packets"), 1u);
    EXPECT_EQ(box.count(1, "multicast_copies"), 2u);
    EXPECT_EQ(box.count(1, "delivered"), 1u);
    box.on(1, [&](nic_model::Host& host) {
      EXPECT_EQ(host.detach_mcast(first, group), 0);
      EXPECT_EQ(host.detach_mcast(first, group), EINVAL);
    });
    box.send(0, *box.sides[0].qp, group);
    EXPECT_EQ(box.got(1, 0), std::vector{second.number()});
    box.on(1, [&](nic_model::Host& host) { host.destroy_qp(second); });
    box.send(0, *box.sides[0].qp, group);
    EXPECT_EQ(box.count(1, "drop_bad_qkey"), 1u) << "of those that are attached the last one's reason";
    box.on(1, [&](nic_model::Host& host) { host.destroy_qp(stranger); });
    box.send(0, *box.sides[0].qp, group);
    EXPECT_EQ(box.count(1, "drop_multicast"), 1u) << "nobody is attached any more";
    EXPECT_TRUE(box.got(1, 0).empty());
  }
}

// A NIC that has stopped neither sends nor takes, be it from itself.
TEST(Multicast, DoesNotComeBackWhileTheNicIsDown) {
  MulticastBox box("\nup: false");
  nic_model::Qp& sender = *box.sides[0].qp;
  EXPECT_EQ(box.attach(0, sender, kGroup), 0);
  box.receive(0, sender, 0);
  box.send(0, sender, kGroup);
  EXPECT_TRUE(box.got(0, 0).empty());
  EXPECT_EQ(box.count(0, "drop_tx_down"), 1u);
}

TEST(Multicast, ComesBackToTheSendersOwnNicUnlessItsQueuePairSaysNo) {
  MulticastBox box;
  nic_model::Qp &sender = *box.sides[0].qp, &beside = box.make(0, kQkey), &there = *box.sides[1].qp;
  EXPECT_EQ(box.attach(0, sender, kGroup), 0);
  EXPECT_EQ(box.attach(0, beside, kGroup), 0);
  EXPECT_EQ(box.attach(1, there, kGroup), 0);
  box.receive(0, sender, 0);
  box.receive(0, beside, 1);
  box.receive(1, there, 2);
  box.send(0, sender, kGroup);
  EXPECT_EQ(box.got(0, 0), (std::vector{sender.number(), beside.number()}));
  EXPECT_EQ(box.got(1, 0), std::vector{there.number()});
  EXPECT_EQ(box.count(0, "multicast_rcv_packets"), 0u) << "no packet came in";
  nic_model::Qp& silent = box.make(0, kQkey, true);
  box.receive(0, sender, 3);
  box.receive(1, there, 4);
  box.send(0, silent, kGroup);
  EXPECT_TRUE(box.completions(0).empty());
  EXPECT_EQ(box.completions(1).size(), 1u);
}

TEST(Multicast, MisuseIsRefusedAndStrangersAreCounted) {
  MulticastBox box;
  EXPECT_EQ(box.attach(0, *box.sides[0].qp, roce::ipv4(10, 0, 0, 2)), EINVAL);
  NicBox connected;
  connected.connect();
  connected.on(0, [&](nic_model::Host& host) { EXPECT_EQ(host.attach_mcast(*connected.sides[0].qp, kGroup), EINVAL); });
  EXPECT_EQ(box.attach(1, *box.sides[1].qp, kGroup), 0);
  box.receive(1, *box.sides[1].qp, 0);
  box.send(0, *box.sides[0].qp, kGroup, box.sides[1].qp->number());
  EXPECT_EQ(box.count(1, "drop_no_qp"), 1u) << "a group's datagrams are for QPN 0xffffff";
  box.send(0, *box.sides[0].qp, kOther);
  EXPECT_EQ(box.count(1, "drop_multicast"), 1u);
  EXPECT_TRUE(box.completions(1).empty());
}

// A program acts in a timer of its own, behind which nothing else calls the NIC: no packet comes, no program starts.
TEST(Multicast, GroupsThatATimerChangesAreReportedAtOnce) {
  NicBox box("rate: 100Gbps\ngroup_reports: new");
  box.connect({.type = IBV_QPT_UD});
  TestHost& program = *box.hosts[0];
  Timer timer;
  bool joined = false;
  program.on_alarm = [&](nic_model::Host& host, Timer&) {
    nic_model::Qp& qp = *box.sides[0].qp;
    EXPECT_EQ(joined ? host.detach_mcast(qp, kGroup) : host.attach_mcast(qp, kGroup), 0);
    joined = !joined;
  };
  const auto alarm = [&] {
    box.on(0, [&](nic_model::Host& host) { host.arm_timer(program.number, timer, host.now() + kMillisecond); });
    box.run(2 * kMillisecond);
  };
  alarm();
  EXPECT_TRUE(joined);
  EXPECT_EQ(box.count(0, "group_reports_sent"), 1u);
  box.run(2 * kSecond);
  EXPECT_EQ(box.count(0, "group_reports_sent"), 2u) << "once more, as the first may be lost (RFC 3376, 8.1)";
  EXPECT_EQ(box.count(0, "group_leaves_sent"), 0u);
  alarm();
  EXPECT_FALSE(joined);
  EXPECT_EQ(box.count(0, "group_leaves_sent"), 1u);
}

}  // namespace
}  // namespace rocebox::test::multicast
