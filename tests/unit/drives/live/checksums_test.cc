// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/checksums.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/harness.h"

namespace rocebox {
namespace {

constexpr std::uint8_t kTcp = 6, kUdp = 17;

// One's-complement sum of 16-bit words in network order, folded; an odd last byte counts as the upper half of a word.
std::uint16_t folded_sum(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); i++) sum += i % 2 ? bytes[i] : bytes[i] << 8u;
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

struct Segment {
  std::vector<std::uint8_t> frame;
  std::size_t transport, field;
  std::uint32_t pseudo;  // unfolded sum of the pseudo header
  std::uint16_t checked() const { return folded_sum(std::span(frame).subspan(transport), pseudo); }
  void set(std::uint16_t value) {
    frame[field] = static_cast<std::uint8_t>(value >> 8);
    frame[field + 1] = static_cast<std::uint8_t>(value);
  }
};

// A TCP segment or UDP datagram with random addresses and payload; its checksum field is zero.
Segment segment(std::mt19937& random, std::uint8_t ip_version, std::uint8_t protocol, std::size_t payload) {
  const std::size_t ip = ip_version == 4 ? 20 : 40, bytes = (protocol == kTcp ? 20 : 8) + payload;
  Segment result;
  result.frame.resize(14 + ip + bytes);
  for (auto& byte : result.frame) byte = static_cast<std::uint8_t>(random());
  std::uint8_t* at = result.frame.data() + 14;
  const auto total = static_cast<std::uint16_t>(ip_version == 4 ? ip + bytes : bytes);
  result.frame[12] = ip_version == 4 ? 0x08 : 0x86;
  result.frame[13] = ip_version == 4 ? 0x00 : 0xDD;
  at[0] = ip_version == 4 ? 0x45 : 0x60;
  at[ip_version == 4 ? 2 : 4] = static_cast<std::uint8_t>(total >> 8);
  at[ip_version == 4 ? 3 : 5] = static_cast<std::uint8_t>(total);
  if (ip_version == 4) at[6] = 0x40, at[7] = 0;
  at[ip_version == 4 ? 9 : 6] = protocol;
  result.transport = 14 + ip;
  result.field = result.transport + (protocol == kTcp ? 16 : 6);
  result.set(0);
  const std::size_t addresses = ip_version == 4 ? 12 : 8;
  result.pseudo = folded_sum(std::span(result.frame).subspan(14 + addresses, ip - addresses)) + protocol +
                  static_cast<std::uint32_t>(bytes);
  return result;
}

PacketPtr packet_of(Pool& pool, const Segment& segment) {
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(segment.frame.size()));
  std::copy(segment.frame.begin(), segment.frame.end(), packet->data());
  return packet;
}

TEST(Checksums, AnUnfinishedOneIsFinishedAndARightOneIsLeftAlone) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  std::mt19937 random(3);
  for (int round = 0; round < 2000; round++) {
    Segment s = segment(random, random() % 2 ? 4 : 6, random() % 2 ? kTcp : kUdp, random() % 200);
    s.set(folded_sum({}, s.pseudo));  // as a host leaves it
    PacketPtr packet = packet_of(pool, s);
    ASSERT_TRUE(finish_checksum(*packet));
    std::copy_n(packet->data(), s.frame.size(), s.frame.begin());
    ASSERT_EQ(s.checked(), 0xFFFF);

    PacketPtr right = packet_of(pool, s);
    ASSERT_FALSE(finish_checksum(*right));
    ASSERT_TRUE(std::equal(s.frame.begin(), s.frame.end(), right->data()));

    s.frame.back() ^= 1;  // corrupted on its way: must stay wrong
    PacketPtr wrong = packet_of(pool, s);
    ASSERT_FALSE(finish_checksum(*wrong));
    ASSERT_TRUE(std::equal(s.frame.begin(), s.frame.end(), wrong->data()));
  }
}

TEST(Checksums, AsTheHostSaidWhatIsToBeDone) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  std::mt19937 random(4);
  for (int round = 0; round < 500; round++) {
    Segment s = segment(random, random() % 2 ? 4 : 6, random() % 2 ? kTcp : kUdp, random() % 200);
    s.set(folded_sum({}, s.pseudo));
    PacketPtr packet = packet_of(pool, s);
    HostOffload offload;
    offload.flags = 1;
    offload.checksum_start = static_cast<std::uint16_t>(s.transport);
    offload.checksum_offset = static_cast<std::uint16_t>(s.field - s.transport);
    finish_checksum(*packet, offload);
    std::copy_n(packet->data(), s.frame.size(), s.frame.begin());
    ASSERT_EQ(s.checked(), 0xFFFF);
    offload.checksum_start = 60000;  // beyond the packet: nothing is touched
    finish_checksum(*packet, offload);
    ASSERT_TRUE(std::equal(s.frame.begin(), s.frame.end(), packet->data()));
  }
}

TEST(Checksums, FragmentsAndStubsAreLeftAlone) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  std::mt19937 random(5);
  Segment s = segment(random, 4, kUdp, 64);
  s.set(folded_sum({}, s.pseudo));
  for (std::size_t held = 1; held < s.frame.size(); held++) {
    PacketPtr packet = packet_of(pool, s);
    packet->trim_to(static_cast<std::uint32_t>(held));
    EXPECT_FALSE(finish_checksum(*packet)) << held;
  }
  for (const std::uint8_t flags : {std::uint8_t{0x20}, std::uint8_t{0x01}}) {  // more fragments; offset 256
    s.frame[14 + 6] = flags;
    EXPECT_FALSE(finish_checksum(*packet_of(pool, s)));
  }
}

}  // namespace
}  // namespace rocebox
