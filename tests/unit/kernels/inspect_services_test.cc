// SPDX-License-Identifier: BSD-3-Clause
// The inspect kernel on UC, UD, services of which only BTH is read, trimmed and snapped packets.
#include "tests/unit/kernels/inspect_box.h"

namespace rocebox::inspect {
namespace {

using namespace test_box;

TEST(Inspect, UcMessagesAreThoseThatAReceiverGets) {
  constexpr std::uint8_t kF = IBV_OPCODE_UC_SEND_FIRST, kM = IBV_OPCODE_UC_SEND_MIDDLE, kL = IBV_OPCODE_UC_SEND_LAST,
                         kO = IBV_OPCODE_UC_SEND_ONLY;
  struct {
    const char* title;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> packets;  // of 100 bytes
    int messages, discarded, goodput;
  } const cases[] = {
      {"whole", {{kF, 1}, {kM, 2}, {kL, 3}, {kO, 4}}, 2, 0, 400},
      {"a lost middle", {{kF, 1}, {kL, 3}, {kO, 4}}, 1, 1, 100},
      {"a lost last", {{kF, 1}, {kM, 2}, {kF, 4}, {kL, 5}}, 1, 1, 200},
      {"a lost first", {{kM, 2}, {kL, 3}, {kO, 4}}, 1, 1, 100},
      {"a lost message", {{kO, 1}, {kO, 3}}, 2, 0, 200},
      {"a late middle", {{kF, 1}, {kM, 3}, {kM, 2}, {kL, 4}, {kO, 5}}, 1, 1, 100},
      {"a doubled message is delivered twice", {{kO, 1}, {kO, 1}}, 2, 0, 200},
      {"across the wrap", {{kF, roce::kPsnMask}, {kL, 0}}, 1, 0, 200},
      {"not ended yet", {{kF, 1}, {kM, 2}}, 0, 0, 0},
  };
  for (const auto& c : cases) {
    Box box;
    for (const auto& [opcode, psn] : c.packets) box.check(box.data(opcode, psn, 100));
    EXPECT_EQ(box.flow()["messages"], c.messages) << c.title;
    EXPECT_EQ(box.flow()["messages_discarded"], c.discarded) << c.title;
    EXPECT_EQ(box.requests()["goodput_bytes"], c.goodput) << c.title;
    EXPECT_EQ(box.report()["totals"]["messages"], c.messages) << c.title;
  }
}

TEST(Inspect, UdSendersHaveOnePsnSpaceForAllDestinations) {
  Box box;
  const auto send = [&](std::uint32_t source_qp, std::uint32_t psn, unsigned to) {
    PacketSpec spec = box.data(IBV_OPCODE_UD_SEND_ONLY, psn, 50);
    spec.source_qp = source_qp;
    spec.underlay.addresses.destination = roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(to));
    box.check(spec);
  };
  send(7, 10, 2), send(7, 11, 3), send(8, 500, 2), send(7, 13, 2), send(7, 13, 2), send(8, 501, 2), send(7, 12, 3);
  send(7, 20, 2);
  const Json senders = box.report()["ud_senders"];
  ASSERT_EQ(senders.size(), 2u);
  EXPECT_EQ(senders[0]["source_qpn_number"], 7);
  EXPECT_EQ(senders[0]["packets"], 6);
  EXPECT_EQ(senders[0]["unique"], 5);
  EXPECT_EQ(senders[0]["missing"], 6);
  EXPECT_EQ(senders[0]["duplicates"], 1);
  EXPECT_EQ(senders[0]["out_of_order"], 1);
  EXPECT_EQ(senders[1]["first_psn"], 500);
  EXPECT_EQ(senders[1]["missing"], 0);
  EXPECT_EQ(box.report()["totals"]["missing"], 0) << "perhaps they went elsewhere";
  EXPECT_EQ(box.report()["flows"].size(), 2u);
}

TEST(Inspect, OfOtherServicesBthIsCounted) {
  Box box;
  struct {
    std::uint8_t opcode;
    const char *service, *name;
  } const cases[] = {{0xA6, "XRC", "opcode_0xa6"},
                     {0x44, "RD", "opcode_0x44"},
                     {0xC3, "manufacturer 0xC0", "opcode_0xc3"},
                     {0xFF, "manufacturer 0xE0", "opcode_0xff"}};
  for (const auto& c : cases) box.check(box.data(c.opcode, 9, 40)), box.check(box.data(c.opcode, 10, 40));
  const Json flows = box.report()["flows"];
  ASSERT_EQ(flows.size(), std::size(cases));
  for (std::size_t i = 0; i < flows.size(); i++) {
    EXPECT_EQ(flows[i]["service"], cases[i].service);
    EXPECT_EQ(flows[i]["packets"], 2);
    EXPECT_EQ(flows[i]["payload_bytes"], 0) << "not to be told from extended headers";
    EXPECT_EQ(flows[i]["opcodes"][cases[i].name], 2) << flows[i];
    EXPECT_FALSE(flows[i].contains("requests"));
  }
  EXPECT_EQ(box.stats.read("unsupported_service"), 8u);
  EXPECT_EQ(box.stats.read("malformed"), 0u);
  auto broken = test::frame(box.data(0xA6, 11, 40));
  broken.back() ^= 1;
  box.send(box.clock += kUs, 0, broken);
  EXPECT_EQ(box.flow()["icrc_failures"], 1);
  box.check(box.data(0x1F, 1, 40));
  EXPECT_EQ(box.stats.read("malformed"), 0u);
  EXPECT_EQ(box.stats.read("lowar_packets"), 1u) << "a repair or negotiation packet";
  box.check(box.data(0x1E, 1, 40));
  EXPECT_EQ(box.stats.read("malformed"), 1u) << "a reserved opcode";
}

TEST(Inspect, TrimmedPacketsWithAndWithoutRightLengths) {
  const auto trim = [](std::vector<std::uint8_t> bytes, bool lengths_right) {
    bytes.resize(54);
    if (lengths_right) {
      bytes[16] = 0, bytes[17] = 40;  // IP total length
      bytes[38] = 0, bytes[39] = 20;  // UDP length
    }
    return bytes;
  };
  for (const bool lengths_right : {false, true}) {
    Box box;
    const auto cut = trim(test::frame(box.data(IBV_OPCODE_RC_SEND_ONLY, 2, 500, 2)), lengths_right);
    if (lengths_right) {
      box.send(box.clock += kUs, 0, cut);
      EXPECT_EQ(box.stats.read("malformed"), 1u) << "without a flow it may be anything";
    }
    box.only(1, 1);
    box.send(box.clock += kUs, 0, cut);
    box.only(3, 3);
    EXPECT_EQ(box.flow()["trimmed"], 1);
    EXPECT_EQ(box.flow()["packets"], 3);
    EXPECT_EQ(box.requests()["missing"], 0);
    EXPECT_EQ(box.requests()["lost"], 0);
    EXPECT_EQ(box.requests()["only_trimmed"], 1);
    EXPECT_EQ(box.requests()["goodput_bytes"], 200);
    EXPECT_EQ(box.flow()["messages"], 2);
    EXPECT_EQ(box.flow()["events"][0]["event"], "trimmed");
    EXPECT_EQ(box.stats.read("truncated"), 0u);
    box.only(4, 4);
    box.only(2, 5);
    EXPECT_EQ(box.requests()["only_trimmed"], 0);
    EXPECT_EQ(box.requests()["retransmissions"], 1);
    EXPECT_EQ(box.requests()["goodput_bytes"], 400);
    EXPECT_EQ(box.flow()["messages"], 4);
  }
}

TEST(Inspect, AnAckWithoutItsAethIsCountedAsUnknown) {
  Box box;
  for (std::uint32_t psn = 1; psn < 4; psn++) {
    box.only(psn);
    auto bytes = test::frame(box.ack(psn));
    const auto wire = static_cast<std::uint32_t>(bytes.size());
    bytes.resize(54);
    box.send(box.clock += kUs, 1, bytes, wire);
  }
  EXPECT_EQ(box.flow(1)["aeth_unknown"], 3);
  EXPECT_EQ(box.flow(1)["acks"], 0);
  EXPECT_EQ(box.flow(1)["opcodes"]["rc_acknowledge"], 3);
  EXPECT_EQ(box.report()["connections"].size(), 1u) << "the PSN tells whom it answers";
  EXPECT_FALSE(box.flow().contains("rtt")) << "a NAK is no round trip";
  EXPECT_EQ(box.stats.read("snapped"), 3u);
}

TEST(Inspect, AReadOfUnknownLengthGoesUpToItsAnswersAndTheNextRequest) {
  Box box;
  const auto read = [&](std::uint32_t psn) {
    auto bytes = test::frame(box.read(psn, 4096));
    const auto wire = static_cast<std::uint32_t>(bytes.size());
    bytes.resize(60);
    box.send(box.clock += kUs, 0, bytes, wire);
  };
  read(10);
  for (std::uint32_t psn = 10; psn < 14; psn++)
    box.check(box.response(static_cast<std::uint8_t>(psn == 10   ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
                                                     : psn == 13 ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST
                                                                 : IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE),
                           psn, 0, 1024));
  EXPECT_EQ(box.requests()["last_psn"], 13);
  read(14);
  box.only(18);
  EXPECT_EQ(box.requests()["missing"], 0);
  EXPECT_EQ(box.requests()["unique"], 9);
  EXPECT_EQ(box.flow()["messages"], 3);
  EXPECT_EQ(box.flow()["reth_unknown"], 2);
  EXPECT_EQ(box.flow()["message_bytes"]["count"], 1) << "those of READs are not known";
}

TEST(Inspect, RnrTimersAndPartnersAreShown) {
  Box box;
  box.only(1);
  box.check(box.ack(1, 0x20 | 12));
  box.check(box.ack(1, 0x20 | 3));
  EXPECT_EQ(box.flow(1)["rnr_naks"], 2);
  EXPECT_EQ(box.flow(1)["rnr_timer_min"], 30 * kUs);
  EXPECT_EQ(box.flow(1)["rnr_timer_max"], 640 * kUs);
  EXPECT_EQ(box.flow(1)["events"][0]["detail"], "timer 640 us");
  EXPECT_EQ(box.flow(0)["partner_qpn_number"], 0x11);
  EXPECT_EQ(box.flow(1)["partner_qpn"], "0x000012");
  EXPECT_EQ(box.report()["summary"].size(), 2u);
  EXPECT_LE(box.report()["summary"][0].size(), 12u) << "more columns are not printed as a table";
}

}  // namespace
}  // namespace rocebox::inspect
