// SPDX-License-Identifier: BSD-3-Clause
// Who sends when: groups, the greedy policy, token buckets, pause frames.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/roce/parse.h"
#include "tests/unit/nic/senders_kit.h"

namespace rocebox::test::scheduling {
namespace {

constexpr Nanos kLong = 20 * kMillisecond;

TEST(NicScheduler, RoundRobinSharesByPackets) {
  Senders senders("rate: 10Gbps\nwindow: 64");
  senders.write(senders.add(0), 4096, 8);
  senders.write(senders.add(0), 65536, 8);
  senders.run(kSpan);
  EXPECT_NEAR(senders.gbps(0, kSpan) / senders.gbps(1, kSpan), 1, 0.05);
  drain(senders);
}

TEST(NicScheduler, WeightedGroupsShareByWeightAndStrictOnesGoFirst) {
  Senders weighted(
      "rate: 10Gbps\nwindow: 64\nscheduler: {groups: [{priority: 1, weight: 3}, {priority: 2, weight: 1}]}");
  weighted.write(weighted.add(1 << 5), 4096, 8);
  weighted.write(weighted.add(2 << 5), 65536, 8);
  weighted.write(weighted.add(2 << 5), 65536, 8);
  weighted.run(kLong);
  const double second = weighted.gbps(1, kLong) + weighted.gbps(2, kLong);
  EXPECT_NEAR(weighted.gbps(0, kLong) / second, 3, 0.15);
  EXPECT_GT(weighted.gbps(0, kLong) + second, 9);
  drain(weighted);
  Senders strict("rate: 10Gbps\nwindow: 64\nscheduler: {groups: [{priority: 5, strict: true}]}");
  strict.write(strict.add(0), 65536, 8);
  strict.run(kSpan / 10);
  strict.write(strict.add(5 << 5), 4096, 64);
  strict.run(kSpan);
  EXPECT_GT(strict.gbps(1, kSpan), 8.5);
  EXPECT_LT(strict.gbps(0, kSpan), 0.5);
  drain(strict);
}

// SCR, Table 2: 33.25 and 57.64 Gbps of two queue pairs with messages of 4 KB and 64 KB. Depths: 64 and 16.
TEST(NicScheduler, GreedyPrefersLargeMessagesAsMeasured) {
  Senders senders("rate: 100Gbps\nscheduler: {policy: greedy}");
  senders.write(senders.add(0), 4096, 64);
  senders.write(senders.add(0), 65536, 16);
  senders.run(kSpan);
  EXPECT_NEAR(senders.gbps(0, kSpan), 33.25, 3.325);
  EXPECT_NEAR(senders.gbps(1, kSpan), 57.64, 5.764);
  drain(senders);
}

// What is begun goes to its end: beside messages of 64 KB, which have a turn each, those of 256 KB have four times as
// much. Short ones have a turn of 36 KB or what is written, as far as there are so many.
TEST(NicScheduler, GreedyTurnsAreWholeMessages) {
  for (const auto& [turn, bytes, depth, other_bytes, times] : {std::tuple("", 65536u, 8u, 262144u, 4.0),
                                                               {"", 4096u, 4u, 262144u, 16.0},
                                                               {"", 1024u, 64u, 4096u, 1.0},
                                                               {", turn: 64KiB", 4096u, 64u, 65536u, 1.0},
                                                               {", turn: 16KiB", 4096u, 64u, 65536u, 4.0}}) {
    SCOPED_TRACE(bytes);
    Senders senders("rate: 100Gbps\nscheduler: {policy: greedy" + std::string(turn) + "}");
    senders.write(senders.add(0), bytes, depth);
    senders.write(senders.add(0), other_bytes, 32);
    senders.run(kSpan);
    EXPECT_NEAR(senders.gbps(1, kSpan) / senders.gbps(0, kSpan), times, 0.1 * times);
    drain(senders);
  }
}

TEST(NicScheduler, TokenBucketsLimitQueuePairsAndThePort) {
  const std::string limits = "rate: 10Gbps\nlimiter: ";
  for (const auto& [what, most] : {std::pair("{qp_rate: 1Gbps}", 2.0),
                                   {"{qp_rate: 1Gbps, low_rate_loss: 50%}", 2.0},
                                   {"{qp_rate: 500Mbps, low_rate_loss: 50%}", 0.75},
                                   {"{port_rate: 1500Mbps}", 1.5}}) {
    SCOPED_TRACE(what);
    Senders senders(limits + what);
    senders.write(senders.add(0), 4096, 8);
    senders.write(senders.add(0), 4096, 8);
    senders.run(kSpan);
    const double bits = senders.gbps(0, kSpan) + senders.gbps(1, kSpan), share = 4096.0 / (4 * 1106 + 16);
    EXPECT_NEAR(bits, most * share, 0.05 * most);
    drain(senders);
  }
  // A bucket of 64 KiB is full at first: so much goes at the port's rate, headers counted.
  Senders senders(limits + "{qp_rate: 100Mbps, qp_burst: 64KiB}");
  senders.write(senders.add(0), 4096, 12);
  senders.run(100 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(senders.loads[0].done), 65536 * 4096.0 / (4 * 1106 + 16), 4096);
  drain(senders);
}

// A queue pair whose time comes while the port sends another packet, or has none chosen ahead, loses nothing of its
// rate.
TEST(NicScheduler, QueuePairsHaveTheirRatesWhateverElseLeaves) {
  for (const char* pcie : {"", "pcie: {bandwidth: 200Gbps}\n"})
    for (const auto& [pairs, gbps] : {std::pair(1, 75), {2, 40}, {8, 12}}) {
      SCOPED_TRACE(fmt::format("{}{} of {} Gbps", pcie, pairs, gbps));
      Senders senders(fmt::format("rate: 100Gbps\n{}limiter: {{qp_rate: {}Gbps}}", pcie, gbps));
      for (int i = 0; i < pairs; i++) senders.write(senders.add(0), 4096, 32);
      constexpr Nanos kShort = kSpan / 4;
      senders.run(kShort);
      const double share = 4096.0 / (4 * 1106 + 16);
      for (std::size_t i = 0; i < senders.qps.size(); i++)
        EXPECT_NEAR(senders.gbps(i, kShort) / share, gbps, 0.03 * gbps);
      drain(senders);
    }
}

// What a port has not sent for a while leaves at once, as far as its bucket goes; a live port is called late.
TEST(NicScheduler, APortWithABucketCatchesUp) {
  const auto micros = [](const std::string& burst) {
    NicBox box("rate: 1Gbps\nlimiter: {port_burst: " + burst + "}");
    box.connect();
    Nanos ended = 0;
    box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
    box.run(100 * kMillisecond);
    const Nanos began = box.now;
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64 * 1024);
    box.run(100 * kMillisecond);
    return static_cast<double>(ended - began) / 1e3;
  };
  const double whole = (64 * 1106 + 16) * 8 / 1e3;
  EXPECT_NEAR(micros("0B"), whole, 15);
  EXPECT_NEAR(micros("32KiB"), whole - 32768 * 8 / 1e3, 15);
  EXPECT_LT(micros("128KiB"), 20);
}

// The largest bucket is more than a million small packets: no instant may be filled with them.
TEST(NicScheduler, AHugeBucketDoesNotLeaveInOneInstant) {
  NicBox box("up: false\nrate: 100Gbps\nlimiter: {port_burst: 1GiB}", "delay: 1us", 1, "",
             "neighbors: [{address: 10.0.0.2, mac: '02:00:00:00:00:02'}]");  // nobody answers
  PairOptions options;
  options.type = IBV_QPT_UC;  // nothing is waited for
  options.mtu = IBV_MTU_256;
  options.bytes = 16 << 20;
  options.without_bytes = true;
  box.connect(options);
  box.run(100 * kMillisecond);
  for (unsigned i = 0; i < 32; i++) box.post(0, i, IBV_WR_RDMA_WRITE, 0, 16 << 20);
  box.run(100);
  EXPECT_GE(box.count(0, "drop_tx_down"), 100u * nic_model::kSendBurst);
  EXPECT_LE(box.count(0, "drop_tx_down"), 134u * nic_model::kSendBurst) << "a burst a call, and one a post";
  box.disconnect();
}

TEST(NicScheduler, VerbsLimitTheRateOfAQueuePair) {
  Senders senders("rate: 10Gbps");
  const unsigned qp = senders.add(0);
  senders.box.on(0, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.rate_limit = 2'000'000;  // kilobits per second
    ASSERT_EQ(0, host.modify_qp(*senders.qps[qp], a, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
  });
  senders.write(qp, 4096, 8);
  senders.run(kSpan);
  EXPECT_NEAR(senders.gbps(0, kSpan), 2 * 4096.0 / (4 * 1106 + 16), 0.05);
  drain(senders);
}

// A frame of 802.1Qbb for the priorities of `mask`, or of 802.3x.
void pause(NicBox& box, unsigned mask, std::uint16_t quanta, bool all = false) {
  PacketPtr frame = box.pool.allocate(60);
  std::uint8_t* data = frame->data();
  std::memset(data, 0, 60);
  const std::uint8_t head[] = {0x01, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
  std::memcpy(data, head, sizeof head);
  data[14] = all ? 0 : 1;
  data[15] = 1;
  data[17] = static_cast<std::uint8_t>(mask);
  if (all) data[16] = static_cast<std::uint8_t>(quanta >> 8), data[17] = static_cast<std::uint8_t>(quanta);
  for (unsigned i = 0; i < 8 && !all; i++)
    data[18 + 2 * i] = static_cast<std::uint8_t>(quanta >> 8), data[19 + 2 * i] = static_cast<std::uint8_t>(quanta);
  roce::parse(*frame);
  box.fabric.inject({0, 0}, frame.release());
  box.fabric.run(box.now);
}

TEST(NicScheduler, APausedPriorityDoesNotSend) {
  Senders senders("rate: 10Gbps\nwindow: 64");
  senders.write(senders.add(3 << 5), 4096, 8);
  senders.write(senders.add(0), 4096, 8);
  senders.run(kSpan);
  pause(senders.box, 1 << 3, 20'000);  // 512 bits each: 1.024 ms
  senders.run(kMillisecond);
  EXPECT_LT(senders.loads[0].done, 64u * 1106) << "what was on its way";
  EXPECT_GT(senders.gbps(1, kMillisecond), 8.5) << "the other has the port";
  senders.run(kMillisecond);
  EXPECT_GT(senders.gbps(0, kMillisecond), 3.5) << "the pause is over";
  EXPECT_EQ(senders.box.count(0, "rx_prio3_pause"), 1u);
  EXPECT_EQ(senders.box.count(0, "rx_prio3_pause_duration"), 1024u);
  EXPECT_EQ(senders.box.count(0, "rx_prio0_pause"), 0u);
  pause(senders.box, 1 << 3, 60'000);
  senders.run(100 * kMicrosecond);
  pause(senders.box, 1 << 3, 0);
  senders.run(kMillisecond);
  EXPECT_GT(senders.gbps(0, kMillisecond), 3.5) << "a pause of nothing ends one";
  EXPECT_EQ(senders.box.count(0, "rx_prio3_pause_duration"), 1124u);
  pause(senders.box, 0, 20'000, true);
  senders.run(kMillisecond);
  EXPECT_LT(senders.loads[0].done + senders.loads[1].done, 128u * 1106);
  EXPECT_EQ(senders.box.count(0, "rx_global_pause"), 1u);
  EXPECT_EQ(senders.box.count(0, "rx_pause_ctrl_phy"), 4u);
  drain(senders);
}

// READs of both priorities by the other side.
TEST(NicScheduler, PausesStopResponsesAlike) {
  NicBox box("rate: 10Gbps");
  PairOptions options;
  box.connect(options);
  nic_model::Qp* other[2];
  for (unsigned side = 0; side < 2; side++)
    box.on(side, [&](nic_model::Host& host) { other[side] = host.create_qp(box.sides[side].qp->init); });
  options.traffic_class = 3 << 5;
  for (unsigned side = 0; side < 2; side++) box.make_ready(side, *other[side], other[1 - side]->number(), options);
  Nanos done[2] = {};
  box.hosts[1]->on_wc = [&](nic_model::Host& host, const ibv_wc& wc) { done[wc.wr_id] = host.now(); };
  pause(box, 1 << 3, 20'000);  // 1.024 ms
  box.post(1, 0, IBV_WR_RDMA_READ, 0, 1'000'000);
  box.sides[1].qp = other[1];
  box.post(1, 1, IBV_WR_RDMA_READ, 0, 1'000'000);
  box.run(10 * kMillisecond);
  EXPECT_LT(done[0], kMillisecond) << "at the whole rate";
  EXPECT_GT(done[0], 800 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(done[1]), 1.024e6 + static_cast<double>(done[0]), 20e3);
}

TEST(NicScheduler, PausesMayBeIgnored) {
  Senders senders("rate: 10Gbps\nobey_pauses: false");
  senders.write(senders.add(3 << 5), 4096, 8);
  pause(senders.box, 0xFF, 65535);
  senders.run(kMillisecond);
  EXPECT_GT(senders.gbps(0, kMillisecond), 8);
  EXPECT_EQ(senders.box.count(0, "rx_pause_ctrl_phy"), 0u);
  EXPECT_EQ(senders.box.count(0, "drop_no_protocol"), 1u);
  drain(senders);
}

}  // namespace
}  // namespace rocebox::test::scheduling
