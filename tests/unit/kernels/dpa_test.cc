// SPDX-License-Identifier: BSD-3-Clause
// The kernel dpa: which packets become CQEs, what programs make of them, and what becomes of a program that is bad.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/dpa/watcher.h"
#include "runtime/roce/icrc.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/harness.h"

namespace rocebox::dpa_observer {
namespace {

const auto kA = roce::ipv4(10, 0, 0, 1), kB = roce::ipv4(10, 0, 0, 2);

struct Box : test::KernelBox {
  explicit Box(const Config& config) : KernelBox([&](Stats& s) { return std::make_unique<Watcher>(config, s); }) {
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  }
  roce::PacketSpec packet(std::uint8_t opcode, std::uint32_t psn, std::size_t payload = 0, std::uint32_t qpn = 0x12) {
    roce::PacketSpec spec;
    spec.opcode = opcode, spec.psn = psn, spec.destination_qp = qpn;
    spec.underlay.addresses = {kA, kB};
    spec.payload = std::span(bytes).first(payload);
    return spec;
  }
  void pass(const roce::PacketSpec& spec, Port in = 0) {
    const auto frame = test::frame(spec);
    send(now += kMicrosecond, in, frame);
    sent++;
    ASSERT_EQ(out.size(), sent) << "a packet does not pass";
    EXPECT_EQ(out.back().bytes, frame);
    EXPECT_EQ(out.back().port, 1 - in);
  }
  void pass(std::uint8_t opcode, std::uint32_t psn, std::size_t payload = 0, std::uint32_t qpn = 0x12) {
    pass(packet(opcode, psn, payload, qpn));
  }
  std::uint64_t count(const std::string& name) const {
    for (const CounterSet::Row& row : stats.rows())
      if (row.name == name) return row.read();
    ADD_FAILURE() << name;
    return 0;
  }
  Json report() const {
    Json json;
    JsonReport to(json);
    kernel->report(to);
    return json;
  }
  std::int64_t result(const std::string& function) const {
    const Json said = report();
    for (const Json& row : said.at("results"))
      if (row.at("function") == function && row.contains("value")) return row.at("value");
    return -1;
  }

  std::array<std::uint8_t, 4096> bytes{};
  std::size_t sent = 0;
  Nanos now = 0;
};

Config counting() {
  Config config;
  config.results = {"counter_messages", "counter_bytes"};
  return config;
}

Config from_tests(const std::string& name, const std::string& handler) {
  Config config;
  config.file.path = std::string(ROCEBOX_DPA_TEST_PROGRAMS) + "/" + name + ".so";
  config.file.text = nic_model::dpa::Program::read(config.file.path);
  config.handler = handler;
  return config;
}

TEST(DpaKernel, AMessageIsOneCqeWhenItsLastPacketComes) {
  Box box(counting());
  box.pass(IBV_OPCODE_RC_SEND_FIRST, 100, 1024);
  box.pass(IBV_OPCODE_RC_SEND_MIDDLE, 101, 1024);
  EXPECT_EQ(box.result("counter_messages"), 0);
  box.pass(IBV_OPCODE_RC_SEND_LAST, 102, 10);
  EXPECT_EQ(box.result("counter_messages"), 1);
  EXPECT_EQ(box.result("counter_bytes"), 2058);
  box.pass(IBV_OPCODE_RC_RDMA_WRITE_ONLY, 103, 64);  // no CQE
  box.pass(IBV_OPCODE_RC_RDMA_WRITE_FIRST, 104, 256);
  box.pass(IBV_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, 105, 6);
  EXPECT_EQ(box.result("counter_messages"), 2);
  EXPECT_EQ(box.result("counter_bytes"), 2058 + 262);
  EXPECT_EQ(box.count("cqes"), 2u);
}

TEST(DpaKernel, OfRcOnlyWhatAResponderTakes) {
  Box box(counting());
  box.pass(IBV_OPCODE_RC_SEND_MIDDLE, 7, 64);  // the capture begins inside a message
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 9, 64);
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 9, 64);   // sent again
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 11, 64);  // 10 is missing
  EXPECT_EQ(box.count("cqes"), 1u);
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 10, 64);
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 11, 64);
  EXPECT_EQ(box.count("cqes"), 3u);
  EXPECT_EQ(box.count("duplicate_request"), 1u);
  EXPECT_EQ(box.count("out_of_sequence"), 1u);
  EXPECT_EQ(box.count("unfinished"), 1u);
  // A READ takes PSNs, how many is not known here.
  box.pass(IBV_OPCODE_RC_RDMA_READ_REQUEST, 12);
  box.pass(IBV_OPCODE_RC_SEND_ONLY, 20, 64);
  EXPECT_EQ(box.count("cqes"), 4u);
  // The capture has a hole for good.
  for (unsigned i = 0; i <= kStrayPacketsMax; i++) box.pass(IBV_OPCODE_RC_SEND_ONLY, 100 + i, 4);
  EXPECT_EQ(box.count("cqes"), 5u);
  // Responses are none.
  box.pass(IBV_OPCODE_RC_ACKNOWLEDGE, 5);
  EXPECT_EQ(box.count("cqes"), 5u);
}

TEST(DpaKernel, OfUcAMessageWithoutAGap) {
  Box box(counting());
  box.pass(IBV_OPCODE_UC_SEND_FIRST, 1, 64);
  box.pass(IBV_OPCODE_UC_SEND_LAST, 3, 64);  // 2 is missing
  EXPECT_EQ(box.count("cqes"), 0u);
  box.pass(IBV_OPCODE_UC_SEND_FIRST, 4, 64);  // never ends
  box.pass(IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 9, 0);
  EXPECT_EQ(box.result("counter_messages"), 1);
  EXPECT_EQ(box.result("counter_bytes"), 0);
  EXPECT_EQ(box.count("unfinished"), 2u);
}

TEST(DpaKernel, DatagramsAreAllCounted) {
  Box box(counting());
  box.pass(IBV_OPCODE_UD_SEND_ONLY, 5, 100);
  box.pass(IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE, 5, 20);
  box.pass(IBV_OPCODE_UD_SEND_ONLY, 5, 100, 1);  // management
  EXPECT_EQ(box.result("counter_messages"), 1);  // the program takes SENDs with immediate for something else
  EXPECT_EQ(box.report()["endpoints"][0]["errors"], 1);
  EXPECT_EQ(box.result("counter_bytes"), 140);
}

TEST(DpaKernel, OptionsSayWhichPackets) {
  Config config = counting();
  config.uc = false;
  config.sends = false;
  config.from = From::kRight;
  config.qps = {{0x12, {}}, {0x13, kA}};
  Box box(config);
  const std::uint8_t written = IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
  box.pass(box.packet(written, 1), 0);
  box.pass(box.packet(written, 1), 1);
  EXPECT_EQ(box.count("cqes"), 1u);
  box.pass(box.packet(IBV_OPCODE_RC_SEND_ONLY, 2, 4), 1);
  box.pass(box.packet(IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 3), 1);
  box.pass(box.packet(written, 1, 0, 0x13), 1);  // of another NIC
  box.pass(box.packet(written, 1, 0, 0x14), 1);
  EXPECT_EQ(box.count("cqes"), 1u);
  box.pass(box.packet(written, 3), 1);
  EXPECT_EQ(box.count("cqes"), 2u);
}

TEST(DpaKernel, AWrongIcrcIsNoPacket) {
  Box box(counting());
  auto frame = test::frame(box.packet(IBV_OPCODE_UC_SEND_ONLY, 1, 64));
  frame[60] ^= 1;
  box.send(1, 0, frame);
  EXPECT_EQ(box.out.size(), 1u);
  EXPECT_EQ(box.count("cqes"), 0u);
  EXPECT_EQ(box.count("rx_icrc_encapsulated"), 1u);
}

TEST(DpaKernel, BitsOfImmediatesStandInTheHostsMemory) {
  Config config;
  config.program = "bitmap";
  config.host_bytes = 64;
  config.threads = 3;  // a queue pair each
  Box box(config);
  for (std::uint32_t bit : {0u, 9u, 9u, 511u, 512u}) {  // the last one is behind the memory
    roce::PacketSpec spec = box.packet(IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, bit, 4, 0x20 + bit % 5);
    spec.immediate = bit;
    box.pass(spec);
  }
  const Json said = box.report();
  EXPECT_EQ(said["bits_set"], 3);
  std::int64_t messages = 0, errors = 0;
  for (const Json& row : said["endpoints"]) {
    EXPECT_GT(row["cqes_written"], 0);
    messages += row["messages"].get<std::int64_t>();
    errors += row["errors"].get<std::int64_t>();
  }
  EXPECT_EQ(messages, 4);
  EXPECT_EQ(errors, 1);
}

TEST(DpaKernel, AChunksByteIsSetWhenAllItsPacketsHaveCome) {
  Config config;
  config.program = "chunks";
  config.host_bytes = 64;
  config.count = 8;
  config.results = {"chunks_complete"};
  Box box(config);
  const auto write = [&](std::uint32_t offset) {
    roce::PacketSpec spec = box.packet(IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, offset, 64);
    spec.immediate = offset << 4;
    box.pass(spec);
  };
  for (const std::uint32_t offset : {0u, 9u, 1u, 2u, 3u, 3u, 10u, 4u, 5u, 6u}) write(offset);
  EXPECT_EQ(box.result("chunks_complete"), 0);
  write(7);
  EXPECT_EQ(box.result("chunks_complete"), 1);
  for (const std::uint32_t offset : {8u, 11u, 12u, 13u, 14u, 15u}) write(offset);
  const Json said = box.report();
  EXPECT_EQ(said["results"][0]["value"], 2);
  EXPECT_EQ(said["bits_set"], 2);
}

TEST(DpaKernel, AProgramThatSendsIsHeardByNobody) {
  Config config;
  config.program = "echo";
  Box box(config);
  for (std::uint32_t i = 0; i < 300; i++) box.pass(IBV_OPCODE_RC_SEND_ONLY, i, 64);
  EXPECT_EQ(box.count("doorbells"), 300u);
  EXPECT_EQ(box.report()["endpoints"][0]["messages"], 300);
}

TEST(DpaKernel, ABadProgramIsStoppedAndNamedAndPacketsPass) {
  // What the first byte of the message says, from the buffer of its receive.
  for (const char how : {'n', 'i', 'd', 's'}) {
    Box box(from_tests("bad", "bad_handler"));
    box.bytes[0] = static_cast<std::uint8_t>(how);
    for (std::uint32_t i = 0; i < 5; i++) box.pass(IBV_OPCODE_RC_SEND_ONLY, i, 64);
    EXPECT_EQ(box.count("cqes"), 1u);
    EXPECT_EQ(box.count("cqes_stopped"), 4u);
    const Json said = box.report();
    EXPECT_NE(said["error"].get<std::string>().find("thread 0 (`bad_handler` of bad.so)"), std::string::npos)
        << said["error"];
    EXPECT_EQ(said["dpa_threads"][0]["state"], "stopped");
  }
}

TEST(DpaKernel, ThreadsThatTakeTimeLoseWhatTheirQueueHasNoRoomFor) {
  Config config = counting();
  config.cq_entries = 64;
  config.engine.timing.cycles_per_cqe = 18'000;  // 10 us
  Box box(config);
  for (std::uint32_t i = 0; i < 1000; i++) box.pass(IBV_OPCODE_UC_SEND_ONLY, i, 4);  // one a microsecond
  const std::uint64_t made = box.count("cqes");
  EXPECT_EQ(made + box.count("cqes_lost"), 1000u);
  EXPECT_NEAR(static_cast<double>(made), 100 + 64, 2);
  box.drain();
  EXPECT_EQ(static_cast<std::uint64_t>(box.result("counter_messages")), made);
}

TEST(DpaKernel, WhatCannotBeRunIsRefused) {
  Config config = from_tests("bad", "no_such_handler");
  CounterSet stats;
  EXPECT_THROW(Watcher(config, stats), ConfigError);
  config.handler = "bad_handler";
  config.file.text.resize(100);
  CounterSet others;
  EXPECT_THROW(Watcher(config, others), ConfigError);
}

TEST(DpaKernel, AResultThatIsNotThereSaysWhy) {
  Config config = counting();
  config.results.push_back("no_such_function");
  Box box(config);
  EXPECT_EQ(box.report()["results"][2]["why_not"], "the program has no such function");
}

}  // namespace
}  // namespace rocebox::dpa_observer
