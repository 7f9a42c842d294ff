// SPDX-License-Identifier: BSD-3-Clause
// WRITEs to a group, an extension: forged packets of sources that nobody knows must not keep those of members away.
#include <gtest/gtest.h>

#include "runtime/roce/build.h"
#include "runtime/roce/multicast.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::group_writes {
namespace {

constexpr roce::IpAddress kGroup = roce::ipv4(239, 1, 0, 0);
constexpr std::uint32_t kMtu = 1024, kWindow = 0x77, kUnknown = 0x78;
constexpr std::uint64_t kPlace = 8192;  // of the window in the receiver's memory

roce::IpAddress source(unsigned number) {
  return roce::ipv4(10, 1, static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number));
}

// The second NIC of two has a queue pair in the group; packets are put before it.
class Member {
 public:
  Member() {
    PairOptions options;
    options.type = IBV_QPT_UC;
    options.receive_wr = 512;
    box.connect(options);
    box.on(1, [this](nic_model::Host& host) {
      ASSERT_EQ(0, host.attach_mcast(*box.sides[1].qp, kGroup));
      ASSERT_EQ(0, host.set_group_window(*box.sides[1].qp, window()));
    });
    for (std::uint64_t i = 0; i < 512; i++) box.post_receive(1, i, 0, 2 * kMtu);
  }
  nic_model::GroupWindow window() const { return {kWindow, box.sides[1].key, box.sides[1].address() + kPlace}; }
  // A packet of a message of `message` bytes.
  void send(const roce::IpAddress& from, std::uint8_t opcode, std::uint32_t psn, std::uint32_t name = kWindow,
            std::uint32_t message = 2 * kMtu, std::uint64_t offset = 0) {
    roce::PacketSpec spec;
    spec.underlay.destination_mac = roce::multicast_mac(kGroup);
    spec.underlay.addresses = {from, kGroup};
    spec.opcode = opcode;
    spec.destination_qp = nic_model::kMulticastQpn;
    spec.psn = psn;
    spec.virtual_address = offset;
    spec.rkey = name;
    spec.dma_length = message;
    spec.immediate = psn;
    inject(spec);
  }
  // Of a SEND of the queue pair's own peer.
  void send_by_peer(std::uint8_t opcode, std::uint32_t psn) {
    roce::PacketSpec spec;
    spec.underlay.destination_mac = {2, 0x72, 10, 0, 0, 2};
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    spec.opcode = opcode;
    spec.destination_qp = box.sides[1].qp->number();
    spec.psn = psn;
    inject(spec);
  }
  void inject(roce::PacketSpec& spec) {
    const std::vector<std::uint8_t> payload(kMtu, static_cast<std::uint8_t>(spec.psn));
    spec.payload = payload;
    PacketPtr packet = box.pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    std::vector<Packet> one = {packet.release()};
    box.fabric.inject({1, 0}, one);
    box.fabric.run(box.now);
  }
  void send_first(const roce::IpAddress& from, std::uint32_t psn, std::uint32_t name = kWindow) {
    send(from, IBV_OPCODE_UC_RDMA_WRITE_FIRST, psn, name);
  }
  void send_last(const roce::IpAddress& from, std::uint32_t psn) {
    send(from, IBV_OPCODE_UC_RDMA_WRITE_LAST_WITH_IMMEDIATE, psn);
  }
  void send_only(const roce::IpAddress& from, std::uint32_t psn, std::uint32_t name = kWindow) {
    send(from, IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, psn, name, kMtu);
  }
  // Messages that have come whole since.
  std::size_t came() {
    box.run(kMillisecond);
    return std::exchange(box.completions(1), {}).size();
  }
  std::uint8_t byte(std::uint64_t offset) const { return box.sides[1].memory[kPlace + offset]; }
  std::uint64_t count(const char* name) const { return box.count(1, name); }

  NicBox box;
};

TEST(GroupWrites, MessagesOfSeveralPacketsComeWholeOrNotAtAll) {
  Member member;
  member.send_first(source(1), 5);
  member.send_first(source(2), 9);
  member.send_last(source(1), 6);
  EXPECT_EQ(member.came(), 1u);
  EXPECT_EQ(member.byte(0), 9) << "both write there, the second behind the first";
  EXPECT_EQ(member.byte(kMtu), 6);
  member.send_last(source(2), 11);  // 10 is missing
  member.send_last(source(2), 10);
  EXPECT_EQ(member.came(), 0u);
  EXPECT_EQ(member.count("drop_message"), 2u);
  EXPECT_EQ(member.count("out_of_sequence"), 1u) << "of what comes behind it nothing is known any more";
  member.send_first(source(3), 20);
  member.send_only(source(3), 30);
  member.send_last(source(3), 21);
  EXPECT_EQ(member.came(), 1u) << "the message of one packet; what was begun before it is lost";
  EXPECT_EQ(member.count("drop_message"), 3u);
}

TEST(GroupWrites, SourcesThatKnowNoWindowTakeNoRoom) {
  Member member;
  const unsigned forged = 3 * nic_model::kGroupSourcesMax;
  for (unsigned i = 0; i < forged; i++) member.send_first(source(i), i, kUnknown);
  for (unsigned i = 0; i < forged; i++) member.send_last(source(i), i + 1);
  member.send_only(source(0), 1, kUnknown);
  EXPECT_EQ(member.count("drop_group_window"), forged + 1u);
  EXPECT_EQ(member.count("drop_message"), forged);
  EXPECT_EQ(member.came(), 0u);
  EXPECT_EQ(member.byte(0), 0);
  member.send_first(source(50000), 5);
  member.send_last(source(50000), 6);
  EXPECT_EQ(member.came(), 1u);
}

// Who knows the window's name is a member, for all that a NIC can tell: what such sources begin is bounded, is no
// hindrance to messages of one packet, and is over when the window goes.
TEST(GroupWrites, SourcesThatEndNothingAreBounded) {
  Member member;
  for (unsigned i = 0; i < nic_model::kGroupSourcesMax; i++) member.send_first(source(i), i);
  EXPECT_EQ(member.count("drop_group_sources"), 0u);
  member.send_first(source(50000), 5);
  EXPECT_EQ(member.count("drop_group_sources"), 1u);
  member.send_last(source(50000), 6);
  EXPECT_EQ(member.count("drop_message"), 1u);
  member.send_only(source(50000), 7);
  EXPECT_EQ(member.came(), 1u);
  member.send_last(source(3), 4);
  EXPECT_EQ(member.came(), 1u) << "and one of those goes on";
  member.send_first(source(50000), 8);
  member.send_last(source(50000), 9);
  EXPECT_EQ(member.came(), 1u) << "in its place";
  member.box.on(1, [&](nic_model::Host& host) {
    host.clear_group_window(*member.box.sides[1].qp, kWindow);
    ASSERT_EQ(0, host.set_group_window(*member.box.sides[1].qp, member.window()));
  });
  for (unsigned i = 0; i < 3; i++) member.send_last(source(10 + i), 11 + i);
  EXPECT_EQ(member.came(), 0u);
  for (unsigned i = 0; i < nic_model::kGroupSourcesMax; i++) member.send_first(source(60000 + i), i);
  EXPECT_EQ(member.count("drop_group_sources"), 1u) << "none more";
}

// As any WRITE does, whatever right its region has.
TEST(GroupWrites, NeedTheQueuePairsRight) {
  Member member;
  member.box.on(1, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    ASSERT_EQ(0, host.modify_qp(*member.box.sides[1].qp, a, IBV_QP_ACCESS_FLAGS));
  });
  member.send_only(source(1), 5);
  member.send_first(source(2), 6);
  member.send_last(source(2), 7);
  EXPECT_EQ(member.came(), 0u);
  EXPECT_EQ(member.byte(0), 0);
  EXPECT_EQ(member.count("drop_invalid"), 2u);
  EXPECT_EQ(member.count("drop_message"), 1u);
}

// An offset counts from the window's begin on; what lies before it is not the window's.
TEST(GroupWrites, NothingLiesBeforeTheWindow) {
  Member member;
  for (const std::uint64_t offset : {std::uint64_t{0} - kMtu, std::uint64_t{0} - 1, UINT64_MAX / 2})
    member.send(source(1), IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 5, kWindow, kMtu, offset);
  EXPECT_EQ(member.came(), 0u);
  EXPECT_EQ(member.count("drop_invalid"), 3u);
  EXPECT_EQ(member.box.sides[1].memory[kPlace - kMtu], 0);
  EXPECT_EQ(member.box.sides[1].memory[kPlace - 1], 0);
}

// It takes the receive request that a SEND had taken: one request has one completion, and that SEND is lost.
TEST(GroupWrites, ThoseThatCompleteEndASendInItsMidst) {
  Member member;
  const std::uint32_t psn = PairOptions().psn;
  member.send_by_peer(IBV_OPCODE_UC_SEND_FIRST, psn);
  member.send_only(source(1), 5);
  member.send_by_peer(IBV_OPCODE_UC_SEND_LAST, psn + 1);
  member.box.run(kMillisecond);
  ASSERT_EQ(member.box.completions(1).size(), 1u);
  EXPECT_EQ(member.box.completions(1)[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(member.box.completions(1)[0].wr_id, 0u);
  EXPECT_EQ(member.count("drop_message"), 1u);
  member.came();
  member.send_by_peer(IBV_OPCODE_UC_SEND_FIRST, psn + 2);
  member.send_by_peer(IBV_OPCODE_UC_SEND_LAST, psn + 3);
  member.box.run(kMillisecond);
  ASSERT_EQ(member.box.completions(1).size(), 1u) << "the next one comes whole";
  EXPECT_EQ(member.box.completions(1)[0].wr_id, 1u);
}

// Others leave a SEND alone.
TEST(GroupWrites, ThoseThatAreInTheirMidstEndNoSend) {
  Member member;
  const std::uint32_t psn = PairOptions().psn;
  member.send_by_peer(IBV_OPCODE_UC_SEND_FIRST, psn);
  member.send_first(source(1), 5);
  member.send_by_peer(IBV_OPCODE_UC_SEND_LAST, psn + 1);
  member.send_last(source(1), 6);
  member.box.run(kMillisecond);
  ASSERT_EQ(member.box.completions(1).size(), 2u);
  EXPECT_EQ(member.box.completions(1)[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(member.box.completions(1)[1].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(member.box.completions(1)[1].wr_id, 1u);
}

}  // namespace
}  // namespace rocebox::test::group_writes
