// SPDX-License-Identifier: BSD-3-Clause
// The decoder where things go wrong: late, doubled, unrepairable, full.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using LowarDecoder = TwentyPackets;

TEST_F(LowarDecoder, PacketsWellBeyondTheBlockReleaseItAtOnce) {
  Config config = coding(8, 1);
  config.reorder = 2, config.hold_min = config.hold_max = kSecond;
  Gateway patient(config);
  const std::vector<Crossing> came = without(crossings, {at_psn(crossings, 103), at_psn(crossings, 105)});
  const std::vector<Frame> got = patient.decode(came, false);
  EXPECT_EQ(got, data_frames(came)) << "no timer was needed";
  EXPECT_EQ(patient.count("decode_released_timeout"), 0u);
  patient.drain();
}

TEST_F(LowarDecoder, ATailLostBeyondRepairIsGivenUpByTime) {
  std::set<std::size_t> lost;
  for (std::uint32_t psn = 116; psn < 120; psn++) lost.insert(at_psn(crossings, psn));
  const std::vector<Crossing> came = without(crossings, lost);
  EXPECT_EQ(far.decode(came), data_frames(came));
  EXPECT_EQ(far.count("decode_released"), 4u);
  EXPECT_EQ(far.count("decode_released_timeout"), 4u);
  // The next message is in order.
  const std::vector<Crossing> next = near.encode(sender.write(3));
  EXPECT_EQ(far.decode(next, false).size(), 3u);
}

TEST_F(LowarDecoder, ARepairPacketThatOvertakesItsBlockWaits) {
  // The repair packet of the first block comes before the block's last three packets, one of which is lost.
  const std::size_t repair = repair_of(crossings, 100);
  std::vector<Crossing> link = without(crossings, {at_psn(crossings, 106)});
  std::rotate(link.begin() + static_cast<std::ptrdiff_t>(repair) - 3,
              link.begin() + static_cast<std::ptrdiff_t>(repair) - 1,
              link.begin() + static_cast<std::ptrdiff_t>(repair));
  EXPECT_EQ(far.decode(link), data_frames(crossings));
  EXPECT_EQ(far.count("decode_recovered"), 1u);
}

TEST_F(LowarDecoder, AnOriginalThatComesAfterItsRecoveryIsDroppedOnce) {
  const std::size_t late = at_psn(crossings, 104), repair = repair_of(crossings, 100);
  std::vector<Crossing> link = crossings;
  link.insert(link.begin() + static_cast<std::ptrdiff_t>(repair) + 2, crossings[late]);
  link.erase(link.begin() + static_cast<std::ptrdiff_t>(late));
  EXPECT_EQ(far.decode(link), data_frames(crossings));
  EXPECT_EQ(far.count("drop_late"), 1u);
  // A retransmission of the same packet passes.
  EXPECT_EQ(far.decode({crossings[late]}).size(), 1u);
  EXPECT_EQ(far.count("drop_late"), 1u);
}

TEST_F(LowarDecoder, AnOriginalThatComesWhileItsRebuiltCopyWaitsIsDroppedOnce) {
  // PSN 2 is lost beyond repair. Behind it waits PSN 5, rebuilt, when its original comes.
  Gateway sends(coding(8, 2)), receives(coding(8, 2));
  Sender from{0};
  const std::vector<Crossing> all = sends.encode(from.write(16, 256));
  const std::set<std::size_t> lost = {at_psn(all, 2), repair_of(all, 0, 0)};
  const std::vector<Crossing> came = without(all, lost);
  EXPECT_EQ(receives.decode(overtaken(came, {at_psn(came, 5)}, repair_of(came, 0, 1))), data_frames(came));
  EXPECT_EQ(receives.count("decode_recovered"), 1u);
  EXPECT_EQ(receives.count("drop_late"), 1u);
  EXPECT_EQ(receives.decode({all[at_psn(all, 5)]}).size(), 1u) << "a retransmission passes";
}

TEST_F(LowarDecoder, AnOriginalIsDroppedOnceAndItsDuplicateWaits) {
  Gateway sends(coding(8, 2)), receives(coding(8, 2));
  Sender from{0};
  const std::vector<Crossing> all = sends.encode(from.write(16, 256));
  const std::vector<Crossing> came = without(all, {at_psn(all, 2), repair_of(all, 0, 0)});
  std::vector<Crossing> link = overtaken(came, {at_psn(came, 5)}, repair_of(came, 0, 1));
  const std::size_t original = at_psn(link, 5);
  link.insert(link.begin() + static_cast<std::ptrdiff_t>(original), link[original]);
  const std::vector<Frame> got = receives.decode(link);
  EXPECT_EQ(without_copies(got), data_frames(came));
  EXPECT_EQ(got.size(), data_frames(came).size() + 1);
  EXPECT_EQ(receives.count("drop_late"), 1u);
}

TEST_F(LowarDecoder, OriginalsOfAWholeBlocksLossesAreDropped) {
  // All repair packets overtake the last packets of the block, as many as they can rebuild.
  for (const unsigned c : {8u, 16u, kInterleavingMax}) {
    Gateway sends(coding(2 * c, c)), receives(coding(2 * c, c));
    Sender from{0};
    const std::vector<Crossing> all = sends.encode(from.write(6 * c, 256));
    std::set<std::size_t> late;
    for (std::uint32_t psn = c; psn < 2 * c; psn++) late.insert(at_psn(all, psn));
    EXPECT_EQ(receives.decode(overtaken(all, late, repair_of(all, 0, c - 1))), data_frames(all)) << c;
    EXPECT_EQ(receives.count("decode_recovered"), c);
    EXPECT_EQ(receives.count("drop_late"), c);
    EXPECT_EQ(receives.count("decode_restarts"), 0u);
  }
}

TEST_F(LowarDecoder, DuplicatesPassAndHarmNothing) {
  for (std::size_t index : data_of(crossings)) {
    Gateway fresh(coding(8, 1));
    std::vector<Crossing> link = crossings;
    const std::size_t lost = index + 1 < crossings.size() && crossings[index + 1].data ? index + 1 : index - 1;
    link.insert(link.begin() + static_cast<std::ptrdiff_t>(index), crossings[index]);
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(lost > index ? lost + 1 : lost));
    const std::vector<Frame> got = fresh.decode(link);
    ASSERT_EQ(got.size(), 21u);
    ASSERT_EQ(without_copies(got), data_frames(crossings)) << index;
    ASSERT_EQ(fresh.count("decode_recovered"), 1u);
  }
}

TEST_F(LowarDecoder, WhatHopsChangeIsTakenFromTheRepairPacket) {
  const auto routed = [](Crossing crossing, std::uint8_t tos) {
    Frame& f = crossing.bytes;
    f[14 + 8] -= 3;  // TTL
    f[14 + 1] = tos;
    f[24] = f[25] = 0;
    std::uint32_t sum = 0;
    for (unsigned i = 14; i < 34; i += 2) sum += static_cast<std::uint32_t>(f[i] << 8 | f[i + 1]);
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    f[24] = static_cast<std::uint8_t>(~sum >> 8), f[25] = static_cast<std::uint8_t>(~sum);
    return crossing;
  };
  std::vector<Crossing> link;
  for (const Crossing& crossing : crossings)  // some are marked on the way
    link.push_back(routed(crossing, crossing.data && crossing.psn % 3 == 0 ? 3 : 2));
  const std::size_t lost = at_psn(crossings, 104);
  std::vector<Frame> got = far.decode(without(link, {lost}));
  ASSERT_EQ(got.size(), 20u);
  EXPECT_EQ(got[4], routed(crossings[lost], 2).bytes);
  EXPECT_EQ(far.count("decode_recovered_hops"), 1u);
}

TEST_F(LowarDecoder, AFullReorderingBufferReleasesAndKeepsOrder) {
  Config config = coding(64, 1);
  config.reordering = 16, config.reorder = 1024;
  Gateway sends(config), small(config);
  Sender from{0};
  const std::vector<Crossing> all = sends.encode(from.write(64, 256));
  const std::vector<Crossing> link = without(all, {at_psn(all, 10)});
  EXPECT_EQ(small.decode(link), data_frames(link));
  EXPECT_EQ(small.count("decode_held_max"), 16u);
  EXPECT_EQ(small.count("decode_released_full"), 1u);
}

TEST_F(LowarDecoder, AnAckStaysBehindTheReadResponsesBeforeIt) {
  Sender from{500};
  std::vector<Frame> frames = from.read_response(6, 256);
  frames.push_back(from.one(IBV_OPCODE_RC_ACKNOWLEDGE));
  append(frames, from.read_response(2));
  const std::vector<Crossing> link = near.encode(frames);
  EXPECT_EQ(far.decode(without(link, {at_psn(link, 503)})), frames);
  // Also when the response cannot be repaired.
  Gateway fresh(coding(8, 1));
  const std::vector<Crossing> less = without(link, {at_psn(link, 502), at_psn(link, 503)});
  EXPECT_EQ(fresh.decode(less), data_frames(less));
}

// Eight READ responses of which the fifth and the last are lost beyond repair, an ACK far ahead, and more responses.
struct AckBehindLosses {
  AckBehindLosses() {
    frames = from.read_response(8, 256);
    from.psn = 40;
    frames.push_back(from.one(IBV_OPCODE_RC_ACKNOWLEDGE));
    link = without(near.encode(frames), {5, 8});  // the announcement is the first
  }
  Gateway near{coding(8, 1)}, far{coding(8, 1)};
  Sender from{10};
  std::vector<Frame> frames;
  std::vector<Crossing> link;
};

TEST_F(LowarDecoder, AnAckThatWaitsSaysNothingOfLosses) {
  AckBehindLosses acked;
  EXPECT_EQ(acked.far.decode(acked.link), data_frames(acked.link));
  EXPECT_EQ(acked.far.count("decode_released"), 1u) << "of the other nobody knows yet";
  acked.from.psn = 18;
  const std::vector<Frame> more = acked.from.read_response(8, 256);
  EXPECT_EQ(acked.far.decode(acked.near.encode(more)), more);
  EXPECT_EQ(acked.far.count("decode_released"), 2u);
  EXPECT_EQ(acked.far.count("decode_restarts"), 0u);
}

TEST_F(LowarDecoder, AnAckWithAWrongIcrcPassesAtOnce) {
  AckBehindLosses acked;
  std::vector<Crossing>& link = acked.link;
  ASSERT_EQ(link.back().bytes.size(), kHeader + 12 + 4 + 4) << "the ACK is the last";
  link.back().bytes[kHeader + 9] ^= 0x40;  // bit 22 of the PSN
  const std::vector<Frame> got = acked.far.decode(link, false);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got.back(), link.back().bytes) << "ahead of the responses that wait";
  EXPECT_EQ(got.size(), 5u);
  EXPECT_EQ(acked.far.count("decode_answers_icrc"), 1u);
  acked.far.drain();
  EXPECT_EQ(acked.far.count("decode_released"), 1u);
}

TEST_F(LowarDecoder, AReadRequestTakesThePsnsOfItsResponse) {
  Sender from{0xFFFFF0};
  std::vector<Frame> frames = from.write(3, 256);
  frames.push_back(from.one(IBV_OPCODE_RC_RDMA_READ_REQUEST, 0, 1000));  // four packets of 256
  from.psn += 3;
  append(frames, from.write(9, 256));
  frames.push_back(from.one(IBV_OPCODE_RC_FETCH_ADD));
  append(frames, from.write(2, 256));
  const std::vector<Crossing> link = Gateway(coding(8, 1)).encode(frames);
  for (std::size_t lost : data_of(link)) {
    Gateway fresh(coding(8, 1));
    ASSERT_EQ(fresh.decode(without(link, {lost})), frames) << lost;
    ASSERT_EQ(fresh.count("decode_released"), 0u);
  }
}

}  // namespace
}  // namespace rocebox::lowar
