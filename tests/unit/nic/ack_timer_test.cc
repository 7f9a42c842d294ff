// SPDX-License-Identifier: BSD-3-Clause
// The timer of a requester (IB specification, 9.7.6.1.3) measures how long a response takes to what has left and asks
// for one: not how long packets wait for their turn at a queue pair's rate, which here takes eight times as long.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

constexpr const char* kRecoveries[] = {"go_back_n", "rnic_sr", "selective", "timeout_only"};
constexpr unsigned kPackets = 40;

// 8.7 ms a packet; the timeout, 8, is 1.05 ms.
std::string slow(const char* recovery) {
  return std::string("rate: 100Gbps\nlimiter: {qp_rate: 1Mbps}\nack_every: 64\nrecovery: ") + recovery;
}

void expect_complete(NicBox& box) {
  ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS) << box.state();
  EXPECT_EQ(box.sides[0].memory, box.sides[1].memory);
}

void write(NicBox& box, PairOptions options = {}) {
  options.bytes = kPackets * 1024;
  box.connect(options);
  for (std::size_t i = 0; i < options.bytes; i++) box.sides[0].memory[i] = static_cast<std::uint8_t>(i * 7 + i / 1024);
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, static_cast<std::uint32_t>(options.bytes));
  box.run();
}

TEST(AckTimer, DoesNotRunForPacketsThatWaitForTheirRate) {
  for (const char* recovery : kRecoveries) {
    SCOPED_TRACE(recovery);
    NicBox box(slow(recovery));
    write(box);
    expect_complete(box);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
    EXPECT_EQ(box.count(0, "retransmitted_packets"), 0u);
  }
}

// What a NAK asks for waits for its turn, too.
TEST(AckTimer, DoesNotRunForARetransmissionThatWaits) {
  for (const char* recovery : {"go_back_n", "rnic_sr", "selective"})
    // Of two in a row `rnic_sr` is told of one; a timeout finds the other.
    for (const std::vector<int>& lost :
         std::vector<std::vector<int>>{{0}, {10}, {38}, {5, 20}, {37, 38}, {5, 20, 37, 38}}) {
      if (lost.back() == 38 && lost.size() > 1 && recovery == std::string("rnic_sr")) continue;
      SCOPED_TRACE(fmt::format("{}, packets {}", recovery, fmt::join(lost, ", ")));
      std::string events;
      for (const int psn : lost) events += fmt::format("{{qpn: 0x11, relative_psn: {}, do: drop}},", psn);
      NicBox box(slow(recovery), fmt::format("delay: 1us\nforward: {{events: [{}]}}", events));
      write(box);
      expect_complete(box);
      EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 0u);
      EXPECT_GT(box.count(0, "packet_seq_err"), 0u);
    }
}

// The last packet asks, and nothing comes: one timeout after it left, and whatever is sent again has all of its own.
TEST(AckTimer, RunsFromWhenThePacketThatAsksLeaves) {
  for (const char* recovery : kRecoveries) {
    SCOPED_TRACE(recovery);
    NicBox box(slow(recovery), "delay: 1us\nforward: {events: [{qpn: 0x11, relative_psn: 39, do: drop}]}");
    write(box, {.retry_cnt = 1});
    expect_complete(box);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 1u);
  }
}

// Of a READ the response may be long: its end is what the timer waits for.
TEST(AckTimer, RunsUntilTheLastOfAReadHasCome) {
  NicBox box("rate: 100Gbps", "delay: 1us\nreverse: {events: [{opcode: 0x0f, do: drop, occurrence: 1}]}");
  box.connect({.bytes = kPackets * 1024});
  box.post(0, 1, IBV_WR_RDMA_READ, 0, kPackets * 1024);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 1u);
}

}  // namespace
}  // namespace rocebox::test
