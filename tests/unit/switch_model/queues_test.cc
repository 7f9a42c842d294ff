// SPDX-License-Identifier: BSD-3-Clause
// The traffic manager through the switch: rates, shared buffer, marks, pauses, order of classes.
#include "runtime/roce/icrc.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::queues_test {
namespace {

// 1024 bytes of payload: 1082 bytes of frame, 1106 on the wire; at 8.848 Mbps a packet takes a millisecond.
constexpr std::uint32_t kFrameBytes = 14 + 20 + 8 + 12 + 1024 + 4;
constexpr Nanos kPacketTime = kMillisecond;
#define SWITCH_YAML(more) \
  "ports: [a, b, c, d]\nforward:\n  learning: false\n  macs: [{mac: '02:00:00:00:00:02', ports: [b]}]\n" more

roce::PacketSpec data(std::uint32_t psn, std::uint8_t tos = 0) {
  static const std::vector<std::uint8_t> kPayload(1024, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
  spec.underlay.tos = tos;
  spec.opcode = IBV_OPCODE_RC_SEND_ONLY;
  spec.destination_qp = 5;
  spec.psn = psn;
  spec.payload = kPayload;
  return spec;
}

std::vector<std::uint32_t> psns(const std::vector<test::Out>& out) {
  std::vector<std::uint32_t> all;
  for (const test::Out& packet : out) {
    const std::uint8_t* psn = packet.bytes.data() + packet.meta.bth_offset + 9;
    if (packet.meta.bth_offset) all.push_back(static_cast<std::uint32_t>(psn[0] << 16 | psn[1] << 8 | psn[2]));
  }
  return all;
}

TEST(Queues, APortSendsAtItsRate) {
  test::SwitchBox box(SWITCH_YAML("traffic_manager: {rate: 8848kbps}\n"));
  for (std::uint32_t i = 0; i < 3; i++) box.send(0, 0, data(i));
  box.drain();
  ASSERT_EQ(box.out.size(), 3u);
  for (std::uint32_t i = 0; i < 3; i++) EXPECT_EQ(box.out[i].at, (i + 1) * kPacketTime) << "the last bit's time";
  box.send(10 * kPacketTime, 0, data(9));
  box.drain();
  EXPECT_EQ(box.out[3].at, 11 * kPacketTime) << "an idle port begins at once";
}

// What is in transmission ends as it has begun; what waits leaves at the rate of its own time.
TEST(Queues, APortsRateChangesBetweenPackets) {
  test::SwitchBox box(SWITCH_YAML("traffic_manager: {rate: 8848kbps}\n"));
  const auto change = [&](const char* yaml, Nanos now) { test::prepare_change(box, yaml)->apply(*box.kernel, now); };
  for (std::uint32_t i = 0; i < 5; i++) box.send(0, 0, data(i));
  box.run_until(kPacketTime / 2);
  change(SWITCH_YAML("traffic_manager: {rate: 8848kbps, rates: [{ports: [b], rate: 4424kbps}]}\n"), kPacketTime / 2);
  box.run_until(4 * kPacketTime);
  change(SWITCH_YAML("traffic_manager: {rate: 8848kbps, rates: [{ports: [b], rate: unlimited}]}\n"), 4 * kPacketTime);
  box.drain();
  std::vector<Nanos> at;
  for (const test::Out& packet : box.out) at.push_back(packet.at / kPacketTime);
  EXPECT_EQ(at, (std::vector<Nanos>{1, 3, 5, 5, 5}));
}

TEST(Queues, ASwitchWithoutQueuesGetsNoneWhileItRuns) {
  test::SwitchBox box(SWITCH_YAML(""));
  try {
    test::prepare_change(box, SWITCH_YAML("traffic_manager: {rate: 1Gbps}\n"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string_view(error.what()).find("has no queues"), std::string_view::npos) << error.what();
  }
}

TEST(Queues, TheSharedBufferIsGrantedByTheDynamicThreshold) {
  // alpha 1: a queue alone gets half of the buffer, here five packets of ten; one more is in transmission.
  const std::string yaml =
      SWITCH_YAML("traffic_manager: {rate: 8848kbps, buffer: ") + std::to_string(10 * kFrameBytes) + "B}\n";
  test::SwitchBox box(yaml.c_str());
  for (std::uint32_t i = 0; i < 12; i++) box.send(0, 0, data(i));
  EXPECT_EQ(box.stats.read("drop_buffer_full"), 12u - 6u);
  EXPECT_EQ(box.stats.read("buffer_bytes_max"), 5u * kFrameBytes);
  box.drain();
  EXPECT_EQ(psns(box.out), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Queues, WhatEntersALongQueueIsMarked) {
  const std::string yaml = SWITCH_YAML("traffic_manager: {rate: 8848kbps, ecn: {min: ") +
                           std::to_string(2 * kFrameBytes) + "B, max: " + std::to_string(2 * kFrameBytes) + "B}}\n";
  test::SwitchBox box(yaml.c_str());
  for (std::uint32_t i = 0; i < 6; i++) box.send(0, 0, data(i, i == 4 ? 0 : 2));  // one that is not ECN capable
  box.drain();
  std::string marks;
  for (const test::Out& packet : box.out) {
    marks += static_cast<char>('0' + (packet.bytes[15] & 3));
    PacketPtr copy = box.pool.allocate(static_cast<std::uint32_t>(packet.bytes.size()));
    std::copy(packet.bytes.begin(), packet.bytes.end(), copy->data());
    roce::parse(*copy);
    EXPECT_EQ(roce::icrc_check(*copy), roce::IcrcStatus::kGood);
  }
  EXPECT_EQ(marks, "222303") << "0 is sent, 1 and 2 enter an empty and a short queue";
  EXPECT_EQ(box.stats.read("ecn_marked_packets"), 2u);
}

// Round robin: a class sends 9216 bytes before the next has its turn.
constexpr int kTurnPackets = 9216 / 1106;

TEST(Queues, StrictClassesGoFirstAndRoundRobinShares) {
  for (const bool strict : {true, false}) {
    const std::string yaml = SWITCH_YAML("traffic_manager: {rate: 8848kbps, class_of: dscp, scheduler: ") +
                             std::string(strict ? "strict" : "round_robin") + "}\n";
    test::SwitchBox box(yaml.c_str());
    for (std::uint32_t i = 0; i < 41; i++) box.send(0, 0, data(i, 0));
    for (std::uint32_t i = 100; i < 140; i++) box.send(0, 0, data(i, 0x60));
    box.run_until(40 * kPacketTime);
    const auto sent = psns(box.out);
    const auto high = std::count_if(sent.begin(), sent.end(), [](std::uint32_t psn) { return psn >= 100; });
    if (strict)
      EXPECT_EQ(high, 39);
    else
      EXPECT_NEAR(static_cast<double>(high), 20, kTurnPackets / 2.0) << "half of 40, give or take half a turn";
    box.drain();
    EXPECT_EQ(box.out.size(), 81u);
  }
}

// A PFC frame for class 3: 802.1Qbb.
std::vector<std::uint8_t> pfc(std::uint16_t quanta) {
  std::vector<std::uint8_t> frame = {0x01, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0x01, 0x01, 0, 8};
  frame.resize(60);
  frame[18 + 2 * 3] = static_cast<std::uint8_t>(quanta >> 8);
  frame[18 + 2 * 3 + 1] = static_cast<std::uint8_t>(quanta);
  return frame;
}

TEST(Queues, APauseStopsItsClassUntilItEnds) {
  test::SwitchBox box(SWITCH_YAML("traffic_manager: {class_of: dscp, pfc: {classes: [3]}}\n"));
  box.send(0, 1, pfc(1000));  // 512,000 bit times: at 100 Gbps 5.12 us
  box.send(10, 0, data(0, 0x60));
  box.send(20, 0, data(1, 0));
  EXPECT_EQ(psns(box.out), (std::vector<std::uint32_t>{1})) << "other classes go on";
  box.drain();
  EXPECT_EQ(psns(box.out), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(box.out[1].at, 5120);
  box.send(10'000, 1, pfc(0xFFFF));
  box.send(10'000, 0, data(2, 0x60));
  box.send(11'000, 1, pfc(0));
  EXPECT_EQ(box.out.size(), 3u);
  EXPECT_EQ(box.out.back().at, 11'000) << "a pause of 0 ends it";
  EXPECT_EQ(box.stats.read("rx_pause_frames"), 3u);
}

TEST(Queues, ALosslessClassPausesItsSenderAndLosesNothing) {
  const std::string yaml = SWITCH_YAML("traffic_manager: {rate: 8848kbps, class_of: dscp, pfc: {classes: [3], xoff: ") +
                           std::to_string(3 * kFrameBytes) + "B, xon: " + std::to_string(kFrameBytes) + "B}}\n";
  test::SwitchBox box(yaml.c_str());
  for (std::uint32_t i = 0; i < 10; i++) box.send(0, 0, data(i, 0x60));
  ASSERT_EQ(box.out.size(), 1u) << "one pause";
  EXPECT_EQ(box.out[0].port, 0);
  auto wanted = pfc(0xFFFF);
  wanted[6 + 5] = 0;
  EXPECT_EQ(box.out[0].bytes, wanted);
  box.drain();
  EXPECT_EQ(psns(box.out).size(), 10u);
  wanted = pfc(0);
  wanted[6 + 5] = 0;
  const auto resumed = std::find_if(box.out.begin(), box.out.end(), [&](const auto& o) { return o.bytes == wanted; });
  ASSERT_NE(resumed, box.out.end());
  EXPECT_EQ(resumed->at, 8 * kPacketTime) << "one packet is left";
}

// A pause holds as long as the queue is long, however fast it gets shorter.
TEST(Queues, ALosslessClassStaysPausedWhileItsPortIsSlow) {
  const std::string pfc_yaml = "class_of: dscp, pfc: {classes: [3], xoff: " + std::to_string(3 * kFrameBytes) +
                               "B, xon: " + std::to_string(kFrameBytes) + "B}";
  const auto yaml = [&](const char* rates) {
    return SWITCH_YAML("traffic_manager: {rate: 8848kbps, ") + std::string(rates) + pfc_yaml + "}\n";
  };
  test::SwitchBox box(yaml("").c_str());
  for (std::uint32_t i = 0; i < 10; i++) box.send(0, 0, data(i, 0x60));
  const Nanos changed = 5 * kPacketTime / 2;
  box.run_until(changed);
  test::prepare_change(box, yaml("rates: [{ports: [b], rate: 4424kbps}], ").c_str())->apply(*box.kernel, changed);
  box.drain();
  std::vector<Nanos> pauses, left;
  for (const test::Out& out : box.out) (out.port == 0 ? pauses : left).push_back(out.at / kPacketTime);
  EXPECT_EQ(left, (std::vector<Nanos>{1, 2, 3, 5, 7, 9, 11, 13, 15, 17})) << "nothing is lost";
  EXPECT_EQ(pauses, (std::vector<Nanos>{0, 13})) << "it ends where one packet is left";
}

// SAI: XON is generated at `usage <= XON_TH`, so that a threshold of 0 can be reached.
TEST(Queues, APauseEndsAtXonNotBelowIt) {
  for (const std::uint32_t packets_left : {0u, 1u}) {
    const std::string yaml =
        SWITCH_YAML("traffic_manager: {rate: 8848kbps, class_of: dscp, pfc: {classes: [3], xoff: ") +
        std::to_string(3 * kFrameBytes) + "B, xon: " + std::to_string(packets_left * kFrameBytes) + "B}}\n";
    test::SwitchBox box(yaml.c_str());
    for (std::uint32_t i = 0; i < 6; i++) box.send(0, 0, data(i, 0x60));
    box.drain();
    std::vector<Nanos> pauses;
    for (const test::Out& out : box.out)
      if (out.port == 0) pauses.push_back(out.at);
    EXPECT_EQ(pauses, (std::vector<Nanos>{0, (5 - packets_left) * kPacketTime}));
  }
}

TEST(Queues, APauseIsRepeatedInTimeForEachPortsRate) {
  const std::string yaml =
      SWITCH_YAML(
          "traffic_manager: {rate: 8848kbps, rates: [{ports: [a], rate: 100Mbps}, {ports: [c], rate: 1Gbps}], "
          "class_of: dscp, buffer: 1MiB, pfc: {classes: [3], xoff: ") +
      std::to_string(3 * kFrameBytes) + "B, xon: " + std::to_string(kFrameBytes) + "B}}\n";
  test::SwitchBox box(yaml.c_str());
  for (std::uint32_t i = 0; i < 10; i++) box.send(0, 0, data(i, 0x60));
  for (std::uint32_t i = 0; i < 100; i++) box.send(1000, 2, data(i, 0x60));
  box.drain();
  // 65535 quanta of 512 bits are 33.6 ms at 1 Gbps; the last packet of c leaves after more than 100 ms.
  constexpr Nanos kPause = 65535LL * 512;
  Nanos last = 1000;
  unsigned pauses = 0;
  for (const test::Out& o : box.out) {
    if (o.port != 2 || o.bytes[12] != 0x88) continue;
    EXPECT_LE(o.at - last, kPause) << "it has lapsed";
    last = o.at;
    pauses++;
  }
  EXPECT_GE(pauses, 4u);
  EXPECT_GT(last, 100 * kMillisecond) << "it ends with a pause of 0";
}

}  // namespace
}  // namespace rocebox::switch_model::queues_test
