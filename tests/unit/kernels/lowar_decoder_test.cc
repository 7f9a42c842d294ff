// SPDX-License-Identifier: BSD-3-Clause
// The decoder where things go wrong: late, doubled, forged, corrupt, restarted, unrepairable.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

std::vector<Frame> data_frames(const std::vector<Crossing>& crossings) {
  std::vector<Frame> result;
  for (const Crossing& crossing : crossings)
    if (crossing.data) result.push_back(crossing.bytes);
  return result;
}

// Index of the data packet with this PSN.
std::size_t at_psn(const std::vector<Crossing>& crossings, std::uint32_t psn) {
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].data && crossings[i].psn == psn) return i;
  ADD_FAILURE() << "no PSN " << psn;
  return 0;
}
std::size_t repair_of(const std::vector<Crossing>& crossings, std::uint32_t base, unsigned isn = 0) {
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].repair && crossings[i].repair->block.base_psn == base && crossings[i].repair->isn == isn) return i;
  ADD_FAILURE() << "no repair packet of " << base;
  return 0;
}

// Changes a frame and makes its ICRC right again: what a forger does.
Crossing forged(Crossing crossing, const std::function<void(Frame&)>& change) {
  change(crossing.bytes);
  static Pool pool({.small = 16, .large = 4, .giant = 2});
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(crossing.bytes.size()));
  std::copy(crossing.bytes.begin(), crossing.bytes.end(), packet->data());
  roce::parse(*packet);
  roce::icrc_store(*packet);
  crossing.bytes.assign(packet->data(), packet->data() + packet->size());
  return crossing;
}
constexpr std::size_t kHeader = 14 + 20 + 8, kImage = kHeader + sizeof(HeaderBytes);

class LowarDecoder : public testing::Test {
 protected:
  LowarDecoder() : near(coding(8, 1)), far(coding(8, 1)) { crossings = near.encode(sender.write(20, 256)); }
  Gateway near, far;
  Sender sender{100};
  std::vector<Crossing> crossings;  // announcement, 8 data, repair, 8 data, repair, 4 data, repair
};

TEST_F(LowarDecoder, AnUnrepairableBlockIsReleasedInOrderWithinTheBound) {
  const std::size_t a = at_psn(crossings, 103), b = at_psn(crossings, 105);
  const std::vector<Crossing> came = without(crossings, {a, b});
  far.out.clear();
  for (const Crossing& crossing : came) far.send(far.clock += 1000, kLink, crossing.bytes);
  const Nanos end = far.clock;
  far.drain();
  std::vector<Frame> wanted = data_frames(came), got;
  for (const test::Out& o : far.out) {
    got.push_back(o.bytes);
    EXPECT_LE(o.at, end + 2 * (8 + 1 + 16) * kMicrosecond) << "twice the block's time";
  }
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(far.count("decode_released"), 2u);
  EXPECT_EQ(far.count("decode_recovered"), 0u);
  EXPECT_EQ(far.count("drop_repair_short"), 1u);
}

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

TEST_F(LowarDecoder, ACorruptPacketCountsAsLostAndIsRecovered) {
  for (std::size_t index : data_of(crossings)) {
    for (std::size_t back : {std::size_t{1}, std::size_t{20}}) {
      Gateway fresh(coding(8, 1));
      std::vector<Crossing> link = crossings;
      Frame& bytes = link[index].bytes;
      bytes[bytes.size() - back] ^= 0x40;
      ASSERT_EQ(fresh.decode(link), data_frames(crossings)) << index;
      ASSERT_EQ(fresh.count("drop_icrc"), 1u);
      ASSERT_EQ(fresh.count("decode_recovered"), 1u);
    }
  }
}

TEST_F(LowarDecoder, EveryFlippedBitOfARepairPacketIsHarmless) {
  const std::size_t lost = at_psn(crossings, 103), repair = repair_of(crossings, 100);
  std::vector<Crossing> link = without(crossings, {lost});
  const std::vector<Frame> without_it = data_frames(link);
  const std::size_t bytes = crossings[repair].bytes.size();
  // The opcode aside: with another one it is no LoWAR packet.
  for (std::size_t bit = kHeader * 8 + 8; bit < bytes * 8; bit += bit < (kImage + 40) * 8 ? 1 : 61) {
    Gateway fresh(coding(8, 1));
    std::vector<Crossing> bent = link;
    bent[repair - 1].bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    ASSERT_EQ(fresh.decode(bent).size(), without_it.size()) << bit;
    ASSERT_EQ(fresh.count("decode_recovered"), 0u) << bit;
  }
}

TEST_F(LowarDecoder, ForgedRepairPacketsDeliverNoWrongByte) {
  const std::size_t lost = at_psn(crossings, 103), repair = repair_of(crossings, 100);
  const std::set<Frame> sent = [&] {
    const std::vector<Frame> frames = data_frames(crossings);
    return std::set<Frame>(frames.begin(), frames.end());
  }();
  // Each byte of header and prefix but the opcode, and some of the image, with a right ICRC over all.
  for (std::size_t at = kHeader + 1; at < crossings[repair].bytes.size() - 4; at += at < kImage + 40 ? 1 : 37) {
    for (const std::uint8_t flip : {std::uint8_t{0x01}, std::uint8_t{0x80}, std::uint8_t{0xFF}}) {
      Gateway fresh(coding(8, 1));
      std::vector<Crossing> link = without(crossings, {lost});
      link[repair - 1] = forged(crossings[repair], [&](Frame& frame) { frame[at] ^= flip; });
      for (const Frame& frame : fresh.decode(link)) ASSERT_TRUE(sent.contains(frame)) << at << " ^ " << unsigned{flip};
      ASSERT_EQ(fresh.conservation().held(), 0u);
    }
  }
}

TEST_F(LowarDecoder, TwoForeignPacketsInAnXorAreNoticedAlthoughTheIcrcIsRight) {
  // ICRCs are linear: the XOR of the lost packet with two others of one length has a right ICRC. The PSNs of the two
  // must cancel out, as two versions of one packet do: here 102 in the unit is not the 102 that was coded.
  Sender other{100};
  std::vector<Frame> again = other.write(20, 256);
  other.psn = 102;
  const Frame changed = other.one(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 256);
  std::vector<Crossing> link = without(crossings, {at_psn(crossings, 105)});
  link[at_psn(crossings, 102)].bytes = changed;
  const std::vector<Frame> got = far.decode(link);
  EXPECT_EQ(far.count("decode_recovered"), 0u);
  EXPECT_EQ(far.count("decode_rebuild_failed"), 1u);
  EXPECT_EQ(far.count("drop_repair_failed"), 1u);
  EXPECT_EQ(got.size(), 19u);
}

TEST_F(LowarDecoder, AFloodForUnknownStreamsLeavesNothing) {
  std::vector<Crossing> flood;
  for (unsigned i = 0; i < 500; i++)
    flood.push_back(forged(crossings[repair_of(crossings, 100)], [&](Frame& frame) {
      frame[kHeader + 2] = static_cast<std::uint8_t>(i >> 8), frame[kHeader + 3] = static_cast<std::uint8_t>(i);
      frame[kHeader + 1] = 0x33;
    }));
  EXPECT_TRUE(far.decode(flood).empty());
  EXPECT_EQ(far.count("drop_repair_unknown"), 500u);
  EXPECT_EQ(far.count("decode_streams"), 0u);
}

TEST_F(LowarDecoder, RepairPacketsWithoutDataAreBounded) {
  std::vector<Crossing> link = {crossings[0], crossings[1]};
  for (unsigned i = 0; i < 4000; i++)
    link.push_back(forged(crossings[repair_of(crossings, 108)], [&](Frame& frame) {
      frame[kHeader + 10] = static_cast<std::uint8_t>(i >> 8), frame[kHeader + 11] = static_cast<std::uint8_t>(i);
      frame[kHeader + 5] &= 0xF7;
    }));
  EXPECT_EQ(far.decode(link).size(), 1u);
  EXPECT_LE(far.count("decode_held_max"), 2u * kInterleavingMax);
  EXPECT_EQ(far.conservation().held(), 0u);
}

TEST_F(LowarDecoder, ADecoderStartedInMidStreamRepairsFromTheNextBlockOn) {
  for (std::size_t start = 1; start < crossings.size(); start++) {
    for (std::uint32_t psn = 109; psn < 120; psn++) {
      const std::size_t lost = at_psn(crossings, psn);
      if (lost < start + 10) continue;
      Gateway fresh(coding(8, 1));
      std::vector<Crossing> link(crossings.begin() + static_cast<std::ptrdiff_t>(start), crossings.end());
      const std::vector<Frame> wanted = data_frames(link);
      link.erase(link.begin() + static_cast<std::ptrdiff_t>(lost - start));
      ASSERT_EQ(fresh.decode(link), wanted) << "from " << start << " without " << psn;
    }
  }
}

TEST_F(LowarDecoder, AnEncoderStartedInMidStreamIsFollowed) {
  const std::vector<Frame> message = sender.write(40, 256);
  const std::vector<Frame> before(message.begin(), message.begin() + 13), after(message.begin() + 13, message.end());
  for (std::size_t lost = 0; lost < after.size(); lost++) {
    Gateway first(coding(8, 1)), second(coding(8, 1)), fresh(coding(8, 1));
    std::vector<Crossing> link = first.encode(before);
    const std::vector<Crossing> rest = second.encode(after);
    const auto places = data_of(rest);
    for (std::size_t i = 0; i < rest.size(); i++)
      if (i != places[lost]) link.push_back(rest[i]);
    ASSERT_EQ(fresh.decode(link), message) << lost;
  }
}

TEST_F(LowarDecoder, ADifferentCodingIsLearnedFromTheFirstRepairPacket) {
  for (auto [r, c] : {std::pair{4, 1}, {16, 1}, {8, 4}, {12, 3}}) {
    for (std::uint32_t psn = 140; psn < 172; psn++) {
      Gateway sends(coding(r, c)), receives(coding(8, 1));
      Sender from{120};
      std::vector<Frame> frames = from.write(16, 256);
      append(frames, from.write(36, 256));
      std::vector<Crossing> link = sends.encode(frames);
      link.erase(link.begin());  // nor is it announced
      link.erase(link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, psn)));
      ASSERT_EQ(receives.decode(link), frames) << r << "," << c << " without " << psn;
    }
  }
}

TEST_F(LowarDecoder, ARetransmissionIsProtectedAgain) {
  // Two losses in a block; the host goes back to the first of them, and then one more is lost.
  const std::vector<Frame> message = sender.write(60, 256);
  std::vector<Frame> again(message.begin() + 20, message.end());
  std::vector<Crossing> first = near.encode(std::vector<Frame>(message.begin(), message.begin() + 40));
  std::set<std::size_t> lost = {at_psn(first, 140), at_psn(first, 142)};
  (void)far.decode(without(crossings, {}));
  const std::vector<Frame> got = far.decode(without(first, lost));
  EXPECT_EQ(got.size(), 38u);
  std::vector<Crossing> second = near.encode(again);
  const std::size_t once_more = at_psn(second, 120 + 20 + 25);
  std::vector<Frame> rest = far.decode(without(second, {once_more}));
  EXPECT_EQ(rest, again);
  EXPECT_EQ(far.count("decode_recovered"), 1u);
  EXPECT_EQ(far.count("decode_restarts"), 1u);
}

TEST_F(LowarDecoder, DuplicatesPassAndHarmNothing) {
  for (std::size_t index : data_of(crossings)) {
    Gateway fresh(coding(8, 1));
    std::vector<Crossing> link = crossings;
    const std::size_t lost = index + 1 < crossings.size() && crossings[index + 1].data ? index + 1 : index - 1;
    link.insert(link.begin() + static_cast<std::ptrdiff_t>(index), crossings[index]);
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(lost > index ? lost + 1 : lost));
    std::vector<Frame> got = fresh.decode(link), wanted = data_frames(crossings);
    ASSERT_EQ(got.size(), 21u);
    got.erase(std::unique(got.begin(), got.end()), got.end());
    ASSERT_EQ(std::set<Frame>(got.begin(), got.end()), std::set<Frame>(wanted.begin(), wanted.end())) << index;
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

TEST_F(LowarDecoder, WithoutAGatewayAtTheFarEndOneLossIsWaitedForOnce) {
  Sender from{0};
  std::vector<Crossing> link;
  for (const Frame& frame : from.write(100, 256)) link.push_back({frame, true, {}, 0});
  link.erase(link.begin() + 50);
  link.erase(link.begin() + 20);
  std::vector<Frame> wanted;
  for (const Crossing& crossing : link) wanted.push_back(crossing.bytes);
  EXPECT_EQ(far.decode(link), wanted);
  EXPECT_EQ(far.count("decode_released"), 1u);
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
