// SPDX-License-Identifier: BSD-3-Clause
// Themis-D in a switch: which NACKs leave, and the bytes of those that are made.
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

class ThemisD : public InPipes {};

TEST_P(ThemisD, Figure6) {
  Tor tor(kConnection, pipes());
  tor.meet();
  for (std::uint32_t psn : {0, 1, 3, 2}) EXPECT_EQ(tor.data(psn), Ports{0});
  EXPECT_EQ(tor.nack(2), Ports{}) << "invalid";
  EXPECT_EQ(tor.data(6), Ports{0});
  const Ports left = tor.nack(4);
  ASSERT_EQ(left.size(), 1u) << "valid";
  EXPECT_GE(left[0], 2);
  EXPECT_EQ(tor.out.back().bytes, test::frame(response(false, 4, kNackSyndrome))) << "as it came";
  EXPECT_EQ(tor.count("drop_nack_invalid"), 1u);
  EXPECT_EQ(tor.count("nack_valid"), 1u);
}

TEST_P(ThemisD, Figure7AndTheBytesOfTheNackThatIsMade) {
  Tor tor(kConnection, pipes());
  tor.meet();
  EXPECT_EQ(tor.data(1), Ports{0});
  EXPECT_EQ(tor.nack(0), Ports{}) << "undetermined";
  const Ports left = tor.data(2);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0], 0);
  EXPECT_GE(left[1], 2) << "where the NACK was going";
  roce::PacketSpec made = response(false, 0, kNackSyndrome);
  made.underlay.udp_source_port = write(true, 2).underlay.udp_source_port;
  EXPECT_EQ(tor.out.back().bytes, test::frame(made));
  EXPECT_EQ(tor.count("undetermined_valid"), 1u);
  EXPECT_EQ(tor.data(4), Ports{0}) << "one NACK an ePSN";
}

TEST_P(ThemisD, TheMadeNackKeepsVlanAndFamily) {
  Tor tor("connections: [{local: 2001:db8::1, local_qpn: 0x11, remote: 2001:db8:1::1, remote_qpn: 0x12, first_psn: 0}]",
          pipes());
  const auto v6 = [](roce::PacketSpec spec, bool inbound) {
    spec.underlay.ip_version = 6;
    spec.underlay.vlans = {7, 0};
    auto& [source, destination] = spec.underlay.addresses;
    source = destination = {0x20, 0x01, 0x0d, 0xb8};
    source[15] = destination[15] = 1;
    (inbound ? source : destination)[5] = 1;
    return spec;
  };
  tor.give(0, v6(write(false, 0), false));
  tor.give(3, v6(write(true, 1), true));
  EXPECT_EQ(tor.give(0, v6(response(false, 0, kNackSyndrome), false)), Ports{});
  ASSERT_EQ(tor.give(2, v6(write(true, 2), true)).size(), 2u);
  EXPECT_EQ(tor.out.back().bytes, test::frame(v6(response(false, 0, kNackSyndrome), false)));
}

TEST_P(ThemisD, OooDegreeMakesAPathAvoidanceSignal) {
  Tor tor(std::string(kConnection) + ", path_avoidance_bit: 3", pipes());
  tor.meet();
  for (std::uint32_t psn : {1}) tor.data(psn);
  EXPECT_EQ(tor.nack(0), Ports{});
  for (std::uint32_t psn : {3, 5}) EXPECT_EQ(tor.data(psn), Ports{0});
  ASSERT_EQ(tor.data(7).size(), 2u);
  std::vector<std::uint8_t> expected = test::frame(response(false, 0, kNackSyndrome));
  expected[14 + 20 + 8 + 4] |= 1 << 3;
  EXPECT_EQ(tor.out.back().bytes, expected) << "the bit is not covered by the ICRC";
  EXPECT_EQ(tor.count("undetermined_ooo_degree"), 1u);
}

TEST_P(ThemisD, WhatIsNotUnderstoodPasses) {
  Tor tor(kConnection, pipes());
  for (std::uint32_t psn = 0; psn < 4; psn++) tor.data(psn);
  EXPECT_EQ(tor.ack(3).size(), 1u);
  EXPECT_EQ(tor.nack(1).size(), 1u);
  EXPECT_EQ(tor.count("nack_behind_window"), 1u);
  EXPECT_EQ(tor.nack(500000).size(), 1u);
  EXPECT_EQ(tor.count("nack_ahead_of_data"), 1u);
  EXPECT_EQ(tor.give(0, response(false, 4, kRnrSyndrome)).size(), 1u);
  EXPECT_EQ(tor.count("nack_other"), 1u);
  auto forged = test::frame(response(false, 2, kNackSyndrome));
  forged.back() ^= 1;
  tor.send(tor.now += 100, 0, forged);
  EXPECT_EQ(tor.ports().size(), 1u);
  EXPECT_EQ(tor.out.back().bytes, forged) << "a wrong ICRC stays wrong";
  EXPECT_EQ(tor.count("answer_bad_icrc"), 1u);
}

TEST_P(ThemisD, WhatCameBeforeThereWasStateIsNotTakenForReceivedARoundLater) {
  Tor tor(kConnection, pipes());
  for (std::uint32_t psn = 0; psn < 16; psn++) {  // the first makes the state, and no bit is set for it
    tor.data(psn);
    tor.ack(psn);
  }
  tor.data(17);
  EXPECT_EQ(tor.nack(16), Ports{});
  EXPECT_EQ(tor.count("drop_nack_undetermined"), 1u);
  EXPECT_EQ(tor.data(18).size(), 2u) << "valid";
}

TEST_P(ThemisD, NacksOfWhatCameBeforeThereWasStatePass) {
  std::string unknown_first_psn = kConnection;
  unknown_first_psn.erase(unknown_first_psn.find(", first_psn: 0"), std::string_view(", first_psn: 0").size());
  Tor tor(unknown_first_psn, pipes());
  tor.data(1);
  EXPECT_EQ(tor.nack(0).size(), 1u);
  EXPECT_EQ(tor.count("nack_before_state"), 1u) << "what a first PSN that is told would mend";
  EXPECT_EQ(tor.count("nack_behind_window"), 0u);
  tor.data(2);
  tor.ack(2);
  EXPECT_EQ(tor.nack(0).size(), 1u);
  EXPECT_EQ(tor.count("nack_behind_window"), 1u) << "one that is late";
  EXPECT_EQ(tor.count("nack_before_state"), 1u);
}

TEST_P(ThemisD, ANackOfAnotherConnectionPasses) {
  Tor tor(kConnection, pipes());
  tor.data(1);
  roce::PacketSpec other = response(false, 1, kNackSyndrome);
  other.destination_qp = kRemoteQpn + 1;
  EXPECT_EQ(tor.give(0, other).size(), 1u);
  EXPECT_EQ(tor.count("nack_unpaired"), 1u);
  other = response(false, 1, kNackSyndrome);
  EXPECT_EQ(tor.give(1, other).size(), 1u) << "by the port of another NIC";
  EXPECT_EQ(tor.count("answer_wrong_port"), 1u);
}

TEST_P(ThemisD, AStashAgesAndIsSentWithoutData) {
  Tor tor(std::string(kConnection) + ", stash_timeout: 50us", pipes());
  tor.meet();
  tor.data(1);
  EXPECT_EQ(tor.nack(0), Ports{});
  tor.run_until(40 * kMicrosecond);
  EXPECT_EQ(tor.ports(), Ports{});
  tor.run_until(200 * kMicrosecond);
  EXPECT_EQ(tor.ports().size(), 1u);
  EXPECT_EQ(tor.out.back().bytes, test::frame(response(false, 0, kNackSyndrome)));
  EXPECT_EQ(tor.count("undetermined_aged"), 1u);
  tor.run_until(kMillisecond);
  EXPECT_EQ(tor.ports(), Ports{}) << "once";
}

TEST_P(ThemisD, AnAcknowledgedStashIsGivenUp) {
  Tor tor(kConnection, pipes());
  tor.meet();
  tor.data(1);
  tor.nack(0);
  EXPECT_EQ(tor.ack(1).size(), 1u);
  EXPECT_EQ(tor.count("undetermined_acknowledged"), 1u);
  EXPECT_EQ(tor.data(2), Ports{0});
}

TEST_P(ThemisD, AQpThatBeginsAnewIsFollowed) {
  Tor tor(kConnection, pipes());
  tor.data(0);
  for (unsigned i = 0; i < kFarPacketsMax; i++) tor.data(5001 + 2 * 8 * i);
  EXPECT_EQ(tor.count("qps_begun_anew"), 1u);
  const std::uint32_t at = 5001 + 2 * 8 * (kFarPacketsMax - 1);
  tor.data(at + 2);
  EXPECT_EQ(tor.nack(at + 1), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(at + 3).size(), 2u) << "valid";
}

TEST_P(ThemisD, ReadRequestsRaiseDoubt) {
  Tor tor(kConnection, pipes());
  tor.data(0);
  roce::PacketSpec read = packet(true, IBV_OPCODE_RC_RDMA_READ_REQUEST, 1);
  read.dma_length = 3000;
  tor.give(2, read);
  tor.data(5);
  EXPECT_EQ(tor.nack(3).size(), 1u) << "of the READ's PSNs nothing is known";
  EXPECT_EQ(tor.count("nack_doubt"), 1u);
  tor.data(4);
  EXPECT_EQ(tor.nack(4), Ports{}) << "invalid";
}

TEST_P(ThemisD, DoubtOfAReadReachesAsFarAsItsPsns) {
  Tor tor(kConnection, pipes());
  tor.data(0);  // 1024 bytes: the path MTU
  roce::PacketSpec read = packet(true, IBV_OPCODE_RC_RDMA_READ_REQUEST, 1);
  read.dma_length = 3000;
  tor.give(2, read);
  for (std::uint32_t psn = 4; psn < 18; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  tor.data(19);
  EXPECT_EQ(tor.nack(18).size(), 1u) << "its bit was not written in the round before";
  EXPECT_EQ(tor.count("nack_doubt"), 1u);
  for (std::uint32_t psn = 18; psn < 24; psn++) {
    tor.data(psn);
    tor.ack(psn);
  }
  tor.data(25);
  tor.data(24);
  EXPECT_EQ(tor.nack(24), Ports{}) << "two windows of 8 behind PSN 3 there is none";
  EXPECT_EQ(tor.count("drop_nack_invalid"), 1u);
}

TEST_P(ThemisD, SprayOffIsInvisible) {
  Tor tor(std::string(kConnection) + ", spray: off", pipes());
  for (std::uint32_t psn : {0, 1, 3, 2}) EXPECT_EQ(tor.data(psn), Ports{0});
  EXPECT_EQ(tor.nack(2).size(), 1u);
  EXPECT_EQ(tor.count("qps_made"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Pipes, ThemisD, testing::Values(1, 2));

}  // namespace
}  // namespace rocebox::themis
