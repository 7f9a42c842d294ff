// SPDX-License-Identifier: BSD-3-Clause
// The inspect kernel on scenarios: packets in, report out.
#include <cstring>

#include "runtime/roce/address.h"
#include "tests/unit/kernels/inspect_box.h"

namespace rocebox::inspect {
namespace {

using namespace test_box;

TEST(Inspect, PacketsPassUntouched) {
  Box box;
  box.only(1);
  auto broken = test::frame(box.data(IBV_OPCODE_RC_SEND_ONLY, 2, 50));
  broken.back() ^= 1;
  box.send(box.clock += kUs, 1, broken);
  box.send(box.clock += kUs, 1, std::vector<std::uint8_t>(20));
  ASSERT_EQ(box.out.size(), 3u);
  EXPECT_EQ(box.out[0].port, 1);
  EXPECT_EQ(box.out[1].port, 0);
  EXPECT_EQ(box.out[1].bytes, broken);
  EXPECT_EQ(box.stats.read("rx_icrc_encapsulated"), 1u);
  EXPECT_EQ(box.stats.read("packets"), 3u);
  EXPECT_EQ(box.stats.read("roce_packets"), 2u);
}

TEST(Inspect, AFlowHasTheBytesThatTheReadmeSays) {
  EXPECT_EQ(sizeof(Flow), 6400u);
  EXPECT_EQ(sizeof(Sender), 512u);
  EXPECT_EQ(sizeof(Event), 24u);
  EXPECT_EQ(sizeof(PsnEntry), 16u);
}

struct Case {
  const char* title;
  std::vector<std::pair<std::uint32_t, int>> psns_ids;  // id -1: none to speak of
  std::vector<std::pair<const char*, int>> expect;
};

TEST(Inspect, ClassesOfPackets) {
  const Case cases[] = {
      {"in order", {{5, 1}, {6, 2}, {7, 3}, {8, 4}}, {{"unique", 4}, {"missing", 0}, {"lost", 0}, {"first_psn", 5}}},
      {"lost", {{5, 1}, {6, 2}, {9, 5}, {10, 6}}, {{"missing", 2}, {"lost", 2}, {"unique", 4}, {"last_psn", 10}}},
      {"doubled by the network", {{5, 1}, {6, 2}, {7, 3}, {8, 4}, {8, 4}, {7, 3}}, {{"duplicates", 2}, {"unique", 4}}},
      {"sent again: the ID is new",
       {{5, 1}, {6, 2}, {7, 3}, {9, 5}, {8, 6}, {9, 7}},
       {{"retransmissions", 2}, {"lost", 1}, {"missing", 0}, {"duplicates", 0}}},
      {"overtaken: the ID is old",
       {{5, 1}, {6, 2}, {7, 3}, {9, 5}, {10, 6}, {8, 4}},
       {{"out_of_order", 1}, {"reorder_degree_max", 2}, {"lost", 0}, {"retransmissions", 0}}},
      {"IDs wrap",
       {{5, 65533}, {6, 65534}, {7, 65535}, {8, 0}, {8, 0}, {7, 1}},
       {{"duplicates", 1}, {"retransmissions", 1}}},
      {"no IDs, young",
       {{5, -1}, {6, -1}, {8, -1}, {7, -1}, {8, -1}},
       {{"out_of_order", 1}, {"duplicates", 1}, {"lost", 0}}},
  };
  for (const Case& c : cases) {
    for (const std::uint32_t shift : {0u, roce::kPsnMask - 6}) {  // the same across the wrap of the PSN
      Box box;
      for (const auto& [psn, id] : c.psns_ids) box.only(psn + shift, id);
      const Json got = box.requests();
      for (const auto& [name, value] : c.expect) {
        const bool psn = std::strstr(name, "_psn");
        EXPECT_EQ(got[name], psn ? static_cast<int>((static_cast<unsigned>(value) + shift) & roce::kPsnMask) : value)
            << c.title << ": " << name << " " << got;
      }
      EXPECT_EQ(got["wrapped"], shift != 0) << c.title;
      EXPECT_EQ(box.flow()["messages"], got["unique"]) << c.title;
    }
  }
}

TEST(Inspect, ANakNamesWhatIsSentAgain) {
  Box box;
  for (std::uint32_t psn = 5; psn < 10; psn++) box.only(psn);
  box.check(box.ack(5));
  box.check(box.ack(7, 0x60));
  box.only(7);
  box.only(8);
  box.only(6);
  EXPECT_EQ(box.requests()["retransmissions"], 2);
  EXPECT_EQ(box.requests()["duplicates"], 1);
  EXPECT_EQ(box.flow(1)["naks"]["psn_sequence_error"], 1);
  EXPECT_EQ(box.stats.read("packet_seq_err"), 1u);
  EXPECT_EQ(box.flow(1)["acks"], 1);
}

// As RNICs with selective repeat: others with what was asked for.
TEST(Inspect, WhatComesRightBehindWhatANakAskedForWasSentAgainToo) {
  Box box;
  for (std::uint32_t psn = 5; psn <= 10; psn++) box.only(psn);
  box.check(box.ack(6, 0x60));
  for (const std::uint32_t psn : {6u, 10u, 8u}) box.only(psn);
  box.check(box.ack(7, 0x60));
  for (const std::uint32_t psn : {7u, 10u}) box.only(psn);
  EXPECT_EQ(box.requests()["retransmissions"], 5);
  EXPECT_EQ(box.requests()["duplicates"], 0);
  box.only(8);
  EXPECT_EQ(box.requests()["duplicates"], 1) << "once each";
  box.only(5);
  EXPECT_EQ(box.requests()["duplicates"], 2) << "the NAK acknowledges it";
  box.only(11);
  box.only(9);
  EXPECT_EQ(box.requests()["duplicates"], 3) << "something new came between";
  EXPECT_EQ(box.requests()["retransmissions"], 5);
}

// More than 1 ms late, with this identification, when `known` packets came in order before; what it is called.
std::string late_is_called(unsigned known, int step, int late_id, bool seen = false) {
  Box box;
  std::uint32_t psn = 5;
  int id = 100;
  for (unsigned i = 0; i < known; i++, psn++, id += step) box.only(psn, id);
  if (!seen) psn++, id += step;  // the late one
  box.only(psn, id);
  box.clock += 5 * kMillisecond;
  box.only(psn - 1, late_id);
  const Json got = box.requests(), totals = box.report()["totals"];
  std::string name;
  for (const char* each : {"duplicates", "retransmissions", "out_of_order", "undecided"}) {
    EXPECT_EQ(totals[each], got[each]) << each;
    EXPECT_EQ(box.stats.read(each), got[each].get<std::uint64_t>()) << each;
    if (got[each] == 1) name += each;
  }
  EXPECT_EQ(box.report()["summary"][0].contains("undecided"), name == "undecided");
  EXPECT_EQ(got["lost"], seen || name == "out_of_order" ? 0 : 1) << "lost, as far as is known";
  EXPECT_EQ(got["missing"], 0);
  const Json last = box.flow()["events"].back();
  if (name == "undecided") {
    EXPECT_EQ(last["event"], "undecided");
    EXPECT_EQ(last["psn"], psn - 1);
  }
  return name;
}

TEST(Inspect, WhatIsLateWhileFewIdsAreKnownIsUndecided) {
  for (const unsigned known : {1u, 2u}) {  // at the end 1 and 2 comparisons
    SCOPED_TRACE(known);
    const int its_own = 100 + static_cast<int>(known);
    EXPECT_EQ(late_is_called(known, 1, its_own), "undecided") << "older: overtaken, if the sender steps them";
    EXPECT_EQ(late_is_called(known, 1, 110), "retransmissions") << "newer, and old enough: both say so";
    EXPECT_EQ(late_is_called(known, 1, its_own - 1, true), "undecided") << "seen: doubled, if the sender steps them";
    EXPECT_EQ(late_is_called(known, 1, 110, true), "retransmissions");
    EXPECT_EQ(late_is_called(known, 0, 100), "retransmissions") << "all the same: they tell nothing";
  }
  EXPECT_EQ(late_is_called(3, 1, 103), "out_of_order") << "three comparisons tell";
  EXPECT_EQ(late_is_called(4, 1, 104), "out_of_order");
  EXPECT_EQ(late_is_called(4, 1, 103, true), "duplicates");
}

TEST(Inspect, UcHasNoRetransmissions) {
  Box box;
  for (const auto& [psn, id] :
       std::vector<std::pair<std::uint32_t, int>>{{1, 1}, {2, 2}, {3, 3}, {5, 5}, {6, 6}, {4, 7}, {6, 8}})
    box.check(box.data(IBV_OPCODE_UC_SEND_ONLY, psn, 8, id));
  EXPECT_EQ(box.requests()["out_of_order"], 1);
  EXPECT_EQ(box.requests()["duplicates"], 1);
  EXPECT_EQ(box.requests()["retransmissions"], 0);
  EXPECT_EQ(box.flow()["service"], "UC");
}

TEST(Inspect, ConnectionsByEachSource) {
  for (const bool known : {false, true}) {
    Config config;
    if (known) config.pairs.push_back({kB, kA, 0x12, 0x11});
    Box box(config);
    for (std::uint32_t psn = 1; psn <= 4; psn++) {
      box.only(psn);
      box.check(box.ack(psn));
      const Json pairs = box.report()["connections"];
      ASSERT_EQ(pairs.size(), 1u);
      EXPECT_EQ(pairs[0]["found"], known ? "config" : "learned");
      EXPECT_EQ(pairs[0]["confirmed"], known || psn >= 3);
      EXPECT_EQ(pairs[0]["a"], "10.0.0.1");
      EXPECT_EQ(pairs[0]["a_qpn"], "0x000011");
      EXPECT_EQ(pairs[0]["b_qpn_number"], 0x12);
    }
  }
}

// More pairs than learning looks at, each with requests that nobody answers any more.
TEST(Inspect, PairsThatAreSilentCrowdOutNoOther) {
  Box box;
  const auto request = [&box](std::uint32_t pair, std::uint32_t number, bool answered) {
    PacketSpec spec = box.data(IBV_OPCODE_RC_SEND_ONLY, 100'000 * pair + number, 8);
    spec.destination_qp = 0x1000 + pair;
    box.check(spec);
    spec = box.ack(100'000 * pair + number);
    spec.destination_qp = 0x2000 + pair;
    if (answered) box.check(spec);
  };
  constexpr std::uint32_t kSilent = 70;
  for (std::uint32_t pair = 0; pair < kSilent; pair++)
    for (std::uint32_t number = 0; number <= 20; number++) request(pair, number, number == 0);
  request(kSilent, 0, true);
  const Json report = box.report();
  EXPECT_EQ(report["totals"]["pairing"]["crowded"], 0);
  ASSERT_EQ(report["connections"].size(), kSilent + 1);
  EXPECT_EQ(report["connections"][kSilent]["a_qpn_number"], 0x2000 + kSilent);
}

TEST(Inspect, CnpsEcnAndOtherTraffic) {
  Box box;
  PacketSpec cnp = box.ack(0);
  cnp.opcode = roce::kOpcodeCnp, cnp.becn = true;
  box.check(cnp);
  box.check(box.ack(1));
  box.check(cnp);
  PacketSpec marked = box.data(IBV_OPCODE_RC_SEND_ONLY, 1);
  for (const int tos : {2, 3, 3, 1, 0})
    marked.underlay.tos = static_cast<std::uint8_t>(tos), marked.psn++, box.check(marked);
  const Json flows = box.report()["flows"];
  ASSERT_EQ(flows.size(), 3u);
  EXPECT_EQ(flows[0]["service"], "CNP");
  EXPECT_EQ(flows[0]["cnps"], 1) << "before the RC flow was there";
  EXPECT_EQ(flows[1]["cnps"], 1);
  EXPECT_EQ(flows[1]["opcodes"]["cnp"], 1);
  EXPECT_EQ(flows[1]["ecn"]["becn"], 1);
  EXPECT_EQ(flows[2]["ecn"]["ce"], 2);
  EXPECT_EQ(flows[2]["ecn"]["ect0"], 1);
  EXPECT_EQ(flows[2]["ecn"]["ect1"], 1);
  EXPECT_EQ(flows[2]["opcodes"]["rc_send_only"], 5);
  EXPECT_EQ(box.stats.read("np_cnp_sent"), 2u);
  EXPECT_EQ(box.stats.read("np_ecn_marked_roce_packets"), 2u);
}

TEST(Inspect, AWrongIcrcCountsNowhereElse) {
  Box box;
  auto broken = test::frame(box.data(IBV_OPCODE_RC_SEND_ONLY, 2, 64));
  broken[broken.size() - 10] ^= 4;
  box.send(1, 0, broken);
  EXPECT_EQ(box.report()["flows"].size(), 0u) << "makes no flow";
  box.only(1);
  box.send(box.clock += 1, 0, broken);
  box.only(3);
  EXPECT_EQ(box.flow()["icrc_failures"], 1);
  EXPECT_EQ(box.flow()["packets"], 2);
  EXPECT_EQ(box.requests()["missing"], 1);
  EXPECT_EQ(box.stats.read("rx_icrc_encapsulated"), 2u);
}

TEST(Inspect, SnappedPacketsCountByTheirLengthOnTheWire) {
  Box box;
  auto whole = test::frame(box.data(IBV_OPCODE_RC_SEND_ONLY, 1, 1000));
  const auto wire = static_cast<std::uint32_t>(whole.size());
  whole.resize(64);
  box.send(1, 0, whole, wire);
  EXPECT_EQ(box.flow()["bytes"], wire);
  EXPECT_EQ(box.flow()["payload_bytes"], 1000);
  EXPECT_EQ(box.flow()["icrc_unverified"], 1);
  EXPECT_EQ(box.requests()["goodput_bytes"], 1000);
}

TEST(Inspect, AFullTablePassesAndCounts) {
  Config config;
  config.flows = 2;
  Box box(config);
  for (std::uint32_t qpn = 0; qpn < 5; qpn++) {
    PacketSpec spec = box.data(IBV_OPCODE_RC_SEND_ONLY, 1);
    spec.destination_qp = qpn;
    box.check(spec);
  }
  EXPECT_EQ(box.out.size(), 5u);
  EXPECT_EQ(box.report()["flows"].size(), 2u);
  EXPECT_EQ(box.stats.read("flows_full"), 3u);
}

TEST(Inspect, AddressesAreReadAndWritten) {
  EXPECT_EQ(roce::address_text(roce::parse_address("10.1.2.3").value()), "10.1.2.3");
  EXPECT_EQ(roce::address_text(roce::parse_address("fe80::1").value()), "fe80::1");
  EXPECT_FALSE(roce::parse_address("10.1.2"));
}

}  // namespace
}  // namespace rocebox::inspect
