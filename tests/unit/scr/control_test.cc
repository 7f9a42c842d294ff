// SPDX-License-Identifier: BSD-3-Clause
// Software-Controlled RDMA of two NICs: what a policy is told of packets, what becomes of what it says, messages
// between peers, READs, and what happens when the policy goes wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "kernels/scr/limits.h"
#include "kernels/scr/messages.h"
#include "nic_model/rate/dcqcn.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"
#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

using test::NicBox;

std::string nic_of(const std::string& options) {
  return "rate: 100Gbps\ncongestion_control: scr_control\nscr_control: {" + options + "}";
}
std::string probe_nic(const std::string& parameters, const std::string& more = "") {
  // The node is looked at seldom: boxes run for ten seconds more at their end.
  const char* period = more.find("host_period") == std::string::npos ? ", host_period: 1s" : "";
  return nic_of(fmt::format("file: {}, parameters: [{}]{}{}", probe_policy_path(), parameters, period, more));
}
Json report_of(const NicBox& box, unsigned side) {
  Json json;
  JsonReport report(json);
  box.nics[side]->report(report);
  return json;
}
std::uint64_t counter_of(const NicBox& box, unsigned side, const std::string& name) {
  return report_of(box, side)["policy_counters"][name].get<std::uint64_t>();
}

TEST(ScrControl, ThePolicyIsToldOfBothSides) {
  NicBox box(probe_nic("", ", host_period: 200us"));
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run(kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "new_flows"), 1u);
  EXPECT_GE(counter_of(box, 0, "tx"), 1u);
  EXPECT_EQ(counter_of(box, 0, "ack"), 1u);
  EXPECT_EQ(counter_of(box, 1, "tx"), 0u);
  EXPECT_GE(counter_of(box, 1, "rx"), 1u);
  EXPECT_NEAR(static_cast<double>(counter_of(box, 0, "pcie_looks")), static_cast<double>(box.now) / 200e3, 2);
  // Bytes of TX and of the ACK that came at one side, of the packets and the ACK at the other.
  EXPECT_EQ(box.count(0, "scr_tx_bytes_handled"), 8 * (14u + 20 + 8 + 12 + 1024 + 4 + 24) + 16);
}

// Table 3: what of the NIC is in use, PCIe's bytes, and of two queue pairs with something to send.
TEST(ScrControl, ThePolicyIsToldOfTheNic) {
  NicBox box("scheduler: {policy: greedy}\npcie: {bandwidth: 200Gbps, read_latency: 600ns}\n" +
             probe_nic("", ", host_period: 200us"));
  box.connect();
  const nic_model::Qp* first = box.sides[0].qp;
  box.connect();
  EXPECT_NE(first, box.sides[0].qp);
  for (unsigned i = 0; i < 8; i++) box.post(0, i, IBV_WR_RDMA_WRITE, 0, 512 * 1024);
  box.run(kMillisecond);
  EXPECT_NEAR(static_cast<double>(counter_of(box, 0, "nic_looks")), static_cast<double>(box.now) / 200e3, 2);
  EXPECT_EQ(counter_of(box, 0, "read"), 8u * 512 * 1024);
  EXPECT_EQ(counter_of(box, 0, "sent"), 4096 * (14u + 20 + 8 + 12 + 1024 + 4 + 24) + 8 * 16);
  EXPECT_EQ(counter_of(box, 0, "most_ready"), 1u) << "what is posted on one queue pair goes one after the other";
  EXPECT_GT(counter_of(box, 0, "most_staged"), 30'000u);
  EXPECT_LE(counter_of(box, 0, "most_staged"), 60u * 1024 + 2048);
  EXPECT_EQ(counter_of(box, 1, "read"), 0u) << "ACKs have no data";
}

TEST(ScrControl, RatesAndPathsTakeEffect) {
  NicBox box(probe_nic("{name: rate, value: 2000000000}, {name: source_port, value: 50505}", ", trace: 8"));
  box.connect();
  Nanos ended = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
  const Nanos began = box.now;
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1 << 20);
  box.run(100 * kMillisecond);
  const double bytes = 1024 * (14 + 20 + 8 + 12 + 1024 + 4 + 24) + 16;
  // The first 17 us go at the port's rate: 212 KB.
  EXPECT_NEAR(static_cast<double>(ended - began), (bytes - 212500) * 8e9 / 2e9, 100e3);
  const Json changes = report_of(box, 0)["scr_changes"];
  ASSERT_GE(changes.size(), 2u);
  EXPECT_EQ(changes[0]["rate_bits_per_second"], 2'000'000'000);
  EXPECT_EQ(changes[1]["udp_source_port_number"], 50505);
}

TEST(ScrControl, ReadsArePacedAtTheResponder) {
  NicBox box(probe_nic("{name: rate, value: 5000000000}"));
  box.connect();
  Nanos ended = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
  const Nanos began = box.now;
  box.post(0, 1, IBV_WR_RDMA_READ, 0, 1 << 20);
  box.run(100 * kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
  const double bytes = 1024 * (14 + 20 + 8 + 12 + 1024 + 4 + 24);
  EXPECT_NEAR(static_cast<double>(ended - began), (bytes - 212500) * 8e9 / 5e9, 60e3);
  EXPECT_GE(counter_of(box, 1, "tx"), 1u) << "what the responder sends is data that leaves";
}

// READs go through the same limiter as requests: its bucket, and what it loses of low rates.
TEST(ScrControl, ReadsObeyTheLimiter) {
  const auto micros = [](const std::string& limiter, std::uint64_t rate) {
    NicBox box("limiter: " + limiter + "\n" + probe_nic(fmt::format("{{name: rate, value: {}}}", rate)));
    box.connect();
    Nanos ended = 0;
    box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
    // The rate is in force before the READ that counts.
    box.post(0, 1, IBV_WR_RDMA_READ, 0, 1024);
    box.run(100 * kMillisecond);
    const Nanos began = box.now;
    box.post(0, 2, IBV_WR_RDMA_READ, 0, 1 << 20);
    box.run(100 * kMillisecond);
    EXPECT_EQ(box.completions(0).size(), 2u);
    return static_cast<double>(ended - began) / 1e3;
  };
  const double bits = 1024 * (14 + 20 + 8 + 12 + 1024 + 4 + 24) * 8;
  EXPECT_NEAR(micros("{qp_burst: 0B}", 5'000'000'000), bits / 5e3, 30);
  EXPECT_NEAR(micros("{qp_burst: 256KiB}", 5'000'000'000), (bits - 262144 * 8) / 5e3, 45)
      << "a full bucket goes at the port's rate";
  EXPECT_NEAR(micros("{qp_burst: 0B, low_rate_loss: 50%}", 500'000'000), bits / 375, bits / 375 * 0.01);
}

TEST(ScrControl, PeersTellEachOther) {
  NicBox box(probe_nic("{name: message, value: 4711}"));
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1024);
  box.run(kMillisecond);
  EXPECT_EQ(counter_of(box, 1, "peer"), 1u);
  EXPECT_EQ(counter_of(box, 1, "last_value"), 4711u);
  EXPECT_EQ(box.count(0, "peer_messages_sent"), 1u);
  EXPECT_EQ(box.count(1, "peer_messages_received"), 1u);
  EXPECT_EQ(counter_of(box, 0, "peer"), 0u);
}

// By a wire that damages, doubles and delays: only newer and whole ones are told, each once.
TEST(ScrControl, MessagesThatAreDamagedDoubledOrLateAreDropped) {
  std::uint64_t damaged = 0, old = 0, told = 0, sent = 0;
  for (std::uint64_t seed = 1; seed <= 10; seed++) {
    NicBox box(probe_nic("{name: message, value: 4711}"),
               "delay: 5us\njitter: 30us\nreorder: 30%\ncorrupt: 10%\nduplicate: 30%", seed);
    box.connect();
    for (unsigned i = 0; i < 20; i++) {
      box.post(0, i, IBV_WR_RDMA_WRITE, 0, 1024);
      box.run(20 * kMicrosecond);
    }
    box.run(100 * kMillisecond);
    sent += box.count(0, "peer_messages_sent");
    damaged += box.count(1, "drop_peer_message_damaged");
    old += box.count(1, "drop_peer_message_old");
    told += box.count(1, "peer_messages_received");
    if (box.count(1, "peer_messages_received")) {
      EXPECT_EQ(counter_of(box, 1, "last_value"), 4711u);
    }
  }
  EXPECT_GT(damaged, 5u);
  EXPECT_GT(old, 20u);
  EXPECT_GT(told, sent / 4);
  EXPECT_LT(told, sent);
}

TEST(ScrControl, ContentsAreReadAsTheyAreWritten) {
  std::array<std::uint8_t, nic_model::kPeerMessageBytes> bytes{};
  write_contents(bytes, {SCR_CREDIT, 0x0102030405060708, 9});
  const std::uint8_t first[] = {'S', 'C', 'R', 'M', 1, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9};
  EXPECT_TRUE(std::equal(std::begin(first), std::end(first), bytes.begin()));
  const auto read = read_contents(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, SCR_CREDIT);
  EXPECT_EQ(read->value, 0x0102030405060708u);
  EXPECT_EQ(read->value2, 9u);
  for (const std::size_t at : {0u, 3u, 4u, 6u, 24u, 95u}) {
    bytes[at] ^= 0x40;
    EXPECT_FALSE(read_contents(bytes)) << at;
    bytes[at] ^= 0x40;
  }
  bytes[5] = 0;
  EXPECT_FALSE(read_contents(bytes)) << "no kind";
}

TEST(ScrControl, HintsComeWhenApplicationsSaySo) {
  NicBox box(probe_nic("", ", hints: [{qpn: 17, weight: 3, at: 1ms}, {qpn: 99, weight: 1, at: 2ms}]"));
  box.connect();
  box.run(900 * kMicrosecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 0u);
  box.run(10 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 3u);
  EXPECT_EQ(box.count(0, "scr_wrong_hints"), 1u) << "there is no such queue pair";
}

// An application may write before it connects: the newest hint is told once the queue pair is ready, and not again for
// another one of its number.
TEST(ScrControl, HintsOfAFileWaitForTheirQueuePair) {
  namespace fs = std::filesystem;
  const fs::path path = fs::temp_directory_path() / fmt::format("rocebox-early-{}.hints", getpid());
  const auto write = [&](std::uint32_t qpn, std::uint64_t weight, std::uint32_t sequence) {
    std::vector<std::uint8_t> bytes(64 + 2 * 32);
    const auto set = [&](std::size_t at, auto value) { std::memcpy(&bytes[at], &value, sizeof value); };
    std::memcpy(bytes.data(), "RBHINTS", 8);
    set(8, std::uint32_t{1}), set(12, std::uint32_t{2}), set(16, sequence);
    set(64, sequence), set(68, qpn), set(72, weight), set(88, rocebox_hint_check(sequence, qpn, weight));
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  };
  write(18, 5, 2);
  NicBox box(probe_nic("", fmt::format(", hints_file: {}, hints_period: 1ms", path.string())));
  box.connect();  // 17
  box.run(5 * kMillisecond);
  EXPECT_EQ(box.count(0, "scr_early_hints"), 1u);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 0u);
  write(18, 6, 4);
  box.run(5 * kMillisecond);
  EXPECT_EQ(box.count(0, "scr_early_hints"), 2u);
  box.connect();  // 18
  box.run(5 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 6u);
  write(18, 7, 6);
  box.run(5 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 7u) << "and at once from then on";
  write(18, 65536, 8);
  box.run(5 * kMillisecond);
  write(0xFFFFFF, 1, 10);
  box.run(5 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 7u);
  EXPECT_EQ(box.count(0, "scr_wrong_hints"), 2u);
  EXPECT_EQ(box.count(0, "scr_early_hints"), 2u);
  ASSERT_EQ(box.sides[0].qp->number(), 18u);
  box.disconnect();
  write(18, 8, 12);
  box.run(5 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 7u) << "the one that it had been for has gone";
  EXPECT_EQ(box.count(0, "scr_early_hints"), 3u);
  box.connect();
  ASSERT_EQ(box.sides[0].qp->number(), 18u);
  box.run(5 * kMillisecond);
  EXPECT_EQ(counter_of(box, 0, "last_value"), 8u);
  fs::remove(path);
}

TEST(ScrControl, WhatGoesWrongEndsInDcqcn) {
  NicBox box(probe_nic("{name: mischief, value: 1}, {name: rate, value: 1000000}"));
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1 << 20);
  box.run(100 * kMillisecond);
  ASSERT_EQ(box.completions(0).size(), 1u) << "at the port's rate";
  EXPECT_EQ(box.count(0, "scr_stops"), 1u);
  EXPECT_EQ(box.count(1, "scr_stops"), 0u) << "the other NIC has a copy of its own";
  EXPECT_NE(report_of(box, 0)["policy_error"].get<std::string>().find("SEGV"), std::string::npos);
}

// The policy's flow goes at 1 Mbit/s; the one that it has no room for at the port's rate, and by DCQCN from a mark on,
// whose timer leaves the policy's alone.
TEST(ScrControl, FlowsBeyondTheTableAreDcqcnsAndCounted) {
  NicBox box(probe_nic("{name: rate, value: 1000000}", ", flows: 1, host_period: 100us"),
             "delay: 1us\nforward: {events: [{qpn: 18, relative_psn: 3, do: mark}]}");
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 16 * 1024);
  box.run(kMillisecond);
  EXPECT_EQ(box.sides[0].qp->rate, 1e6);
  box.connect();
  EXPECT_EQ(box.count(0, "scr_flows_full"), 1u);
  EXPECT_EQ(box.sides[0].qp->rate, 100e9);
  const std::uint64_t looks = counter_of(box, 0, "pcie_looks");
  box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 64 * 1024);
  box.run(kMillisecond);
  EXPECT_EQ(box.completions(0).size(), 2u);
  EXPECT_EQ(box.count(0, "rp_cnp_handled"), 1u);
  EXPECT_LT(box.sides[0].qp->rate, 100e9);
  EXPECT_NEAR(static_cast<double>(counter_of(box, 0, "pcie_looks") - looks), 10, 2) << "the policy's own time goes on";
}

// Where the policy is stopped in the timer that DCQCN has for a slow flow of its own, that flow's time goes on.
TEST(ScrControl, APolicyThatStopsLeavesDcqcnItsTime) {
  NicBox box(probe_nic("{name: mischief, value: 1}", ", flows: 1, host_period: 100us"),
             "delay: 1us\nforward: {mark: 1}");
  box.connect();
  test::Side first[2] = {std::move(box.sides[0]), std::move(box.sides[1])};
  box.connect();
  const nic_model::Qp* slow = box.sides[0].qp;
  unsigned posted = 0;
  for (; slow->rate > 50e6 && posted < 1000; posted++) {
    box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
    for (unsigned i = 0; box.completions(0).size() == posted && i < 1000; i++) box.run(10 * kMicrosecond);
  }
  std::swap(box.sides, first);
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1024);
  box.run(100 * kMicrosecond);
  ASSERT_EQ(box.count(0, "scr_stops"), 1u);
  const double rate = slow->rate;
  EXPECT_LT(rate, 50e6) << "slow enough for a timer";
  box.run(2 * kMillisecond);
  EXPECT_GT(slow->rate, rate);
}

// The program beside the model: the same packets and notifications, the same rates.
TEST(ScrDcqcn, TheProgramIsTheModelInWholeNumbers) {
  std::mt19937 random(3);
  nic_model::DcqcnConfig config;
  nic_model::DcqcnRate model;
  FrameworkConfig framework;
  framework.timing = {0, 0, 0, 0, 0, 0, 0};
  EngineBox box(policy_path("dcqcn_policy"), {}, framework);
  model.start(config, 100'000'000'000, 0);
  Nanos now = 1000;
  unsigned cuts = 0;
  for (int i = 0; i < 20000; i++) {
    now += 100 + static_cast<Nanos>(random() % 2000);
    if (random() % 400 == 0) {
      model.on_congestion(now);
      box.put(SCR_CNP, 0, now);
      cuts++;
    } else {
      model.on_sent(now, 1098);
      box.put(SCR_TX, 0, now, 1098);
    }
    box.engine->run(now, box);
    const double rate = box.rates[0] > 0 ? box.rates[0] : EngineBox::kLine;
    ASSERT_NEAR(rate, model.rate(), model.rate() * 0.03 + 2e6) << "event " << i;
  }
  EXPECT_GT(cuts, 20u);
}

}  // namespace
}  // namespace rocebox::scr
