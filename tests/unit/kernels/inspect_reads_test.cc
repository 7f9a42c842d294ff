// SPDX-License-Identifier: BSD-3-Clause
// The inspect kernel on READs, round trips and goodput.
#include "tests/unit/kernels/inspect_box.h"

namespace rocebox::inspect {
namespace {

using namespace test_box;

TEST(Inspect, AReadTakesItsPsnsWhenThePathMtuIsKnown) {
  Config config;
  config.mtu = 3;  // 1024
  Box box(config);
  box.check(box.read(10, 5000));
  box.only(15);
  box.check(box.read(16, 0));
  box.only(17);
  EXPECT_EQ(box.requests()["unique"], 8);
  EXPECT_EQ(box.requests()["missing"], 0);
  EXPECT_EQ(box.flow()["messages"], 4);
}

TEST(Inspect, AReadOfUnknownPathMtu) {
  struct {
    const char* title;
    std::uint32_t length, next;
    int unique, missing, pmtu;
  } const cases[] = {
      {"one MTU fits", 5000, 15, 6, 0, 1024},
      {"several give the same count", 1000, 11, 2, 0, 0},
      {"none fits: loss", 5000, 17, 2, 6, 0},
      {"short: one PSN under any", 256, 11, 2, 0, 0},
  };
  for (const auto& c : cases) {
    Box box;
    box.check(box.read(10, c.length));
    box.only(c.next);
    EXPECT_EQ(box.requests()["unique"], c.unique) << c.title;
    EXPECT_EQ(box.requests()["missing"], c.missing) << c.title;
    EXPECT_EQ(box.flow()["pmtu"], c.pmtu) << c.title;
  }
  Box box;
  box.check(box.read(10, 5000));
  EXPECT_EQ(box.requests()["last_psn"], 10);
  box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, 10, 0, 2048));
  EXPECT_EQ(box.requests()["last_psn"], 12) << "the response shows the MTU; no next request is needed";
  EXPECT_EQ(box.requests()["unique"], 3);
  box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, 11, 0, 2048));
  box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, 12, 0, 904));
  EXPECT_EQ(box.report()["totals"]["pairing"]["undone"], 0);
  EXPECT_EQ(box.flow(1)["read_responses"]["goodput_bytes"], 5000);
}

TEST(Inspect, ReadResponsesHaveTheirOwnPsns) {
  Box box;
  const auto response = [&](unsigned kind, std::uint32_t psn) {
    box.check(box.response(static_cast<std::uint8_t>(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST + kind), psn, 0, 1024));
  };
  box.check(box.read(10, 3072));
  response(0, 10), response(1, 11), response(2, 12);
  response(3, 40);                   // other requests between: no loss
  response(0, 50), response(1, 52);  // 51 is lost
  response(1, 51);
  const Json got = box.flow(1)["read_responses"];
  EXPECT_EQ(got["unique"], 7);
  EXPECT_EQ(got["missing"], 0);
  EXPECT_EQ(got["out_of_order"], 1);
  EXPECT_EQ(got["lost"], 0);
  EXPECT_FALSE(box.flow(1).contains("requests"));
}

TEST(Inspect, ARequestForTheRestOfAReadMakesItsResponsesRetransmissions) {
  Box box;
  const auto response = [&](unsigned kind, std::uint32_t psn) {
    box.check(box.response(static_cast<std::uint8_t>(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST + kind), psn, 0, 1024));
  };
  box.check(box.read(10, 4096));
  response(0, 10), response(1, 12), response(2, 13);
  box.check(box.read(11, 3072));
  response(1, 11), response(1, 12), response(2, 13), response(2, 13);
  EXPECT_EQ(box.requests()["retransmissions"], 1);
  EXPECT_EQ(box.flow()["messages"], 1);
  const Json got = box.flow(1)["read_responses"];
  EXPECT_EQ(got["retransmissions"], 3);
  EXPECT_EQ(got["duplicates"], 1);
  EXPECT_EQ(got["lost"], 1);
  EXPECT_EQ(got["missing"], 0);
}

// Go-back-N over READs: the first response of the first is missing, which that of the next one shows.
TEST(Inspect, ReadsThatAreAskedForInARowMakeAllTheirResponsesRetransmissions) {
  Config config;
  config.mtu = 3;  // 1024
  Box box(config);
  const auto responses = [&](std::uint32_t psn) {
    box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, psn, 0, 1024));
    box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, psn + 1, 0, 1024));
  };
  for (const std::uint32_t psn : {10u, 12u, 14u}) box.check(box.read(psn, 2048));
  box.check(box.response(IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, 11, 0, 1024));
  responses(12);
  for (const std::uint32_t psn : {10u, 12u, 14u}) box.check(box.read(psn, 2048));
  responses(10);
  responses(12);
  responses(14);
  EXPECT_EQ(box.requests()["retransmissions"], 3);
  EXPECT_EQ(box.requests()["duplicates"], 0);
  const Json got = box.flow(1)["read_responses"];
  EXPECT_EQ(got["retransmissions"], 4);
  EXPECT_EQ(got["duplicates"], 0);
  EXPECT_EQ(got["out_of_order"], 0);
  EXPECT_EQ(got["unique"], 6);
}

TEST(Inspect, ResponsesOfAnEarlierRunAreNotThoseThatAreAskedForSince) {
  Box box;
  const auto response = [&](unsigned kind, std::uint32_t psn) {
    box.check(box.response(static_cast<std::uint8_t>(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST + kind), psn, 0, 1024));
  };
  box.check(box.read(10, 4096));
  response(0, 10), response(1, 11), response(1, 12), response(2, 13);
  box.check(box.read(10, 4096));
  response(0, 10), response(1, 11);
  box.check(box.read(11, 3072));
  response(1, 12), response(2, 13);
  response(0, 11), response(1, 12), response(2, 13);
  const Json got = box.flow(1)["read_responses"];
  EXPECT_EQ(got["retransmissions"], 7);
  EXPECT_EQ(got["duplicates"], 0);
}

TEST(Inspect, AResponseBeyondAnAtomicsOwnAsksForThatAgain) {
  Box box;
  const auto atomic = [&](std::uint32_t psn) { box.check(box.data(IBV_OPCODE_RC_FETCH_ADD, psn)); };
  for (const std::uint32_t psn : {10u, 11u, 11u, 12u}) atomic(psn);
  EXPECT_EQ(box.requests()["duplicates"], 1) << "nothing asks for it";
  box.check(box.response(IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE, 11));
  for (const std::uint32_t psn : {10u, 11u, 12u}) atomic(psn);
  EXPECT_EQ(box.requests()["retransmissions"], 3);
  EXPECT_EQ(box.requests()["timeouts_suspected"], 0);
  for (const std::uint32_t psn : {10u, 11u, 12u}) box.check(box.response(IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE, psn));
  atomic(12);
  EXPECT_EQ(box.requests()["retransmissions"], 3);
  EXPECT_EQ(box.requests()["duplicates"], 2);
}

TEST(Inspect, RoundTripsAndGoodput) {
  Box box;
  box.at(0, box.data(IBV_OPCODE_RC_SEND_ONLY, 1, 1000));
  box.at(10 * kUs, box.data(IBV_OPCODE_RC_SEND_ONLY, 2, 1000));
  box.at(11 * kUs, box.data(IBV_OPCODE_RC_SEND_ONLY, 2, 1000));
  box.at(15 * kUs, box.ack(1));
  box.at(16 * kUs, box.ack(2));
  box.at(20 * kUs, box.data(IBV_OPCODE_RC_SEND_ONLY, 3, 500));
  box.at(25 * kUs, box.ack(3, 0x60));
  box.at(27 * kUs, box.ack(3));
  box.at(29 * kUs, box.ack(3));
  const Json rtt = box.flow()["rtt"];
  EXPECT_EQ(rtt["count"], 2) << "not of the doubled one, and one for each PSN";
  EXPECT_EQ(rtt["min"], 7 * kUs);
  EXPECT_EQ(rtt["max"], 15 * kUs);
  EXPECT_EQ(rtt["mean"], 11 * kUs);
  EXPECT_EQ(box.requests()["goodput_bytes"], 2500);
  EXPECT_DOUBLE_EQ(box.requests()["goodput_bits_per_second"], 2500 * 8 / 20e-6);
}

}  // namespace
}  // namespace rocebox::inspect
