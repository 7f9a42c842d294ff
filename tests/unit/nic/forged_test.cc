// SPDX-License-Identifier: BSD-3-Clause
// Forged packets: each kind ends in the counter that is named for it, and does no more than the IB specification lets
// it do. nic_model/README.md has the table; tests/conformance says what is answered.
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "nic_model/connect/frames.h"
#include "nic_model/rate/dcqcn.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/roce/mad.h"
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

struct Row {
  const char *name, *counter;
  std::function<void(PacketSpec&, Victim&)> forge;
  std::function<void(Packet)> spoil = {};  // the built packet
};
const Row kHarmless[] = {
    {"a wrong ICRC", "rx_icrc_encapsulated", [](PacketSpec&, Victim&) {},
     [](Packet p) { p.data()[p.size() - 1] ^= 1; }},
    {"a queue pair that there is not", "drop_no_qp", [](PacketSpec& s, Victim&) { s.destination_qp += 7; }},
    {"another P_Key", "drop_bad_pkey", [](PacketSpec& s, Victim&) { s.pkey = 0x8001; }},
    {"another service", "drop_wrong_service", [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY; }},
    {"a stranger's address", "drop_wrong_peer",
     [](PacketSpec& s, Victim&) { s.underlay.addresses.source = roce::ipv4(10, 0, 0, 9); }},
    {"another's MAC address", "drop_not_for_us", [](PacketSpec& s, Victim&) { s.underlay.destination_mac[5] = 9; }},
    {"another's IP address", "drop_not_for_us",
     [](PacketSpec& s, Victim&) { s.underlay.addresses.destination = roce::ipv4(10, 0, 0, 9); }},
    {"a transport version that there is not", "drop_malformed", [](PacketSpec&, Victim&) {},
     [](Packet p) { p.data()[14 + 20 + 8 + 1] |= 1; }},
    {"an opcode that there is not", "drop_malformed", [](PacketSpec& s, Victim&) { s.opcode = 0x19; }},
    {"more padding than payload", "drop_malformed", [](PacketSpec& s, Victim&) { s.payload = {}, s.dma_length = 0; },
     [](Packet p) { p.data()[14 + 20 + 8 + 1] |= 0x30; }},
    {"a packet that was cut", "drop_truncated", [](PacketSpec&, Victim&) {},
     [](Packet p) { rte_pktmbuf_trim(p.mbuf(), 8); }},
    {"TCP", "drop_no_protocol", [](PacketSpec&, Victim&) {},
     [](Packet p) {
       p.header<roce::Ipv4>(14)->protocol = 6;
       roce::store_ipv4_checksum(*p.header<roce::Ipv4>(14));
     }},
    {"an ICMP message with a wrong checksum", "drop_checksum", [](PacketSpec&, Victim&) {},
     [](Packet p) {
       p.header<roce::Ipv4>(14)->protocol = 1;
       roce::store_ipv4_checksum(*p.header<roce::Ipv4>(14));
     }},
    {"ICMP behind a header with a wrong checksum", "drop_checksum", [](PacketSpec&, Victim&) {},
     [](Packet p) {
       p.header<roce::Ipv4>(14)->protocol = 1;
       roce::store_ipv4_checksum(*p.header<roce::Ipv4>(14));
       std::memcpy(p.data() + 14 + 20, "\x08\0\xF7\xFF\0\0\0\0", 8);  // an echo request with its checksum
       p.header<roce::Ipv4>(14)->total_length = 28;
     }},
    {"what is no RoCE, behind a header with a wrong checksum", "drop_checksum", [](PacketSpec&, Victim&) {},
     [](Packet p) { p.header<roce::Ipv4>(14)->protocol = 6; }},
    {"a datagram to QP1 behind such a one, which no ICRC covers", "drop_checksum",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_UD_SEND_ONLY, s.destination_qp = roce::kGsiQpn, s.qkey = roce::kGsiQkey;
     },
     [](Packet p) { p.data()[14 + 10] ^= 1; }},
    {"a PSN behind a gap", "drop_out_of_sequence", [](PacketSpec& s, Victim&) { s.psn += 5; }},
    {"a PSN of the past", "drop_duplicate", [](PacketSpec& s, Victim&) { s.psn -= 5; }},
    {"a SEND that nothing was posted for", "drop_rnr",
     [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_RC_SEND_ONLY; }},
    {"an ACK for what was never sent", "ghost_acks",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_RC_ACKNOWLEDGE, s.syndrome = 0x1F, s.payload = {}, s.psn += 9;
     }},
    {"a fatal NAK for what was never sent", "ghost_acks",
     [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_RC_ACKNOWLEDGE, s.syndrome = 0x62, s.payload = {}; }},
    {"a READ's response that nobody asked for", "drop_unexpected_response",
     [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, s.syndrome = 0x1F; }},
    {"an atomic's response that nobody asked for", "drop_unexpected_response",
     [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE, s.syndrome = 0x1F, s.payload = {}; }},
    {"a congestion notification where nothing controls", "rp_cnp_ignored",
     [](PacketSpec& s, Victim&) { s.opcode = roce::kOpcodeCnp, s.payload = {}; }},
    {"a datagram to a group that nobody is in", "drop_multicast",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_UD_SEND_ONLY;
       s.underlay.destination_mac = {0x01, 0x00, 0x5E, 0, 1, 5};
       s.underlay.addresses.destination = roce::ipv4(224, 0, 1, 5);
       s.destination_qp = 0xFFFFFF;
     }},
    {"what is no MAD, to QP1", "drop_mad",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_UD_SEND_ONLY, s.destination_qp = roce::kGsiQpn, s.qkey = roce::kGsiQkey;
     }},
    {"a datagram to QP1 from a group's address", "drop_no_host",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_UD_SEND_ONLY, s.destination_qp = roce::kGsiQpn, s.qkey = roce::kGsiQkey;
       s.underlay.addresses.source = roce::ipv4(239, 0, 0, 9);
     }},
    {"a datagram to a group from a loopback address", "drop_no_host",
     [](PacketSpec& s, Victim&) {
       s.opcode = IBV_OPCODE_UD_SEND_ONLY;
       s.underlay.destination_mac = {0x01, 0x00, 0x5E, 0, 1, 5};
       s.underlay.addresses = {roce::ipv4(127, 0, 0, 1), roce::ipv4(224, 0, 1, 5)};
       s.destination_qp = 0xFFFFFF;
     }},
    {"a WRITE from nobody's address", "drop_no_host",
     [](PacketSpec& s, Victim&) { s.underlay.addresses.source = roce::ipv4(0, 0, 0, 0); }},
    {"QP1 without its Q_Key", "drop_bad_qkey",
     [](PacketSpec& s, Victim&) { s.opcode = IBV_OPCODE_UD_SEND_ONLY, s.destination_qp = roce::kGsiQpn; }},
};
const Row kFatal[] = {
    {"a wrong rkey", "resp_remote_access_errors", [](PacketSpec& s, Victim&) { s.rkey ^= 0x5500; }},
    {"memory of somebody else", "resp_remote_access_errors",
     [](PacketSpec& s, Victim& v) { s.virtual_address += v.box.sides[1].memory.size(); }},
    {"longer than the MTU", "resp_invalid_requests",
     [](PacketSpec& s, Victim& v) { s.payload = std::span(v.payload).first(kMtu + 4), s.dma_length = kMtu + 4; }},
    {"another length than it says", "resp_invalid_requests", [](PacketSpec& s, Victim&) { s.dma_length = 9; }},
    {"a message's middle without its beginning", "resp_invalid_requests",
     [](PacketSpec& s, Victim& v) {
       s.opcode = IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, s.payload = std::span(v.payload).first(kMtu);
     }},
};

TEST(Forged, PacketsThatAreRefusedAreCountedByReasonAndDoNoHarm) {
  for (const Row& row : kHarmless) {
    SCOPED_TRACE(row.name);
    Victim victim;
    PacketSpec spec = victim.good();
    row.forge(spec, victim);
    PacketPtr packet = victim.build(spec);
    if (row.spoil) packet = victim.spoiled(*packet, row.spoil);
    ASSERT_EQ(victim.box.count(1, row.counter), 0u);
    victim.inject(std::move(packet));
    EXPECT_EQ(victim.box.count(1, row.counter), 1u);
    EXPECT_EQ(victim.box.sides[1].memory[0], 0) << "nothing was written";
    victim.expect_alive();
  }
}

// Whoever knows the address, the queue pair and the next PSN is the peer, for all that a NIC can tell: the
// specification has it answered, and the queue pair failed.
TEST(Forged, PacketsOfTheRightPsnThatMayNotBeEndTheQueuePair) {
  for (const Row& row : kFatal) {
    SCOPED_TRACE(row.name);
    Victim victim;
    PacketSpec spec = victim.good();
    row.forge(spec, victim);
    victim.inject(victim.build(spec));
    victim.box.run(kMillisecond);
    EXPECT_EQ(victim.box.count(1, row.counter), 1u);
    EXPECT_EQ(victim.box.count(1, "drop_invalid"), 1u);
    EXPECT_EQ(victim.box.count(1, "naks_sent"), 1u);
    EXPECT_EQ(victim.box.sides[1].qp->attributes.state, IBV_QPS_ERR);
    EXPECT_EQ(victim.box.hosts[1]->events.size(), 1u) << "its host is told";
    EXPECT_EQ(victim.box.sides[1].memory[0], 0);
    // And then it is deaf.
    victim.inject(victim.build(victim.good()));
    EXPECT_EQ(victim.box.count(1, "drop_qp_state"), 1u);
  }
}

TEST(Forged, DatagramsAndUnreliableMessagesAreRefusedToo) {
  Victim ud(IBV_QPT_UD);
  PacketSpec spec = ud.good();
  ud.box.post_receive(1, 7, 0, 5000);
  spec.qkey = 0x4321;
  ud.inject(ud.build(spec));
  EXPECT_EQ(ud.box.count(1, "drop_bad_qkey"), 1u);
  spec.qkey = 0x1234;
  ud.inject(ud.build(spec));
  EXPECT_EQ(ud.box.completions(1).size(), 1u) << "and the right one is not";
  Victim uc(IBV_QPT_UC);
  spec = uc.good();
  spec.opcode = IBV_OPCODE_UC_RDMA_WRITE_LAST;
  uc.inject(uc.build(spec));
  EXPECT_EQ(uc.box.count(1, "drop_message"), 1u);
  spec = uc.good();
  spec.rkey ^= 0x5500;
  uc.inject(uc.build(spec));
  EXPECT_EQ(uc.box.count(1, "resp_remote_access_errors"), 1u);
  EXPECT_EQ(uc.box.sides[1].qp->attributes.state, IBV_QPS_RTS) << "unreliable ones live on";
  uc.expect_alive();
}

TEST(Forged, FloodsAreBounded) {
  Victim victim(IBV_QPT_RC, "rate: 10Gbps\ndcqcn: {enabled: true}");
  // A request that has just left.
  ASSERT_EQ(0, victim.box.post(1, 1, IBV_WR_RDMA_WRITE, 0, 100, 4096));
  PacketSpec ack = victim.good();
  ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  ack.payload = {};
  for (unsigned i = 0; i < 5000; i++) {
    ack.syndrome = i % 2 ? 0x1F : 0x60;
    ack.psn = kPsn + 1 + i;
    victim.inject(victim.build(ack));
  }
  EXPECT_EQ(victim.box.count(1, "ghost_acks"), 5000u);
  EXPECT_EQ(victim.box.count(1, "retransmitted_packets"), 0u);
  // Notifications of a stranger do nothing; the peer's take the rate down, but not below the least.
  PacketSpec cnp = victim.good();
  cnp.opcode = roce::kOpcodeCnp;
  cnp.payload = {};
  cnp.underlay.addresses.source = roce::ipv4(10, 0, 0, 9);
  for (unsigned i = 0; i < 1000; i++) victim.inject(victim.build(cnp));
  EXPECT_EQ(victim.box.count(1, "rp_cnp_ignored"), 1000u);
  EXPECT_EQ(victim.box.count(1, "rp_cnp_handled"), 0u);
  cnp.underlay.addresses.source = roce::ipv4(10, 0, 0, 1);
  for (unsigned i = 0; i < 1000; i++) victim.inject(victim.build(cnp));
  EXPECT_EQ(victim.box.count(1, "rp_cnp_handled"), 1000u);
  EXPECT_GE(victim.box.sides[1].qp->rate, static_cast<double>(nic_model::DcqcnConfig{}.rpg_min_rate));
  // Duplicates of READs: no more of them wait than requests may.
  PacketSpec read = victim.good();
  read.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST;
  read.payload = {};
  read.dma_length = 1 << 20;
  for (unsigned i = 0; i < 2000; i++) victim.inject(victim.build(read));
  EXPECT_LT(victim.box.pool.in_use(), 100u);
  victim.box.run();
  ASSERT_EQ(victim.box.completions(1).size(), 1u);
  EXPECT_EQ(victim.box.completions(1)[0].status, IBV_WC_SUCCESS);
  EXPECT_LE(victim.box.count(1, "tx_roce_packets"), 1024u * 300) << "258 of 1024 packets, and the one request";
}

TEST(Forged, AFloodOfQuestionsIsAnsweredAsFarAsTheWireGoes) {
  Victim victim(IBV_QPT_RC, "rate: 1Mbps");
  constexpr unsigned kQuestions = 3000;
  const std::uint64_t before = victim.box.count(1, "arp_replies_sent");  // to its peer
  for (unsigned i = 0; i < kQuestions; i++) {
    PacketPtr question = victim.box.pool.allocate(sizeof(nic_model::ArpFrame));
    nic_model::write_arp(*question, nic_model::kArpRequest, {2, 0x72, 10, 0, 0, 9}, roce::ipv4(10, 0, 0, 9),
                         {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, {}, roce::ipv4(10, 0, 0, 2));
    victim.inject(std::move(question));
  }
  const std::uint64_t replies = victim.box.count(1, "arp_replies_sent") - before;
  EXPECT_EQ(replies + victim.box.count(1, "drop_control_full"), kQuestions);
  EXPECT_GE(replies, nic_model::kControlPacketsMax);
  EXPECT_LE(replies, nic_model::kControlPacketsMax + 2) << "one is on the wire";
}

// Words of all tests that begin so.
std::set<std::string> words_of_tests(std::string_view beginning) {
  std::set<std::string> words;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ROCEBOX_TESTS)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h" && extension != ".py") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::size_t at = 0; (at = text.find(beginning, at)) != std::string::npos;) {
      const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
      words.insert(text.substr(at, end - at));
      at = std::min(end, text.size());
    }
  }
  return words;
}

// No reason to drop a packet is without a test: each one's name stands in one, here or elsewhere.
TEST(Forged, EveryReasonIsTried) {
  const std::set<std::string> named = words_of_tests("drop_");
  ASSERT_TRUE(named.contains("drop_multicast")) << "of the rows above";
  unsigned reasons = 0;
  Victim victim;
  victim.box.devices[1]->books().for_each_counter([&](const CounterView& view) {
    if (!view.name.starts_with("drop_")) return;
    reasons++;
    EXPECT_TRUE(named.contains(std::string(view.name))) << view.name << " is named in no test";
  });
  EXPECT_GT(reasons, 30u);
}

TEST(Forged, DatagramsAreNoLongerThanThePathMtu) {
  Victim victim(IBV_QPT_UD, "rate: 100Gbps\nmtu: 1500");
  victim.box.post_receive(1, 7, 0, 4096);
  for (const std::uint32_t bytes : {kMtu + 4, kMtu}) {
    PacketSpec spec = victim.good();
    spec.payload = std::span(victim.payload).first(bytes);
    victim.inject(victim.build(spec));
    victim.box.run(kMillisecond);
    EXPECT_EQ(victim.box.completions(1).size(), bytes == kMtu) << bytes;
    EXPECT_EQ(victim.box.count(1, "drop_invalid"), 1u);
  }
}

// Else whoever knows the number of a queue pair could slow its peer down.
TEST(Forged, AStrangersMarkIsNotTold) {
  Victim victim(IBV_QPT_RC, "rate: 100Gbps\ndcqcn: {enabled: true}");
  PacketSpec spec = victim.good();
  spec.underlay.tos = roce::kEcnCe;
  PacketSpec stranger = spec, other = spec;
  stranger.underlay.addresses.source = roce::ipv4(10, 0, 0, 9);
  other.opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY;
  for (const PacketSpec& forged : {stranger, other}) victim.inject(victim.build(forged));
  EXPECT_EQ(victim.box.count(1, "np_ecn_marked_roce_packets"), 0u);
  EXPECT_EQ(victim.box.count(1, "np_cnp_sent"), 0u);
  victim.inject(victim.build(spec));
  EXPECT_EQ(victim.box.count(1, "np_cnp_sent"), 1u) << "its peer's is";
}

}  // namespace
}  // namespace rocebox::test::forged
