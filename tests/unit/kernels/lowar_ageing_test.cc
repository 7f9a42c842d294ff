// SPDX-License-Identifier: BSD-3-Clause
// Streams that are idle give their places, and their coding units, to new ones.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

Config few_streams() {
  Config config = coding(8, 1);
  config.streams = 4;
  config.idle = 10 * kSecond;
  return config;
}

TEST(LowarAgeing, StreamsBeyondTheTableAreProtectedOnceOthersAreIdle) {
  Gateway near(few_streams()), far(few_streams());
  std::vector<Sender> senders;
  for (std::uint32_t qpn = 0x10; qpn < 0x16; qpn++) senders.emplace_back(qpn * 1000, qpn);
  for (Sender& sender : senders) (void)far.decode(near.encode(sender.write(8, 256)), false);
  EXPECT_EQ(near.count("encode_streams"), 4u);
  EXPECT_EQ(near.count("encode_unprotected_streams"), 16u);
  EXPECT_EQ(near.count("encode_streams_aged"), 0u);

  near.clock += 5 * kSecond, far.clock = near.clock;
  (void)far.decode(near.encode(senders[0].write(8, 256)), false);  // one is used meanwhile
  near.clock += 7 * kSecond, far.clock = near.clock;
  for (const std::size_t number : {4u, 5u, 0u}) {
    const std::vector<Frame> message = senders[number].write(8, 256);
    std::vector<Crossing> link = near.encode(message);
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(data_of(link)[3]));
    EXPECT_EQ(far.decode(link, false), message) << number << " is protected";
  }
  EXPECT_EQ(near.count("encode_streams_aged"), 2u) << "the longest idle ones";
  EXPECT_EQ(far.count("decode_streams_aged"), 2u);
  EXPECT_EQ(far.count("decode_recovered"), 3u);
  EXPECT_EQ(near.count("encode_streams"), 6u) << "the one that was used is the same";
}

TEST(LowarAgeing, NobodyGivesHisPlaceBeforeTheTime) {
  Gateway near(few_streams());
  for (std::uint32_t round = 0; round < 20; round++) {
    for (std::uint32_t qpn = 0x10; qpn < 0x15; qpn++) {
      Sender sender(round * 8, qpn);
      (void)near.encode(sender.write(8, 256));
    }
    near.clock += 9 * kSecond;
  }
  EXPECT_EQ(near.count("encode_streams_aged"), 0u);
  EXPECT_EQ(near.count("encode_unprotected_streams"), 20u * 8);
}

TEST(LowarAgeing, UnitsOfStreamsThatDiedInABlockComeBack) {
  Config config = coding(8, 4);
  config.units = 8;
  config.idle = 10 * kSecond;
  Gateway near(config), far(config);
  const auto begin_message = [&](std::uint32_t qpn) {
    Sender sender(0, qpn);
    std::vector<Frame> message = sender.write(8, 256);
    message.resize(5);  // the host died
    (void)far.decode(near.encode(message), false);
  };
  begin_message(0x10), begin_message(0x11), begin_message(0x12);
  EXPECT_EQ(near.count("encode_unprotected_units"), 5u);
  EXPECT_EQ(far.count("decode_units_full"), 1u);
  near.clock += 20 * kSecond, far.clock = near.clock;
  Sender sender(0, 0x20);
  const std::vector<Frame> message = sender.write(8, 256);
  std::vector<Crossing> link = near.encode(message);
  EXPECT_EQ(near.count("encode_unprotected_units"), 5u) << "none more";
  link.erase(link.begin() + static_cast<std::ptrdiff_t>(data_of(link)[3]));
  EXPECT_EQ(far.decode(link, false), message);
  EXPECT_EQ(near.count("encode_units_max"), 8u);
}

TEST(LowarAgeing, ARepairPacketForAnIdleStreamLeaksNoUnit) {
  Config config = coding(4, 2);
  config.units = 2;
  config.idle = 2 * kSecond;
  Gateway far(config);
  const auto begin_message = [](std::uint32_t qpn) {
    Sender sender(0, qpn);
    std::vector<Frame> frames = sender.write(4, 256);
    frames[2] = frames[0];  // a retransmission ends the block
    frames.resize(3);
    return Gateway(coding(4, 2)).encode(frames);
  };
  // The first stream has one unit and another one the other, when the rebuilt packet would need a third.
  const std::vector<Crossing> first = begin_message(0x10), other = begin_message(0x11);
  EXPECT_EQ(far.decode({first[0], first[1]}, false).size(), 1u);
  far.clock += 3 * kSecond;
  EXPECT_EQ(far.decode({other[0], other[1]}, false).size(), 1u);
  EXPECT_EQ(far.decode({first[repair_of(first, 0, 1)]}, false).size(), 1u);
  EXPECT_EQ(far.count("decode_recovered"), 1u);
  EXPECT_EQ(far.count("decode_streams_aged"), 0u) << "it is in use";
  far.clock += 10 * kSecond;
  for (std::uint32_t qpn = 0x20; qpn < 0x24; qpn++) {
    Sender sender(0, qpn);
    const std::vector<Frame> message = sender.write(8, 256);
    const std::vector<Crossing> link = Gateway(coding(4, 2)).encode(message);
    EXPECT_EQ(far.decode(without(link, {at_psn(link, 3)}), false), message) << "both units are there";
  }
}

TEST(LowarAgeing, ManyStreamsComeAndGo) {
  Config config = few_streams();
  config.streams = 64;
  Gateway near(config), far(config);
  for (std::uint32_t i = 0; i < 2000; i++) {
    Sender sender(i, 0x100 + i);
    const std::vector<Frame> message = sender.write(9, 256);
    std::vector<Crossing> link = near.encode(message);
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(data_of(link)[i % 9]));
    ASSERT_EQ(far.decode(link, false), message) << i;
    near.clock += 200 * kMillisecond, far.clock = near.clock;
  }
  EXPECT_EQ(near.count("encode_unprotected_streams"), 0u);
  EXPECT_EQ(near.count("encode_streams_aged"), 2000u - 64);
  EXPECT_EQ(far.count("decode_streams_aged"), 2000u - 64);
}

}  // namespace
}  // namespace rocebox::lowar
