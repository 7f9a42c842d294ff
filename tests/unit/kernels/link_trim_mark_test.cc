// SPDX-License-Identifier: BSD-3-Clause
// Trimming and ECN marking: bytes, lengths, checksums, and when they happen.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/roce/icrc.h"
#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

std::vector<std::uint8_t> write_packet(std::uint8_t ip_version, std::size_t payload_bytes,
                                       std::uint8_t tos = roce::kEcnEct0) {
  const std::vector<std::uint8_t> payload(payload_bytes, 0xAB);
  roce::PacketSpec spec;
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
  spec.underlay.ip_version = ip_version;
  spec.underlay.tos = tos;
  spec.payload = payload;
  return test::frame(spec);
}

bool ipv4_checksum_right(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF;
}

unsigned tos_of(std::span<const std::uint8_t> bytes) {
  return bytes[14] >> 4 == 4 ? bytes[15] : (bytes[14] << 4 | bytes[15] >> 4) & 0xFFu;
}

TEST(LinkTrim, CutsPayloadAndIcrcAndLeavesTheLengths) {
  for (const std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}})
    for (std::int64_t dscp : {-1, 0, 46, 63}) {
      link::Config config;
      config.forward.trim = 1;
      config.forward.trim_dscp = dscp;
      test::KernelBox box(with(config));
      const auto sent = write_packet(version, 1000, 0x69);  // DSCP 26, ECT(1)
      box.send(0, 0, sent);
      const test::Out& out = box.out.at(0);
      const std::size_t headers = 14 + (version == 4 ? 20 : 40) + 8 + 12 + 16;
      ASSERT_EQ(out.bytes.size(), headers);
      EXPECT_EQ(out.wire_bytes, headers);
      EXPECT_EQ(out.meta.status, ParseStatus::kShorterThanIpLength);
      EXPECT_EQ(out.meta.payload_bytes, 1000u) << "the IP length still tells what was cut off";
      EXPECT_EQ(tos_of(out.bytes), dscp < 0 ? 0x69u : static_cast<unsigned>(dscp << 2 | 1));
      if (version == 4) {
        EXPECT_TRUE(ipv4_checksum_right(out.bytes));
      }
      for (std::size_t i = 0; i < headers; i++) {
        const bool tos = i == 15 || (version == 6 ? i == 14 : i == 24 || i == 25);
        if (!tos) {
          ASSERT_EQ(out.bytes[i], sent[i]) << i;
        }
      }
      EXPECT_EQ(box.stats.read("forward_trimmed"), 1u);
    }
}

TEST(LinkTrim, LeavesPacketsWithoutPayloadAndOtherTraffic) {
  link::Config config;
  config.forward.trim = 1;
  test::KernelBox box(with(config));
  roce::PacketSpec ack;
  ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08, arp[13] = 0x06;
  box.send(0, 0, ack);
  box.send(0, 0, arp);
  EXPECT_EQ(box.out.at(0).bytes, test::frame(ack));
  EXPECT_EQ(box.out.at(1).bytes, arp);
  EXPECT_EQ(box.stats.read("forward_trimmed"), 0u);
}

TEST(LinkTrim, ATrimmedPacketIsNotTrimmedAgain) {
  link::Config config;
  config.forward.trim = config.reverse.trim = 1;
  test::KernelBox box(with(config));
  box.send(0, 0, write_packet(4, 100));
  const auto trimmed = box.out.at(0).bytes;
  box.send(1, 1, trimmed);
  EXPECT_EQ(box.out.at(1).bytes, trimmed);
  EXPECT_EQ(box.stats.read("reverse_trimmed"), 0u);
}

TEST(LinkTrim, AFullQueueTrimsIntoItsReserveAndDropsOtherTraffic) {
  link::Config config;
  config.forward.rate = 1'000'000'000;
  config.forward.queue = 10'000;
  config.forward.queue_full = link::QueueFull::kTrim;
  config.forward.trim_dscp = 46;
  test::KernelBox box(with(config));
  const auto data = write_packet(4, 1000);
  const std::size_t size = data.size() + 24, trimmed_size = 70 + 24, fits = 10'000 / size;
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08, arp[13] = 0x06;
  for (std::size_t i = 0; i < fits; i++) box.send(0, 0, data);
  box.send(0, 0, arp);  // still fits into 10 000 - 9 * 1098
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 0u);
  box.send(0, 0, arp);
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 1u);
  for (int i = 0; i < 1000; i++) box.send(0, 0, data);
  const std::uint64_t in_reserve = (10'000 + 65'536 - fits * size - 84) / trimmed_size;
  EXPECT_EQ(box.stats.read("forward_trimmed"), in_reserve);
  EXPECT_EQ(box.stats.read("forward_drop_queue_full"), 1 + 1000 - in_reserve);
  box.drain();
  ASSERT_EQ(box.out.size(), fits + 1 + in_reserve);
  EXPECT_EQ(box.out.back().bytes.size(), 70u);
  EXPECT_EQ(tos_of(box.out.back().bytes), 46u << 2 | roce::kEcnEct0);
}

TEST(LinkTrim, HeadersOnlyUseTheReserveUncut) {
  link::Config config;
  config.forward.rate = 1'000'000'000;
  config.forward.queue = 1'000;
  config.forward.queue_full = link::QueueFull::kTrim;
  test::KernelBox box(with(config));
  box.send(0, 0, write_packet(4, 1000));
  roce::PacketSpec ack;
  ack.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  box.send(0, 0, ack);
  box.drain();
  ASSERT_EQ(box.out.size(), 2u);
  EXPECT_EQ(box.out[1].bytes, test::frame(ack)) << "with its ICRC";
}

TEST(LinkMark, OnlyEctIsMarkedAndChecksStayRight) {
  link::Config config;
  config.forward.mark = 1;
  test::KernelBox box(with(config));
  for (const std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}})
    for (std::uint8_t ecn = 0; ecn < 4; ecn++) {
      const auto sent = write_packet(version, 64, static_cast<std::uint8_t>(0xB8 | ecn));
      box.send(0, 0, sent);
      const test::Out& out = box.out.back();
      EXPECT_EQ(tos_of(out.bytes), ecn == 0 ? 0xB8u : 0xBBu);
      if (version == 4) {
        EXPECT_TRUE(ipv4_checksum_right(out.bytes));
      }
      EXPECT_EQ(std::vector(out.bytes.begin() + 26, out.bytes.end()), std::vector(sent.begin() + 26, sent.end()))
          << "ICRC included: it does not see the mark";
    }
  EXPECT_EQ(box.stats.read("forward_ecn_marked"), 4u) << "CE was CE before";
  EXPECT_EQ(box.stats.read("forward_ecn_not_ect"), 2u);
}

TEST(LinkMark, MarksOtherIpTraffic) {
  link::Config config;
  config.forward.mark = 1;
  test::KernelBox box(with(config));
  auto sent = write_packet(4, 64);
  sent[37] = 99;  // another UDP port
  box.send(0, 0, sent);
  EXPECT_EQ(box.out[0].meta.status, ParseStatus::kOtherUdpPort);
  EXPECT_EQ(tos_of(box.out[0].bytes), roce::kEcnCe);
  EXPECT_TRUE(ipv4_checksum_right(box.out[0].bytes));
}

// A queue of constant occupancy: its packets are of one size and come as fast as they leave.
double marked_share(std::size_t filling, const link::Ecn& ecn, unsigned packets) {
  link::Config config;
  config.forward.rate = 8'000'000'000;  // a byte a nanosecond
  config.forward.ecn = ecn;
  test::KernelBox box(with(config));
  const auto data = write_packet(4, 904);
  const Nanos size = static_cast<Nanos>(data.size() + 24);
  for (std::size_t i = 0; i < filling; i++) box.send(0, 0, data);
  const std::uint64_t before = box.stats.read("forward_ecn_marked");
  for (unsigned i = 1; i <= packets; i++) {
    box.send(i * size, 0, data);
    box.out.clear();
  }
  const double marked = static_cast<double>(box.stats.read("forward_ecn_marked") - before);
  box.drain();
  return marked / packets;
}

TEST(LinkEcn, ProbabilityIsLinearBetweenMinAndMax) {
  const std::uint64_t size = write_packet(4, 904).size() + 24;
  constexpr unsigned kPackets = 20'000;
  // At each arrival the queue holds `filling` - 1 whole packets.
  const link::Ecn ecn{2 * size, 6 * size, 0.4};
  const double expected[] = {0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 1.0, 1.0};
  for (std::size_t filling = 1; filling < 10; filling++) {
    const double p = expected[filling];
    EXPECT_NEAR(marked_share(filling, ecn, kPackets), p, 4 * std::sqrt(p * (1 - p) / kPackets)) << filling;
  }
}

TEST(LinkEcn, EqualLimitsAreAStep) {
  const std::uint64_t size = write_packet(4, 904).size() + 24;
  EXPECT_EQ(marked_share(3, {2 * size + 1, 2 * size + 1, 1}, 100), 0);
  EXPECT_EQ(marked_share(3, {2 * size, 2 * size, 1}, 100), 1) << "at the limit: Pmax";
  EXPECT_EQ(marked_share(3, {2 * size, 2 * size, 0}, 100), 0);
  EXPECT_EQ(marked_share(3, {2 * size - 1, 2 * size - 1, 0}, 100), 1) << "above: always";
}

}  // namespace
}  // namespace rocebox
