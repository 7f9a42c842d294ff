// SPDX-License-Identifier: BSD-3-Clause
// Packets that Themis-D has not seen, or in no order: the NACK of a packet that is lost passes nevertheless.
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

constexpr const char* kBothWays =
    "stash_timeout: 0ns, connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12}]";

class ThemisDoubt : public InPipes {
 protected:
  static void converse(Tor& tor, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t psn = first; psn <= last; psn++) {
      tor.data(psn);
      tor.ack(psn);
    }
  }
  // `psn` is lost: its NACK comes, and whatever it needs to be understood.
  static void expect_not_blocked(Tor& tor, std::uint32_t psn) {
    tor.data(psn + 1);
    std::size_t left = tor.nack(psn).size();
    for (std::uint32_t more = psn + 2; more < psn + 6; more++) left += tor.data(more).size() - 1;
    EXPECT_EQ(left, 1u) << psn;
  }
};

TEST_P(ThemisDoubt, ABurstThatMakesTheState) {
  Tor tor(kBothWays, pipes());
  tor.meet();
  for (std::uint32_t psn = 100; psn < 105; psn++) tor.send(tor.now + 100, 2, test::frame(write(true, psn)));
  tor.now += 100;
  tor.ports();
  tor.ack(104);
  converse(tor, 105, 117);
  expect_not_blocked(tor, 118);
  EXPECT_EQ(tor.count("nack_doubt"), 0u) << "the state begins behind all of them";
}

TEST_P(ThemisDoubt, AQpThatBeginsAnewOutOfOrder) {
  Tor tor(kConnection, pipes());
  tor.data(0);
  for (std::uint32_t psn = 5001; psn < 5015; psn++) tor.data(psn);
  tor.data(5016);
  tor.data(5015);
  EXPECT_EQ(tor.count("qps_begun_anew"), 1u);
  tor.ack(5016);
  converse(tor, 5017, 5031);
  expect_not_blocked(tor, 5032);
}

TEST_P(ThemisDoubt, ASilentConnectionThatGoesOn) {
  Tor tor(std::string(kBothWays) + ", qp_timeout: 1ms", pipes());
  tor.meet();
  converse(tor, 100, 104);
  tor.run_until(tor.now += 20 * kMillisecond);
  EXPECT_EQ(tor.count("qps_aged"), 1u);
  tor.meet();
  converse(tor, 105, 117);
  expect_not_blocked(tor, 118);
}

TEST_P(ThemisDoubt, APacketByAnotherPortOfTheNic) {
  Tor tor(kConnection, pipes());
  converse(tor, 0, 1);
  tor.ack(2);  // which Themis-D has not seen
  tor.data(3);
  tor.ack(3);
  converse(tor, 4, 17);
  expect_not_blocked(tor, 18);
}

TEST_P(ThemisDoubt, AConnectionThatGoesOnALittleAhead) {
  Tor tor(kConnection, pipes());
  converse(tor, 0, 3);
  converse(tor, 7, 19);
  expect_not_blocked(tor, 20);
}

// One path, so a NACK is certain at once; and out of order the NIC may have thrown them away.
TEST_P(ThemisDoubt, OperationsThatAreNotSprayedAreNotJudged) {
  Tor tor(std::string(kConnection) + ", stash_timeout: 0ns", pipes());
  const auto send = [&](std::uint32_t psn) { return tor.give(2, packet(true, IBV_OPCODE_RC_SEND_ONLY, psn)); };
  tor.meet();
  for (const std::uint32_t psn : {0, 1, 3}) send(psn);
  EXPECT_EQ(tor.nack(2).size(), 1u);
  for (const std::uint32_t psn : {4, 5, 2}) EXPECT_EQ(send(psn).size(), 1u);
  EXPECT_EQ(tor.nack(3).size(), 1u) << "it came before 2: the NIC may have thrown it away";
  EXPECT_EQ(tor.count("nack_doubt"), 2u);
  EXPECT_EQ(tor.count("drop_nack_invalid"), 0u);
}

TEST_P(ThemisDoubt, AStashInFrontOfWhatIsNotSprayedPasses) {
  Tor tor(std::string(kConnection) + ", stash_timeout: 0ns", pipes());
  tor.meet();
  tor.data(1);
  EXPECT_EQ(tor.nack(0), Ports{});
  const Ports left = tor.give(2, packet(true, IBV_OPCODE_RC_SEND_ONLY, 7));
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(tor.out.back().bytes[14 + 20 + 8 + 4] & 0x3F, 0) << "no path has failed";
  EXPECT_EQ(tor.count("undetermined_doubt"), 1u);
}

TEST_P(ThemisDoubt, AReadOfMoreThanAWindow) {
  Tor tor(kConnection, pipes());
  converse(tor, 0, 0);
  roce::PacketSpec read = packet(true, IBV_OPCODE_RC_RDMA_READ_REQUEST, 1);
  read.dma_length = 20 * 1024;
  tor.give(2, read);
  tor.data(21);
  tor.ack(21);
  EXPECT_EQ(tor.count("windows_jumped"), 1u);
  EXPECT_EQ(tor.count("qps_begun_anew"), 0u);
  for (const std::uint32_t psn : {22, 24, 23}) tor.data(psn);
  EXPECT_EQ(tor.nack(23), Ports{}) << "invalid: the window follows";
  expect_not_blocked(tor, 25);
}

TEST_P(ThemisDoubt, StashesOfManyConnectionsAgeAtOnce) {
  constexpr std::uint32_t kQps = 200;
  std::string rows;
  for (std::uint32_t i = 0; i < kQps; i++)
    rows += "{local: 10.0.0.1, local_qpn: " + std::to_string(100 + i) +
            ", remote: 10.0.1.1, remote_qpn: " + std::to_string(1000 + i) + ", first_psn: 0},";
  Tor tor("qps: 400, connections: [" + rows + "]", pipes());
  const auto of = [](roce::PacketSpec spec, std::uint32_t qpn) {
    spec.destination_qp = qpn;
    return spec;
  };
  for (std::uint32_t i = 0; i < kQps; i++) tor.give(0, of(write(false, 0), 1000 + i));
  for (std::uint32_t i = 0; i < kQps; i++) tor.give(2, of(write(true, 1), 100 + i));
  tor.now += 1000;
  for (std::uint32_t i = 0; i < kQps; i++)
    tor.send(tor.now, 0, test::frame(of(response(false, 0, kNackSyndrome), 1000 + i)));
  tor.ports();
  const std::size_t before = tor.out.size();
  tor.run_until(tor.now += 10 * kMillisecond);
  ASSERT_EQ(tor.out.size() - before, kQps);
  EXPECT_EQ(tor.out.back().at, tor.out[before].at);
  EXPECT_EQ(tor.count("undetermined_aged"), kQps);
}

INSTANTIATE_TEST_SUITE_P(Pipes, ThemisDoubt, testing::Values(1, 2));

}  // namespace
}  // namespace rocebox::themis
