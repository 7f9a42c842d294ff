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
    for (std::uint64_t i = 0; i < 512; i++) box.post_receive(1, i, 0, 0);
  }
  nic_model::GroupWindow window() const { return {kWindow, box.sides[1].key, box.sides[1].address() + kPlace}; }
  // A packet of a message of `message` bytes.
  void send(const roce::IpAddress& from, std::uint8_t opcode, std::uint32_t psn, std::uint32_t name = kWindow,
            std::uint32_t message = 2 * kMtu) {
    roce::PacketSpec spec;
    spec.underlay.destination_mac = roce::multicast_mac(kGroup);
    spec.underlay.addresses = {from, kGroup};
    spec.opcode = opcode;
    spec.destination_qp = nic_model::kMulticastQpn;
    spec.psn = psn;
    spec.rkey = name;
    spec.dma_length = message;
    spec.immediate = psn;
    const std::vector<std::uint8_t> payload(kMtu, static_cast<std::uint8_t>(psn));
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

}  // namespace
}  // namespace rocebox::test::group_writes
