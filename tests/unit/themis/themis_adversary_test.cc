// SPDX-License-Identifier: BSD-3-Clause
// Bad input: QPs that look alike, forged answers, PSNs from elsewhere, paths that flap, more NICs and pipes than one.
// All of it is counted and bounded, and in doubt the NACK passes.
#include <random>

#include "runtime/roce/psn.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

// Two NICs of the rack, and two elsewhere, whose QPs have the same numbers.
TEST(ThemisAdversary, EqualQpNumbersOfOtherNicsAreOtherConnections) {
  Tor tor(
      "connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x11, first_psn: 0},"
      "{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.2, remote_qpn: 0x11, first_psn: 0}]");
  const auto with = [](roce::PacketSpec spec, bool inbound, std::uint8_t far) {
    auto& [source, destination] = spec.underlay.addresses;
    (inbound ? source : destination) = roce::ipv4(10, 0, 1, far);
    spec.destination_qp = 0x11;
    return spec;
  };
  for (const std::uint8_t far : {std::uint8_t{1}, std::uint8_t{2}}) tor.give(0, with(write(false, 0), false, far));
  EXPECT_EQ(tor.count("qps_made"), 2u);
  for (std::uint32_t psn : {0, 1, 2, 3}) tor.give(2, with(write(true, psn), true, 1));
  tor.give(3, with(write(true, 3), true, 2));
  EXPECT_EQ(tor.give(0, with(response(false, 2, kNackSyndrome), false, 1)), Ports{}) << "its packet came";
  EXPECT_EQ(tor.count("drop_nack_invalid"), 1u);
  EXPECT_EQ(tor.give(0, with(response(false, 2, kNackSyndrome), false, 2)), Ports{}) << "nothing on its path yet";
  EXPECT_EQ(tor.count("drop_nack_undetermined"), 1u);
  EXPECT_EQ(tor.give(2, with(write(true, 4), true, 1)), Ports{0}) << "proves nothing for the other";
  EXPECT_EQ(tor.give(2, with(write(true, 4), true, 2)).size(), 2u);
}

// A QP number that is used again, for another QP elsewhere: what was learnt is contradicted, and learnt anew.
TEST(ThemisAdversary, AQpNumberThatIsUsedAgainIsLearntAnew) {
  Tor tor("qp_timeout: 10s");
  const auto converse = [&tor](std::uint32_t first, std::uint32_t qpn) {
    for (std::uint32_t psn = first; psn < first + 10; psn++) {
      tor.data(psn);
      roce::PacketSpec ack = response(false, psn, kAckSyndrome);
      ack.destination_qp = qpn;
      tor.give(0, ack);
    }
  };
  converse(100, kRemoteQpn);
  ASSERT_EQ(tor.count("qps_made"), 1u);
  converse(9'000'000, 0x99);
  tor.ack(100);  // the old QP's last word fits nothing any more
  converse(9'000'010, 0x99);
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("qps_made"), 2u);
  tor.data(9'000'021);
  roce::PacketSpec nack = response(false, 9'000'021, kNackSyndrome);
  nack.destination_qp = 0x99;
  EXPECT_EQ(tor.give(0, nack), Ports{}) << "invalid";
}

TEST(ThemisAdversary, ForgedAnswersFromTheFabricMoveNothing) {
  Tor tor(kConnection);
  tor.meet();
  for (std::uint32_t psn : {0, 1, 3}) tor.data(psn);
  for (const Port from : {Port{1}, Port{2}, Port{3}}) tor.give(from, response(false, 2, kAckSyndrome));
  EXPECT_GE(tor.count("answer_wrong_port"), 1u);
  EXPECT_EQ(tor.nack(2), Ports{}) << "still undetermined, not behind the window";
  EXPECT_EQ(tor.count("drop_nack_undetermined"), 1u);
}

TEST(ThemisAdversary, AForgedAckWithinTheWindowMakesNacksPass) {
  Tor tor(kConnection);
  tor.meet();
  for (std::uint32_t psn : {0, 1, 3, 5}) tor.data(psn);
  tor.ack(5);
  EXPECT_EQ(tor.nack(2).size(), 1u);
  EXPECT_EQ(tor.count("nack_behind_window"), 1u);
  tor.ack(500);
  EXPECT_EQ(tor.nack(400).size(), 1u) << "an ACK of what was not sent moves nothing";
  EXPECT_EQ(tor.count("nack_ahead_of_data"), 1u);
}

TEST(ThemisAdversary, AForgedNackTakesNoMoreThanTheStash) {
  Tor tor(kConnection);
  tor.meet();
  for (std::uint32_t psn : {1, 3}) tor.data(psn);
  EXPECT_EQ(tor.nack(0), Ports{});
  EXPECT_EQ(tor.nack(2), Ports{}) << "as if PSN 0 had come";
  EXPECT_EQ(tor.nack(0).size(), 1u) << "now behind the window: it passes";
  EXPECT_EQ(tor.data(4).size(), 2u) << "and the stash is sent when it is sure";
}

// Requests of one QP by two ports of the switch (a flow that moves): only those to the NIC's port count.
TEST(ThemisAdversary, RequestsThatLeaveByAnotherPortAreNotRecorded) {
  for (const char* pipes : {"pipes: 1", "pipes: 4"}) {
    std::string yaml = tor_yaml(kConnection, pipes);
    const std::string entries = "  macs:\n";
    Tor tor =
        Tor::with(yaml.insert(yaml.find(entries) + entries.size(), "    - {mac: 02:00:00:00:00:03, ports: [p1]}\n"));
    tor.meet();
    tor.data(0);
    roce::PacketSpec strayed = write(true, 2);
    strayed.underlay.destination_mac[5] = 3;  // the other NIC
    EXPECT_EQ(tor.give(2, strayed), Ports{1});
    EXPECT_EQ(tor.count("data_wrong_port"), 1u);
    for (std::uint32_t psn : {1, 3}) tor.data(psn);
    EXPECT_EQ(tor.nack(2), Ports{}) << "undetermined: it has not left for the NIC";
    EXPECT_EQ(tor.count("drop_nack_undetermined"), 1u);
  }
}

// A path that comes and goes: of what is lost on it every NACK passes at last, and its avoidance ends.
TEST(ThemisAdversary, APathThatFlapsStallsNothing) {
  Tor tor(std::string(kConnection) + ", stash_timeout: 50us, avoidance_window: 4");
  tor.meet();
  std::mt19937_64 random(7);
  std::uint32_t base = 0;
  unsigned nacked = 0, passed = 0;
  for (unsigned round = 0; round < 200; round++) {
    const bool up = random() % 3;
    const std::size_t before = tor.out.size();
    bool lost = false;
    for (std::uint32_t psn = base; psn < base + 6; psn++) {
      if (psn % 2 == 0 && !up)
        lost = true;
      else
        tor.data(psn);
    }
    if (lost) {
      tor.nack(base + base % 2);
      tor.run_until(tor.now += 100 * kMicrosecond);
      nacked++;
      for (std::size_t i = before; i < tor.out.size(); i++) passed += tor.out[i].port >= 2;
    }
    for (std::uint32_t psn = base; psn < base + 6; psn += 2) tor.data(psn);  // sent again
    tor.ack((base += 6) - 1);
  }
  EXPECT_GT(nacked, 20u);
  EXPECT_EQ(passed, nacked);
  EXPECT_EQ(tor.count("nack_valid") + tor.count("undetermined_valid") + tor.count("undetermined_aged") +
                tor.count("undetermined_ooo_degree"),
            nacked);
}

TEST(ThemisAdversary, AnyPsnLeavesTheNicsNacksAlone) {
  Tor tor(kConnection);
  tor.meet();
  std::mt19937_64 random(3);
  for (unsigned i = 0; i < 20'000; i++) {
    const auto psn = static_cast<std::uint32_t>(random() & roce::kPsnMask);
    switch (random() % 4) {
      case 0:
        tor.give(0, response(false, psn, static_cast<std::uint8_t>(random())));
        break;
      case 1:
        tor.give(2, response(true, psn, static_cast<std::uint8_t>(random())));
        break;
      default:
        tor.give(random() % 2 ? 2 : 3, write(true, psn));
    }
  }
  EXPECT_LE(tor.count("qps_made"), 1u);
  EXPECT_EQ(tor.count("drop_nack_invalid"), 0u) << "no packet of the window came";
}

}  // namespace
}  // namespace rocebox::themis
