// SPDX-License-Identifier: BSD-3-Clause
// Answers whose way out is in another pipe than their data's: they come back to nobody, keep their order, and do not
// wait behind what goes the other way.
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

constexpr const char* kUnknownFirst =
    "connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12}]";

void expect_all_leave_for_the_fabric(const Tor& tor, std::size_t from) {
  for (std::size_t i = from; i < tor.out.size(); i++) EXPECT_GE(tor.out[i].port, 2) << i;
}

TEST(ThemisTurned, AnswersOfAConnectionThatHasSentNothingGoTheirWay) {
  Tor tor(kUnknownFirst, "pipes: 2");
  tor.meet();
  EXPECT_EQ(tor.ack(100).size(), 1u);
  EXPECT_EQ(tor.nack(101).size(), 1u);
  expect_all_leave_for_the_fabric(tor, 0);
}

TEST(ThemisTurned, WhoLosesItsStateMeanwhileGetsItsAnswersNevertheless) {
  Tor tor("qp_timeout: 10s", "pipes: 2\ntraffic_manager: {rates: [{ports: [p0], rate: 1Gbps}]}");
  for (std::uint32_t psn = 100; psn <= 110; psn++) {
    tor.data(psn);
    tor.run_until(tor.now += 20 * kMicrosecond);
    tor.ack(psn);
    tor.run_until(tor.now += 20 * kMicrosecond);
  }
  ASSERT_EQ(tor.count("qps_made"), 1u);
  const std::size_t before = tor.out.size();
  for (std::uint32_t psn = 111; psn < 115; psn++) tor.data(psn);  // so that answers wait at p0
  tor.nack(112);
  tor.ack(5'000'000);
  tor.run_until(tor.now += kMillisecond);
  EXPECT_EQ(tor.count("pairs_undone"), 1u);
  EXPECT_EQ(tor.count("turned_unjudged"), 2u);
  std::size_t responses = 0;
  for (std::size_t i = before; i < tor.out.size(); i++) responses += tor.out[i].port >= 2;
  EXPECT_EQ(responses, 2u);
  EXPECT_EQ(tor.out.size() - before, 4 + 2u) << "and none came back to its NIC";
}

TEST(ThemisTurned, ReadResponsesKeepTheirOrder) {
  Tor tor(kConnection, "pipes: 2\ntraffic_manager: {rates: [{ports: [p0], rate: 10Gbps}]}");
  tor.meet();
  for (std::uint32_t psn = 0; psn < 4; psn++) tor.data(psn);
  const std::size_t before = tor.out.size();
  std::uint32_t psn = 1;
  for (const std::uint8_t opcode : {IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
                                    IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST}) {
    roce::PacketSpec spec = packet(false, opcode, psn++);
    spec.syndrome = kAckSyndrome;
    tor.send(tor.now += 1, 0, test::frame(spec));
  }
  tor.run_until(tor.now += kMillisecond);
  std::vector<std::uint8_t> opcodes;
  for (std::size_t i = before; i < tor.out.size(); i++)
    if (tor.out[i].port >= 2) opcodes.push_back(tor.out[i].bytes[14 + 20 + 8]);
  EXPECT_EQ(opcodes, (std::vector<std::uint8_t>{0x0D, 0x0E, 0x0E, 0x0F}));
  EXPECT_EQ(tor.count("answer_wrong_port"), 0u);
}

// The queue of the NIC's own port is full of what others send to it.
TEST(ThemisTurned, AnIncastToTheNicDoesNotHoldItsAnswers) {
  for (const char* pipes : {"pipes: 1", "pipes: 2"}) {
    Tor tor(kConnection, std::string(pipes) +
                             "\ntraffic_manager: {rates: [{ports: [p0], rate: 1Gbps}], buffer: 64KiB, class_of: dscp}");
    tor.meet();
    for (std::uint32_t psn = 0; psn < 8; psn++) tor.data(psn);
    roce::PacketSpec other = write(true, 0);
    other.destination_qp = 0x99;
    for (int i = 0; i < 100; i++) tor.give(3, other);
    EXPECT_GT(tor.count("drop_buffer_full"), 0u);
    const std::size_t before = tor.out.size();
    const Nanos begin = tor.now;
    for (std::uint32_t psn = 0; psn < 8; psn++) tor.ack(psn);
    tor.run_until(tor.now += 10 * kMillisecond);
    std::size_t responses = 0;
    for (std::size_t i = before; i < tor.out.size(); i++) {
      if (tor.out[i].port < 2) continue;
      responses++;
      EXPECT_LT(tor.out[i].at, begin + 50 * kMicrosecond) << "at most one packet of the others ahead";
      EXPECT_EQ(tor.out[i].bytes[15], 0x68) << "in its own class again";
    }
    EXPECT_EQ(responses, 8u) << pipes;
  }
}

}  // namespace
}  // namespace rocebox::themis
