// SPDX-License-Identifier: BSD-3-Clause
// Program `snooping`: who gets packets to groups, as reports, leaves, queries and time change that.
#include "runtime/roce/membership.h"
#include "runtime/roce/multicast.h"

#include <random>

#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::snooping_test {
namespace {

using roce::IpAddress;
using roce::Membership;
using roce::MembershipFrame;
using Kind = Membership::Kind;
using Ports = std::vector<int>;

constexpr IpAddress kGroup = roce::ipv4(239, 1, 2, 3), kOther = roce::ipv4(239, 1, 2, 4);
constexpr IpAddress kGroup6 = {0xFF, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7};
constexpr IpAddress kHost6 = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5};

// IPv4 or IPv6 as the groups are, in the newest version or an older one.
std::vector<std::uint8_t> message(Kind kind, std::vector<IpAddress> groups, bool is_mld, std::uint8_t version = 0,
                                  IpAddress source = roce::ipv4(10, 0, 0, 5)) {
  MembershipFrame frame;
  frame.kind = kind;
  frame.is_mld = is_mld;
  frame.version = version != 0 ? version : is_mld ? 2 : 3;
  frame.source_mac = {2, 0, 0, 0, 0, 5};
  frame.source = is_mld ? kHost6 : source;
  frame.groups = groups;
  frame.response_time = kSecond;
  std::vector<std::uint8_t> bytes(roce::kMembershipBytesMax);
  bytes.resize(roce::write_membership(bytes.data(), frame));
  return bytes;
}

roce::PacketSpec data_to(const IpAddress& group) {
  roce::PacketSpec spec;
  spec.underlay.ip_version = roce::is_ipv4(group) ? 4 : 6;
  spec.underlay.addresses = {roce::is_ipv4(group) ? roce::ipv4(10, 0, 0, 9) : kHost6, group};
  spec.underlay.destination_mac = roce::multicast_mac(group);
  spec.opcode = IBV_OPCODE_UD_SEND_ONLY;
  return spec;
}

struct Box : test::SwitchBox {
  explicit Box(const std::string& options)
      : SwitchBox(("programs: [forward, snooping]\nsnooping: {" + options + "}\n").c_str()) {}
  Ports data(const IpAddress& group, Port in = 3) {
    ports();
    send(now += kMicrosecond, in, data_to(group));
    Ports all = ports();
    std::ranges::sort(all);
    return all;
  }
  Ports say(Port in, const std::vector<std::uint8_t>& frame) {
    ports();
    send(now += kMicrosecond, in, frame);
    run_until(now);
    Ports all = ports();
    std::ranges::sort(all);
    return all;
  }
  std::uint64_t count(std::string_view name) { return stats.read(std::string(name)); }
  void wait(Nanos time) { run_until(now += time); }
  Nanos now = kSecond;
};

TEST(Snooping, MembersAloneGetAGroupsPackets) {
  for (const auto& [group, versions] :
       {std::pair{kGroup, std::vector<std::uint8_t>{2, 3}}, {kGroup6, std::vector<std::uint8_t>{1, 2}}})
    for (const std::uint8_t version : versions) {
      const bool is_mld = !roce::is_ipv4(group);
      Box box("");
      EXPECT_EQ(box.data(group), (Ports{0, 1, 2})) << "flooded: nobody is known";
      EXPECT_EQ(box.say(1, message(Kind::kReport, {group}, is_mld, version)), Ports{}) << "there is no router";
      EXPECT_EQ(box.data(group), Ports{1});
      EXPECT_EQ(box.data(group, 1), Ports{}) << "its only member sent it";
      EXPECT_EQ(box.say(0, message(Kind::kQuery, {}, is_mld)), (Ports{1, 2, 3})) << "queries go everywhere";
      EXPECT_EQ(box.data(group), (Ports{0, 1})) << "to the router, too";
      EXPECT_EQ(box.say(2, message(Kind::kReport, {group}, is_mld, version)), Ports{0})
          << "reports to the router alone";
      EXPECT_EQ(box.data(group), (Ports{0, 1, 2}));
      EXPECT_EQ(box.say(1, message(Kind::kLeave, {group}, is_mld, version)), Ports{0});
      EXPECT_EQ(box.data(group), (Ports{0, 1, 2})) << "until others behind that port had time to speak";
      box.wait(2 * kSecond);
      EXPECT_EQ(box.data(group), (Ports{0, 2}));
    }
}

TEST(Snooping, UnknownGroupsGoWhereTheOptionSays) {
  EXPECT_EQ(Box("unknown: routers, router_ports: [p2]").data(kGroup), Ports{2});
  EXPECT_EQ(Box("unknown: routers").data(kGroup), Ports{});
  EXPECT_EQ(Box("unknown: drop, router_ports: [p2]").data(kGroup), Ports{});
  EXPECT_EQ(Box("unknown: drop").data(roce::ipv4(224, 0, 0, 251)), (Ports{0, 1, 2})) << "always flooded";
}

TEST(Snooping, MembershipsAge) {
  Box box("query_interval: 10s, response_time: 1s");
  box.say(1, message(Kind::kReport, {kGroup, kOther}, false));
  box.wait(15 * kSecond);
  box.say(1, message(Kind::kReport, {kOther}, false));
  box.wait(6 * kSecond);  // 21 s behind the first
  EXPECT_EQ(box.data(kGroup), (Ports{0, 1, 2})) << "unknown again";
  EXPECT_EQ(box.data(kOther), Ports{1});
  box.wait(16 * kSecond);
  EXPECT_EQ(box.data(kOther), (Ports{0, 1, 2}));
  EXPECT_EQ(box.count("memberships_ended"), 2u);
}

TEST(Snooping, FastLeaveEndsAtOnceAndAReportInTimeStays) {
  Box fast("fast_leave: true");
  fast.say(1, message(Kind::kReport, {kGroup}, false));
  fast.say(2, message(Kind::kReport, {kGroup}, false));
  fast.say(1, message(Kind::kLeave, {kGroup}, false));
  EXPECT_EQ(fast.data(kGroup), Ports{2});
  Box slow("");
  slow.say(1, message(Kind::kReport, {kGroup}, false));
  slow.say(1, message(Kind::kLeave, {kGroup}, false));
  slow.wait(kSecond);
  slow.say(1, message(Kind::kReport, {kGroup}, false));
  slow.wait(3 * kSecond);
  EXPECT_EQ(slow.data(kGroup), Ports{1});
}

TEST(Snooping, TheQuerierAsksAndGivesWay) {
  Box box("querier: true, querier_address: 10.0.0.100, query_interval: 8s, response_time: 1s");
  EXPECT_EQ(box.say(1, message(Kind::kReport, {kGroup}, false)), (Ports{0, 0, 1, 1, 2, 2, 3, 3})) << "of both families";
  box.wait(2 * kSecond);
  EXPECT_EQ(box.ports().size(), 8u) << "the second one of the start";
  box.wait(8 * kSecond);
  EXPECT_EQ(box.ports().size(), 8u);
  box.say(1, message(Kind::kReport, {kGroup}, false));
  EXPECT_EQ(box.say(1, message(Kind::kLeave, {kGroup}, false)), Ports{1}) << "is there nobody else?";
  box.wait(kSecond);
  EXPECT_EQ(box.ports(), Ports{1}) << "and again, as one may be lost";
  // One with a higher address does not matter; one with a lower does, for 16.5 s.
  box.say(2, message(Kind::kQuery, {}, false, 3, roce::ipv4(10, 0, 0, 200)));
  box.wait(7 * kSecond);
  EXPECT_EQ(box.ports().size(), 8u);
  box.say(2, message(Kind::kQuery, {}, false, 3, roce::ipv4(10, 0, 0, 7)));
  box.wait(16 * kSecond);
  EXPECT_EQ(box.ports().size(), 8u) << "MLD's alone, twice";
  box.wait(kSecond);
  EXPECT_EQ(box.ports().size(), 4u) << "the other one is silent";
}

TEST(Snooping, BadMessagesAreCountedAndActedUponByNobody) {
  struct Row {
    std::string counter;
    std::function<void(std::vector<std::uint8_t>&)> spoil;
    bool is_mld;
  };
  const std::vector<Row> rows = {
      {"drop_membership_checksum", [](auto& f) { f[f.size() - 1] ^= 1; }, false},
      {"drop_membership_checksum", [](auto& f) { f[f.size() - 1] ^= 1; }, true},
      {"drop_membership_hop_limit", [](auto& f) { f[14 + 7] = 2; }, true},
      {"drop_membership_length", [](auto& f) { f.resize(f.size() - 3); }, true},
  };
  for (const Row& row : rows) {
    Box box("unknown: drop");
    std::vector<std::uint8_t> frame = message(Kind::kReport, {row.is_mld ? kGroup6 : kGroup}, row.is_mld);
    row.spoil(frame);
    EXPECT_EQ(box.say(1, frame), Ports{});
    EXPECT_EQ(box.count(row.counter), 1u) << row.counter;
    EXPECT_EQ(box.data(row.is_mld ? kGroup6 : kGroup), Ports{});
  }
  // A record that is no group's; a number of records that is a lie; right checksums both.
  const auto with_sum = [](std::vector<std::uint8_t> frame) {
    frame[40] = frame[41] = 0;
    std::uint32_t sum = 0;
    for (std::size_t i = 38; i < frame.size(); i += 2) sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
    sum = (sum & 0xFFFF) + (sum >> 16);
    frame[40] = static_cast<std::uint8_t>(~sum >> 8), frame[41] = static_cast<std::uint8_t>(~sum);
    return frame;
  };
  std::vector<std::uint8_t> frame = message(Kind::kReport, {kGroup}, false);
  frame[45]++;
  Box box("");
  box.say(1, with_sum(frame));
  EXPECT_EQ(box.count("drop_membership_length"), 1u);
  frame[45]--;
  frame[50] = 10;
  box.say(1, with_sum(frame));
  EXPECT_EQ(box.count("drop_membership_address"), 1u);
}

TEST(Snooping, FullTablesAreCounted) {
  Box box("groups: 2");
  box.say(1, message(Kind::kReport, {kGroup, kOther, roce::ipv4(239, 9, 9, 9)}, false));
  EXPECT_EQ(box.count("groups_full"), 1u);
  EXPECT_EQ(box.data(kOther), Ports{1});
  EXPECT_EQ(box.data(roce::ipv4(239, 9, 9, 9)), (Ports{0, 1, 2})) << "as a group that nobody has joined";
}

// Random bytes in place of a message, and random cuts of right ones: nothing is read beyond what is held, which the
// sanitizers see, and what is taken for a report names groups only.
TEST(Snooping, ReadsAnyBytes) {
  std::minstd_rand random(3);
  Pool pool(test::kPoolSizes);
  unsigned read = 0;
  for (unsigned i = 0; i < 20'000; i++) {
    const bool is_mld = i % 2;
    std::vector<std::uint8_t> frame =
        message(i % 3 ? Kind::kReport : Kind::kQuery,
                i % 3 ? std::vector{is_mld ? kGroup6 : kGroup} : std::vector<IpAddress>{}, is_mld);
    for (unsigned edits = random() % 4; edits > 0; edits--)
      frame[14 + random() % (frame.size() - 14)] = static_cast<std::uint8_t>(random());
    if (i % 5 == 0) frame.resize(14 + random() % (frame.size() - 13));
    PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(frame.size()));
    std::ranges::copy(frame, packet->data());
    roce::parse(*packet);
    const Membership message = roce::read_membership(*packet);
    read += message.kind != Kind::kNone && message.kind != Kind::kBad;
    roce::for_each_group(*packet, message,
                         [](const IpAddress& group, bool) { EXPECT_TRUE(roce::is_multicast(group)); });
  }
  EXPECT_GT(read, 2000u);
}

}  // namespace
}  // namespace rocebox::switch_model::snooping_test
