// SPDX-License-Identifier: BSD-3-Clause
// What chooses among equal paths: flows, flowlets, a draw, the least queue; and for which packets.
#include <random>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/switch_model/balance_kit.h"

namespace rocebox::switch_model::balance_test {
namespace {

using namespace balance_kit;

std::uint32_t psn_of(const test::Out& out) {
  const std::uint8_t* psn = &out.bytes[out.meta.bth_offset + 9];
  return static_cast<std::uint32_t>(psn[0] << 16 | psn[1] << 8 | psn[2]);
}

TEST(Balance, ADrawForEachPacketSpraysOneFlowEvenly) {
  for (const bool routes : {false, true})
    for (const std::string_view balance : {kFlow, kRandom, kLeastQueue}) {
      Box box(routes ? routed(balance) : bridged(balance));
      std::map<int, unsigned> by_port;
      for (std::uint32_t psn = 0; psn < kPackets; psn++) {
        by_port[box.give(psn * 100, write(psn))]++;
        if (routes) {
          ASSERT_TRUE(box.mac_is_the_ports()) << psn;
        }
      }
      if (balance == kFlow)
        EXPECT_EQ(by_port.size(), 1u);
      else
        expect_even(by_port);
    }
}

TEST(Balance, WhatMustStayInOrderKeepsItsFlowsPath) {
  std::vector<std::vector<std::uint8_t>> kept;
  for (const std::uint8_t opcode :
       {std::uint8_t{IBV_OPCODE_RC_ACKNOWLEDGE}, std::uint8_t{IBV_OPCODE_RC_SEND_ONLY},
        std::uint8_t{IBV_OPCODE_RC_FETCH_ADD}, std::uint8_t{IBV_OPCODE_RC_RDMA_READ_REQUEST},
        std::uint8_t{IBV_OPCODE_UC_RDMA_WRITE_MIDDLE}, std::uint8_t{IBV_OPCODE_UD_SEND_ONLY}, roce::kOpcodeCnp})
    kept.push_back(test::frame(packet(opcode, 1)));
  kept.push_back(test::frame(write(1)));
  kept.back()[14 + 20 + 3] ^= 1;  // not RoCEv2's UDP port
  kept.push_back(std::vector<std::uint8_t>(64, 0));
  kept.back()[0] = kept.back()[6] = 2, kept.back()[5] = 2, kept.back()[12] = 0x88, kept.back()[13] = 0xB5;
  for (const std::string_view balance : {kRandom, kLeastQueue}) {
    Box flow(bridged(kFlow)), other(bridged(balance));
    for (std::size_t i = 0; i < kept.size(); i++)
      for (unsigned n = 0; n < 30; n++) {
        const Nanos now = (i * 30 + n) * kMillisecond;
        ASSERT_EQ(other.give(now, kept[i]), flow.give(now, kept[i])) << balance << ", kind " << i;
      }
  }
}

TEST(Balance, OperationsThatAreSpreadAreAnOption) {
  Box box(bridged("balance: random, balance_operations: [send, read]"));
  std::map<std::uint8_t, std::map<int, unsigned>> by_opcode;
  Nanos now = 0;
  for (const std::uint8_t opcode :
       {std::uint8_t{IBV_OPCODE_RC_SEND_MIDDLE}, std::uint8_t{IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE},
        std::uint8_t{IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST}, std::uint8_t{IBV_OPCODE_RC_RDMA_WRITE_LAST}})
    for (unsigned i = 0; i < kPackets; i++) by_opcode[opcode][box.give(now += 100, packet(opcode, i))]++;
  EXPECT_EQ(by_opcode[IBV_OPCODE_RC_RDMA_WRITE_LAST].size(), 1u);
  by_opcode.erase(IBV_OPCODE_RC_RDMA_WRITE_LAST);
  for (const auto& [opcode, by_port] : by_opcode) expect_even(by_port);
}

TEST(Balance, AFlowletKeepsItsPathAndTheNextOneDraws) {
  Box box(routed(kFlowlet, "strict: true"));
  std::map<int, unsigned> by_port;
  Nanos now = 0;
  std::uint32_t psn = 0;
  for (unsigned flowlet = 0; flowlet < kPackets; flowlet++) {
    const int port = box.give(now, write(psn++));
    by_port[port]++;
    ASSERT_TRUE(box.mac_is_the_ports());
    now += 10'000;  // a silence of the gap is none
    ASSERT_EQ(box.give(now, packet(IBV_OPCODE_RC_ACKNOWLEDGE, 1)), port) << "all of a flow goes on together";
    ASSERT_TRUE(box.mac_is_the_ports());
    ASSERT_EQ(box.give(now + 9'999, packet(IBV_OPCODE_RC_SEND_ONLY, psn++)), port);
    now += 9'999 + 10'001;
    ASSERT_EQ(box.stats.read("flowlets"), flowlet + 1u);
  }
  expect_even(by_port);
}

TEST(Balance, FlowletsOfManyFlowsShareABoundedTable) {
  Box box(bridged("balance: flowlet, flowlet_gap: 1ms, flowlet_entries: 16", "strict: true"));
  std::map<int, unsigned> by_port;
  for (unsigned round = 0; round < 2; round++)
    for (std::uint16_t flow = 0; flow < 400; flow++) {
      const int port = box.give((round * 400 + flow) * 100, write(flow, flow));
      if (round == 1) by_port[port]++;
    }
  EXPECT_EQ(box.stats.read("flowlets"), 16u) << "no cell was silent so long";
  EXPECT_GT(by_port.size(), 1u);
}

TEST(Balance, TheLeastQueueIsChosenByEachPacketOfABurst) {
  // Of packets of several sizes in one instant, each finds what those before have left; nothing is sent meanwhile.
  for (const unsigned batch : {1u, 7u, 64u}) {
    Box box(bridged(kLeastQueue, "traffic_manager: {rate: 1Mbps}"));
    box.pipeline->set_batch_max(batch);
    std::mt19937_64 random(5);
    std::vector<std::vector<std::uint8_t>> frames;
    for (std::uint32_t psn = 0; psn < 200; psn++)
      frames.push_back(test::frame(packet(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn, 0, 4 * (1 + random() % 1024))));
    // What waits at p1 was not balanced, and counts, too.
    roce::PacketSpec other = packet(IBV_OPCODE_RC_SEND_ONLY, 0, 1, 4096);
    other.underlay.destination_mac[5] = 7;
    for (unsigned i = 0; i < 8; i++) box.send(0, 0, other);
    const std::uint64_t other_bytes = 8 * test::frame(other).size();
    box.send_burst(0, 0, frames);
    box.drain();
    std::map<std::uint32_t, Port> port_of;
    for (const test::Out& out : box.out)
      if (out.bytes[5] == 2) port_of[psn_of(out)] = out.port;
    ASSERT_EQ(port_of.size(), frames.size());
    std::map<int, std::uint64_t> depth = {{1, other_bytes}, {2, 0}, {3, 0}};
    for (std::uint32_t psn = 0; psn < frames.size(); psn++) {
      const auto least = std::ranges::min_element(depth, {}, [](const auto& row) { return row.second; });
      ASSERT_EQ(depth[port_of[psn]], least->second) << "psn " << psn << ", batches of " << batch;
      depth[port_of[psn]] += frames[psn].size();
    }
  }
}

// What left, and when, says what waited where as each packet came.
TEST(Balance, TheLeastQueueFollowsPortsOfDifferentRates) {
  Box box(
      bridged(kLeastQueue,
              "traffic_manager: {rate: 10Mbps, rates: [{ports: [p1], rate: 100Mbps}, {ports: [p2], rate: 50Mbps}]}"));
  std::mt19937_64 random(6);
  constexpr std::uint32_t kMany = 2000;
  std::vector<Nanos> came;
  Nanos now = 0;
  for (std::uint32_t psn = 0; psn < kMany; psn++) {
    const bool kept = random() % 10 == 0;  // a SEND keeps its flow's path, and is in the others' way
    came.push_back(now += static_cast<Nanos>(random() % 250'000));
    box.send(now, 0,
             packet(kept ? IBV_OPCODE_RC_SEND_MIDDLE : IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn,
                    static_cast<std::uint16_t>(psn % 7), 4 * (1 + random() % 1024)));
  }
  box.drain();
  ASSERT_EQ(box.out.size(), kMany);
  std::vector<const test::Out*> left(kMany);
  for (const test::Out& out : box.out) left[psn_of(out)] = &out;
  std::map<int, unsigned> by_port;
  unsigned queued = 0;
  for (std::uint32_t psn = 0; psn < kMany; psn++) {
    if (left[psn]->meta.opcode != IBV_OPCODE_RC_RDMA_WRITE_MIDDLE) continue;
    by_port[left[psn]->port]++;
    std::array<std::uint64_t, 4> depth{};
    for (std::uint32_t before = 0; before < psn; before++)
      if (left[before]->at > came[psn]) depth[left[before]->port] += left[before]->bytes.size();
    const std::uint64_t least = *std::min_element(depth.begin() + 1, depth.end());
    ASSERT_EQ(depth[left[psn]->port], least) << "psn " << psn;
    queued += least > 0;
  }
  EXPECT_GT(queued, kMany / 4);
  EXPECT_GT(by_port[1], by_port[2]);
  EXPECT_GT(by_port[2], by_port[3]);
}

TEST(Balance, AQueueThatHasGoneIsNone) {
  Box box(bridged(kLeastQueue, "traffic_manager: {rate: 1Gbps}"));
  std::map<int, unsigned> by_port;
  for (std::uint32_t psn = 0; psn < kPackets; psn++) box.send(psn * 100'000, 0, write(psn));
  box.drain();
  for (const int port : box.ports()) by_port[port]++;
  expect_even(by_port);
}

// Strict mode asks its tables for each packet; what `forward` remembers of flows changes no draw.
TEST(Balance, RememberedFlowsDrawAsOthers) {
  for (const std::string_view balance : {kRandom, kFlowlet}) {
    std::vector<std::vector<test::Out>> runs;
    for (const char* strict : {"strict: true", "strict: false"})
      for (const unsigned batch : {1u, 64u}) {
        Box box(routed(balance, strict));
        box.pipeline->set_batch_max(batch);
        std::mt19937_64 random(3);
        for (Nanos at = 0; at < 60; at++) {
          std::vector<std::vector<std::uint8_t>> frames;
          for (unsigned i = 0; i < 50; i++) {
            roce::PacketSpec spec = write(i, static_cast<std::uint16_t>(random() % 32));
            if (random() % 4 == 0) spec.underlay.ip_version = 6;  // no route: dropped, behind the others
            frames.push_back(test::frame(spec));
          }
          box.send_burst(at * 7'000, 0, frames);
        }
        EXPECT_GT(box.stats.read("drop_no_route"), 500u);
        std::ranges::stable_sort(box.out, {}, [](const test::Out& out) { return std::pair(out.at, out.port); });
        runs.push_back(std::move(box.out));
      }
    for (std::size_t i = 1; i < runs.size(); i++) {
      ASSERT_EQ(runs[i].size(), runs[0].size());
      for (std::size_t n = 0; n < runs[0].size(); n++) ASSERT_EQ(runs[i][n], runs[0][n]) << balance << ' ' << i;
    }
  }
}

// Bridged and routed packets side by side: the numbers are drawn in the order of packets.
TEST(Balance, BatchesThatMixBridgedAndRoutedPacketsChangeNothing) {
  std::vector<std::vector<std::pair<std::uint32_t, Port>>> runs;
  for (const unsigned batch : {1u, 7u, 64u}) {
    const std::string routes = routed(kRandom);
    const std::string macs = "macs: [{mac: '02:00:00:00:00:03', ports: [p1, p2, p3]}], balance";
    Box box(std::string(routes).replace(routes.find("balance"), 7, macs));
    box.pipeline->set_batch_max(batch);
    std::vector<std::vector<std::uint8_t>> frames;
    std::mt19937_64 random(9);
    for (std::uint32_t psn = 0; psn < 500; psn++) {
      roce::PacketSpec spec = write(psn);
      if (random() % 2) spec.underlay.destination_mac[5] = 3;
      frames.push_back(test::frame(spec));
    }
    box.send_burst(0, 0, frames);
    auto& run = runs.emplace_back();
    for (const test::Out& out : box.out) run.emplace_back(psn_of(out), out.port);
    std::ranges::sort(run);
    ASSERT_EQ(run.size(), frames.size());
    EXPECT_EQ(run, runs[0]) << "batches of " << batch;
  }
}

TEST(Balance, StrictModeKnowsWhatTheHardwareHasNot) {
  const std::string yaml = bridged(kLeastQueue, "strict: true");
  CounterSet stats;
  try {
    test::make_switch(yaml.c_str(), stats);
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "program forward, ingress: `balance: least_queue` compares the queues of ports, which the hardware "
                 "does not show there");
  }
  Box box(bridged(kFlowlet, "strict: true"));
  Json json;
  JsonReport report(json);
  box.kernel->report(report);
  std::map<std::string, Json> rows;
  for (const Json& row : json["layout"]["resources"]) rows[row["name"].get<std::string>()] = row;
  EXPECT_EQ(rows["flowlet"]["entries"], 65536);
  EXPECT_EQ(rows["flowlet"]["sram_pages"], 32) << "64 bits each, two of them a word";
  EXPECT_EQ(rows["flowlet"]["stateful_alus"], 1);
  const auto stage = [&](const char* name) { return std::stoi(rows[name]["stages"].get<std::string>()); };
  EXPECT_GT(stage("flowlet"), stage("ecmp_hash"));
  EXPECT_GT(stage("next_hop"), stage("flowlet"));
}

TEST(Balance, OperationsThatAreNoneAreRefused) {
  const auto mistakes = [](const char* operations) {
    return test::switch_mistakes("forward: {balance: random, balance_operations: " + std::string(operations) + "}");
  };
  const auto says = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  EXPECT_EQ(mistakes("[send]"), "");
  EXPECT_TRUE(says(mistakes("[atomic]"), "`balance_operations` must be of write, read and send, found `atomic`"));
  EXPECT_TRUE(says(mistakes("[read, read]"), "`balance_operations` names `read` twice"));
  EXPECT_TRUE(says(mistakes("[]"), "`balance_operations` must name one at least"));
  EXPECT_TRUE(says(test::switch_mistakes("forward: {balance: flowlets}"), "flowlet"));
}

}  // namespace
}  // namespace rocebox::switch_model::balance_test
