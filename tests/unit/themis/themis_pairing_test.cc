// SPDX-License-Identifier: BSD-3-Clause
// Which connections get state in a ToR: told, overheard or learnt; and how they lose it.
#include <fmt/format.h>

#include "runtime/roce/mad.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

// Requests to this rack with PSNs first..last, and their ACKs.
void converse(Tor& tor, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t psn = first; psn <= last; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
}

TEST(ThemisPairing, LearnsAfterSomeAcks) {
  Tor tor("qp_timeout: 10s");
  tor.data(100);
  EXPECT_EQ(tor.nack(100).size(), 1u);
  EXPECT_EQ(tor.count("nack_unpaired"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 0u) << "not from a NACK";
  converse(tor, 101, 108);
  ASSERT_EQ(tor.count("qps_made"), 1u);
  tor.data(110);
  EXPECT_EQ(tor.nack(109), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(111).size(), 2u) << "valid";
}

// What is left alone, as text: source, QPN and why, of each direction.
std::string unpaired(const Tor& tor) {
  rocebox::Json json;
  JsonReport report(json);
  tor.kernel->report(report);
  std::string text;
  for (const auto& row : json["themis"]["unpaired"])
    text += row["source"].get<std::string>() + " 0x" + fmt::format("{:x}", row["destination_qpn"].get<int>()) + ": " +
            row["because"].get<std::string>() + "\n";
  return text;
}

TEST(ThemisPairing, WhatIsLeftAloneIsListed) {
  Tor tor("qps: 1, qp_timeout: 10s");
  EXPECT_EQ(unpaired(tor), "");
  tor.data(100);
  EXPECT_EQ(unpaired(tor), "10.0.1.1 0x11: its other direction is not known\n");
  tor.ack(100);
  EXPECT_EQ(unpaired(tor), "10.0.1.1 0x11: its pair is a guess yet\n10.0.0.1 0x12: its pair is a guess yet\n");
  converse(tor, 101, 108);
  EXPECT_EQ(unpaired(tor), "") << "it has state";
  ASSERT_EQ(tor.count("qps_made"), 1u);
  const auto give = [&](bool inbound, std::uint8_t opcode, std::uint32_t psn) {
    roce::PacketSpec spec =
        opcode == IBV_OPCODE_RC_ACKNOWLEDGE ? response(inbound, psn, kAckSyndrome) : write(inbound, psn);
    spec.destination_qp = inbound ? 0x21 : 0x22;
    tor.give(inbound ? 2 : 0, spec);
  };
  for (std::uint32_t psn = 0; psn < 8; psn++) {
    give(true, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn);
    give(false, IBV_OPCODE_RC_ACKNOWLEDGE, psn);
  }
  EXPECT_EQ(tor.count("qp_full"), 1u);
  EXPECT_NE(unpaired(tor).find("0x22: no state is free"), std::string::npos) << unpaired(tor);
}

TEST(ThemisPairing, DoesNotLearnWhereItMustNot) {
  Tor tor("learning: false");
  converse(tor, 0, 20);
  EXPECT_EQ(tor.count("qps_made"), 0u);
}

TEST(ThemisPairing, TwoOpenWindowsAreNoPair) {
  Tor tor("qp_timeout: 10s");
  for (std::uint32_t psn = 0; psn < 20; psn++) {
    tor.data(psn);
    roce::PacketSpec other = write(true, psn);
    other.destination_qp = 0x77;  // of the same NICs, with the same PSNs
    tor.give(2, other);
    tor.ack(psn);
  }
  EXPECT_EQ(tor.count("qps_made"), 0u);
}

TEST(ThemisPairing, ALearntPairIsUndoneByWhatContradictsIt) {
  Tor tor("qp_timeout: 10s");
  converse(tor, 100, 110);
  ASSERT_EQ(tor.count("qps_made"), 1u);
  tor.ack(5'000'000);
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  tor.data(112);
  EXPECT_EQ(tor.nack(111).size(), 1u) << "unpaired: it passes";
}

TEST(ThemisPairing, AReadTakesAsManyPsnsAsItsPathMtuSays) {
  Tor tor("qp_timeout: 10s");
  converse(tor, 100, 110);  // full packets of 1024 bytes
  ASSERT_EQ(tor.count("qps_made"), 1u);
  roce::PacketSpec read = packet(true, IBV_OPCODE_RC_RDMA_READ_REQUEST, 111);
  read.dma_length = 4096;
  tor.give(2, read);
  tor.ack(114);
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  tor.ack(118);
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
}

TEST(ThemisPairing, APairThatIsUndoneLetsItsStashPass) {
  for (const char* timeout : {"0ns", "1ms"}) {
    Tor tor(std::string("qp_timeout: 10s, stash_timeout: ") + timeout);
    converse(tor, 100, 110);
    tor.data(112);
    EXPECT_EQ(tor.nack(111), Ports{}) << "undetermined";
    const Ports left = tor.give(0, response(false, 5'000'000, kAckSyndrome));
    EXPECT_EQ(tor.count("pairs_undone"), 1u);
    ASSERT_EQ(left.size(), 2u) << "what undid the pair, and the NACK";
    EXPECT_EQ(tor.out.back().bytes, test::frame(response(false, 111, kNackSyndrome)));
    EXPECT_EQ(tor.count("undetermined_released"), 1u);
  }
}

TEST(ThemisPairing, APairThatWasToldIsNotUndone) {
  Tor tor(kConnection);
  tor.meet();
  tor.data(1);
  tor.ack(5'000'000);
  EXPECT_EQ(tor.count("pairs_undone"), 0u);
  EXPECT_EQ(tor.nack(0), Ports{});
}

// The connection manager ends the connection, not the pair that was told: its QPs come again.
TEST(ThemisPairing, APairThatWasToldOutlivesADisconnect) {
  Tor tor(std::string(kConnection) + ", learning: false");
  tor.meet();
  converse(tor, 0, 5);
  roce::CmDreq release{};
  release.remote_qpn = kLocalQpn;
  const auto mad = roce::cm_mad(7, release);
  roce::PacketSpec farewell = packet(true, IBV_OPCODE_UD_SEND_ONLY, 0);
  farewell.destination_qp = 1;
  farewell.payload = mad;
  tor.give(2, farewell);
  EXPECT_EQ(tor.count("qps_ended"), 1u);
  tor.meet();
  converse(tor, 700, 705);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  tor.data(707);
  EXPECT_EQ(tor.nack(706), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(708).size(), 2u) << "valid";
}

TEST(ThemisPairing, SilentQpsMakeRoom) {
  Tor tor("qps: 1, qp_timeout: 1ms");
  converse(tor, 100, 110);
  ASSERT_EQ(tor.count("qps_made"), 1u);
  const auto other = [](roce::PacketSpec spec, bool inbound) {
    spec.destination_qp = inbound ? 0x51 : 0x52;
    return spec;
  };
  const auto converse_other = [&] {
    for (std::uint32_t psn = 900; psn < 910; psn++) {
      tor.give(2, other(write(true, psn), true));
      tor.give(0, other(response(false, psn, kAckSyndrome), false));
    }
  };
  converse_other();
  EXPECT_EQ(tor.count("qp_full"), 1u) << "a QP, not a packet";
  EXPECT_EQ(tor.give(0, other(response(false, 905, kNackSyndrome), false)).size(), 1u) << "in doubt it passes";
  tor.run_until(tor.now = 10 * kMillisecond);
  EXPECT_EQ(tor.count("qps_aged"), 1u);
  converse_other();
  EXPECT_EQ(tor.count("qps_made"), 2u);
  tor.drain();
  EXPECT_EQ(tor.count("qps_aged"), 2u) << "and no timer goes on for nothing";
}

}  // namespace
}  // namespace rocebox::themis
