// SPDX-License-Identifier: BSD-3-Clause
// The sender's count of packets: where a message may begin at any PSN, nothing else tells of a loss.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_pair.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using oracle::bernoulli;

// READ responses of one packet each, with PSNs of other requests between them.
std::vector<Frame> responses(Sender& sender, unsigned count) {
  std::vector<Frame> frames;
  for (unsigned i = 0; i < count; i++, sender.psn += 3) append(frames, sender.read_response(1));
  return frames;
}
// READ requests alone: of no path MTU known.
std::vector<Frame> reads(Sender& sender, unsigned count) {
  std::vector<Frame> frames;
  for (unsigned i = 0; i < count; i++, sender.psn += 3)
    frames.push_back(sender.one(IBV_OPCODE_RC_RDMA_READ_REQUEST, 0, 1000));
  return frames;
}

TEST(LowarCount, EveryLostMessageOfOnePacketIsCounted) {
  for (const bool read_responses : {true, false}) {
    Gateway near(coding(8, 1)), far(coding(8, 1));
    Sender sender{10};
    const std::vector<Crossing> all = near.encode(read_responses ? responses(sender, 600) : reads(sender, 600));
    std::set<std::size_t> lost;
    const auto lose = [&](std::uint32_t number, bool repair) {
      lost.insert(at_psn(all, 10 + 4 * number));
      if (repair) lost.insert(repair_of(all, 10 + 4 * number));
    };
    for (const std::uint32_t number : {5u, 77u, 300u}) lose(number, true);
    for (std::uint32_t number = 400; number < 420; number++) lose(number, true);
    for (const std::uint32_t number : {20u, 500u}) lose(number, false);
    const std::vector<Frame> got = far.decode(without(all, lost));
    EXPECT_EQ(got.size(), 600u - 23);
    EXPECT_EQ(far.count("decode_recovered"), 2u);
    EXPECT_EQ(far.count("decode_missed"), 23u);
    EXPECT_EQ(far.count("decode_released"), 0u);
  }
}

TEST(LowarCount, TheLastResponsesAreCountedWithTheNextMessage) {
  Gateway near(coding(8, 1)), far(coding(8, 1));
  Sender sender{10};
  std::vector<Frame> frames = sender.read_response(8, 256);
  sender.psn = 1000;
  append(frames, sender.read_response(8, 256));
  const std::vector<Crossing> all = near.encode(frames);
  const std::set<std::size_t> lost = {at_psn(all, 15), at_psn(all, 16), at_psn(all, 17), repair_of(all, 10)};
  const std::vector<Crossing> came = without(all, lost);
  EXPECT_EQ(far.decode(came), data_frames(came));
  EXPECT_EQ(far.count("decode_released"), 1u) << "one at least";
  EXPECT_EQ(far.count("decode_missed"), 2u) << "and those that nobody could know of";
}

TEST(LowarCount, WhatIsDoubledOrOvertakenWasNotLost) {
  Gateway near(coding(8, 1)), far(coding(8, 1));
  Sender sender{10};
  const std::vector<Crossing> all = near.encode(responses(sender, 200));
  std::vector<Crossing> link;
  for (std::size_t i = 0; i < all.size(); i++) {
    link.push_back(all[i]);
    if (i % 11 == 0) link.push_back(all[i]);
  }
  for (std::size_t i = 2; i + 1 < link.size(); i += 7) std::swap(link[i], link[i + 1]);
  (void)far.decode(link);
  EXPECT_EQ(far.count("decode_missed"), 0u);
}

// It could only go behind the message that overtook its repair packet.
TEST(LowarCount, AResponseWhoseRepairPacketIsOvertakenIsLost) {
  Gateway near(coding(8, 1)), far(coding(8, 1));
  Sender sender{10};
  const std::vector<Crossing> all = near.encode(responses(sender, 6));
  const std::size_t lost = at_psn(all, 18), repair = repair_of(all, 18);
  const std::vector<Crossing> link = without(overtaken(all, {repair}, at_psn(all, 22)), {lost});
  std::vector<Frame> wanted = data_frames(all);
  wanted.erase(wanted.begin() + 2);
  EXPECT_EQ(far.decode(link), wanted) << "in order, and none waits";
  EXPECT_EQ(far.count("decode_held"), 0u);
  EXPECT_EQ(far.count("decode_missed"), 1u);
}

TEST(LowarCount, PacketsThatAreTooLongToBeCodedAreNoLosses) {
  Config small = coding(8, 1);
  small.roce_mtu = 0;  // 256
  Gateway near(small), far(small);
  Sender sender{10};
  sender.mtu = 1024;
  std::vector<Frame> frames = sender.write(3, 100);
  for (unsigned i = 0; i < 3; i++) append(frames, sender.write(201, 100));
  std::vector<Crossing> link = near.encode(frames);
  EXPECT_EQ(near.count("encode_unprotected_size"), 602u);
  EXPECT_EQ(near.count("encode_repairs"), 4u) << "the messages' last packets";
  EXPECT_EQ(far.decode(link), frames);
  EXPECT_EQ(far.count("decode_missed"), 0u);
}

TEST(LowarCount, ARestartOfEitherEndIsNoLoss) {
  Sender sender{10};
  Gateway first(coding(8, 1)), second(coding(8, 1)), far(coding(8, 1)), fresh(coding(8, 1));
  const std::vector<Crossing> before = first.encode(responses(sender, 100)),
                              more = first.encode(responses(sender, 100));
  const std::vector<Crossing> after = second.encode(responses(sender, 100));
  for (const auto* crossings : {&before, &more, &after}) (void)far.decode(*crossings);
  EXPECT_EQ(far.count("decode_missed"), 0u) << "the encoder's";
  for (const auto* crossings : {&more, &after}) (void)fresh.decode(*crossings);
  EXPECT_EQ(fresh.count("decode_missed"), 0u) << "the decoder's";
}

TEST(LowarCount, UncodedStreamsOfSuchMessagesAreMeasuredToo) {
  for (const auto& make : {responses, reads}) {
    Pair pair(adaptive(1e-3, 1), adaptive(1e-3, 1));  // they cost as much again
    Sender sender;
    pair.send(make(sender, 20'000));
    ASSERT_TRUE(pair.setting(sender).off());
    EXPECT_EQ(pair.far->count("decode_missed"), 0u);
    pair.link.change(bernoulli(0.01));
    pair.send(make(sender, 10'000));
    EXPECT_FALSE(pair.setting(sender).off());
    const std::uint64_t lost = pair.not_delivered;
    pair.send(make(sender, 20'000));
    EXPECT_LE(pair.not_delivered - lost, 30u) << "the target of a thousandth";
    pair.link.change({});
    pair.send(make(sender, 60'000));
    EXPECT_TRUE(pair.setting(sender).off());
    EXPECT_NEAR(static_cast<double>(pair.far->count("decode_missed") + pair.far->count("decode_recovered")),
                static_cast<double>(pair.data_lost), 3);
  }
}

}  // namespace
}  // namespace rocebox::lowar
