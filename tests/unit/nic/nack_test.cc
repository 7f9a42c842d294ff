// SPDX-License-Identifier: BSD-3-Clause
// What a NACK of RNIC-SR does to its sender beside the packet that is sent again: a stall, which Themis's Figure 2c
// shows, and a loss signal to DCQCN (Figure 2b).
#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::nacks {
namespace {

constexpr std::uint32_t kBytes = 1 << 20, kPsn = 100;

struct Ended {
  Nanos at = kNever;
  double rate = -1;  // of the sender, then
  std::uint64_t sent_again = 0, nacks = 0;
};

// One WRITE, of which packet 200 is lost once.
Ended write(const std::string& nic, bool loses = true) {
  NicBox box("rate: 10Gbps\n" + nic,
             loses ? "delay: 1us\nevents: [{qpn: 17, psn: 300, source: 10.0.0.1, do: drop}]" : "delay: 1us");
  box.connect({.psn = kPsn, .bytes = kBytes, .timeout = 16});
  Ended ended;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc& wc) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    ended.at = host.now();
    ended.rate = box.sides[0].qp->rate;
  };
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, kBytes);
  box.run(kSecond);
  ended.sent_again = box.count(0, "retransmitted_packets");
  ended.nacks = box.count(1, "out_of_sequence");
  return ended;
}

// The queue pair is silent for so long after each packet that it sends again, and no longer.
TEST(Nacks, StallTheSenderForAsLongAsIsSaid) {
  const Ended none = write("recovery: rnic_sr");
  ASSERT_GT(none.sent_again, 0u);
  for (const Nanos stall : {20 * kMicrosecond, 300 * kMicrosecond}) {
    const Ended stalled = write("recovery: rnic_sr\nretransmit_stall: " + std::to_string(stall) + "ns");
    EXPECT_GE(stalled.sent_again, none.sent_again);
    const auto stalls = static_cast<Nanos>(stalled.sent_again) * stall;
    EXPECT_NEAR(static_cast<double>(stalled.at - none.at), static_cast<double>(stalls), 5000) << stalled.sent_again;
  }
  const Ended lossless = write("recovery: rnic_sr\nretransmit_stall: 300us", false);
  EXPECT_EQ(lossless.sent_again, 0u);
  EXPECT_LT(lossless.at, none.at);
}

TEST(Nacks, AreALossToDcqcnWhereThePaperHasThem) {
  const std::string dcqcn = "congestion_control: dcqcn\nrecovery: ";
  EXPECT_EQ(write(dcqcn + "rnic_sr", false).rate, 10e9);
  EXPECT_LT(write(dcqcn + "rnic_sr").rate, 10e9);
  EXPECT_EQ(write(dcqcn + "go_back_n").rate, 10e9) << "whose NAKs mlx5's DCQCN does not know";
}

// What has come behind a packet whose retransmission is lost, too, is known by PSN modulo the window. The timer ends
// that recovery, and then those bits must say nothing of the PSNs a window later, of which one is lost.
TEST(Nacks, WhatHadComeBeforeATimeoutIsNotTakenForWhatComesLater) {
  constexpr std::uint32_t kWindow = 64, kLost = kPsn + 10;
  const auto drop = [](std::uint32_t psn, unsigned occurrence) {
    return "{qpn: 17, source: 10.0.0.1, psn: " + std::to_string(psn) + ", occurrence: " + std::to_string(occurrence) +
           ", do: drop}";
  };
  for (std::uint32_t behind = 1; behind < kWindow; behind += 7) {
    NicBox box("rate: 10Gbps\nrecovery: selective\nwindow: " + std::to_string(kWindow),
               "delay: 1us\nevents: [" + drop(kLost, 1) + ", " + drop(kLost, 2) + ", " +
                   drop(kLost + kWindow + behind, 1) + "]");
    box.connect({.psn = kPsn, .bytes = kBytes, .timeout = 8});
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, kBytes);
    box.run(kSecond);
    ASSERT_EQ(box.completions(0).size(), 1u);
    EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 1u) << behind;
  }
}

}  // namespace
}  // namespace rocebox::test::nacks
