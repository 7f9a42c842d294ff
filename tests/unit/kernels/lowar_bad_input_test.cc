// SPDX-License-Identifier: BSD-3-Clause
// The decoder and what is corrupt or forged: never a wrong byte, and bounded.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using LowarBadInput = TwentyPackets;

TEST_F(LowarBadInput, ACorruptPacketCountsAsLostAndIsRecovered) {
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

TEST_F(LowarBadInput, EveryFlippedBitOfARepairPacketIsHarmless) {
  // Packets are short, so that each bit behind Ethernet's header, whose frame check sequence is not ours, has its turn.
  sender.mtu = 4;
  const std::vector<Crossing> all = near.encode(sender.write(8, 4));
  const std::size_t repair = repair_of(all, 120);
  const std::vector<Crossing> link = without(all, {at_psn(all, 123)});
  const std::vector<Frame> sent = data_frames(all), came = data_frames(link);
  const std::size_t bytes = all[repair].bytes.size();
  ASSERT_LT(bytes, 130u);
  // What hops change the ICRC does not see, nor the type: with another one it is no repair packet.
  const std::set<std::size_t> unseen = {14 + 1, 14 + 8, 14 + 10, 14 + 11, kHeader - 2, kHeader - 1};
  for (std::size_t bit = 14 * 8; bit < bytes * 8; bit++) {
    if (bit / 8 == kHeader) continue;  // the opcode: with another one it is no LoWAR packet
    Gateway fresh(coding(8, 1));
    std::vector<Crossing> bent = link;
    Frame& changed = bent[repair - 1].bytes;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    std::vector<Frame> got = fresh.decode(bent);
    if (bit / 8 < kHeader) std::erase(got, changed);  // no RoCE any more, and it passes
    ASSERT_EQ(got, unseen.contains(bit / 8) && got.size() == sent.size() ? sent : came) << bit;
    ASSERT_EQ(fresh.count("decode_recovered"), got.size() - came.size()) << bit;
  }
}

// What comes of a repair packet with another byte and a right ICRC, by the byte's place in the header and behind it.
enum class Outcome : std::uint8_t {
  kRefused,  // it is of another stream or type
  kUsed,     // nothing depends on the byte, or what hops may change does
  kFailed,   // the rebuilt packet does not prove right
  kAny,      // it depends on the value: impossible, of another block, or without effect on the lost packet
};
Outcome outcome_of(std::size_t place) {
  const auto within = [place](std::size_t from, std::size_t count) { return place >= from && place < from + count; };
  const std::size_t hop_limit = sizeof(HeaderBytes) + offsetof(CodedPrefix, hop_limit);
  if (place <= offsetof(HeaderBytes, type)) return Outcome::kRefused;
  if (place == offsetof(HeaderBytes, sent) || within(offsetof(HeaderBytes, hop_sum), 2) || within(hop_limit, 4))
    return Outcome::kUsed;
  return place < offsetof(HeaderBytes, set_sum) ? Outcome::kAny : Outcome::kFailed;
}

TEST_F(LowarBadInput, ForgedRepairPacketsDeliverNoWrongByte) {
  const std::vector<Frame> frames = data_frames(crossings);
  const std::set<Frame> sent(frames.begin(), frames.end());
  unsigned failed_by_header = 0;
  for (const auto& [psn, block] : {std::pair{100u, 100u}, {103u, 100u}, {119u, 116u}}) {  // First, Middle, Last
    const std::size_t lost = at_psn(crossings, psn), repair = repair_of(crossings, block);
    const std::vector<Crossing> came = without(crossings, {lost});
    // Each byte of header and prefix but the opcode, and some of the image up to the lost packet's length.
    const std::size_t end = kImage + sizeof(CodedPrefix) + crossings[lost].bytes.size() - kHeader;
    for (std::size_t at = kHeader + 1; at < end; at += at < kImage + 40 ? 1 : 37) {
      for (const unsigned flip : {0x01u, 0x02u, 0x80u, 0xFFu}) {
        SCOPED_TRACE("PSN " + std::to_string(psn) + ", byte " + std::to_string(at - kHeader) + " ^ " +
                     std::to_string(flip));
        Gateway fresh(coding(8, 1));
        std::vector<Crossing> link = came;
        link[repair - 1] =
            forged(crossings[repair], [&](Frame& frame) { frame[at] ^= static_cast<std::uint8_t>(flip); });
        for (const Frame& frame : fresh.decode(link)) ASSERT_TRUE(sent.contains(frame));
        ASSERT_EQ(fresh.conservation().held(), 0u);
        const Outcome outcome = outcome_of(at - kHeader);
        const std::uint64_t failed = fresh.count("decode_rebuild_failed"), used = fresh.count("decode_recovered");
        ASSERT_EQ(fresh.count("drop_repair_failed"), failed);
        failed_by_header += outcome == Outcome::kAny && failed;
        if (outcome == Outcome::kAny) continue;
        ASSERT_EQ(failed, outcome == Outcome::kFailed);
        ASSERT_EQ(used, outcome == Outcome::kUsed);
        ASSERT_EQ(fresh.count("drop_repair_unknown") + fresh.count("drop_lowar_malformed"),
                  outcome == Outcome::kRefused);
      }
    }
  }
  EXPECT_EQ(failed_by_header, 3u) << "has_First of the first packet, another c, the length of the last";
}

TEST_F(LowarBadInput, TwoForeignPacketsInAnXorAreNoticedAlthoughTheIcrcIsRight) {
  // ICRCs are linear: the XOR of the lost packet with two others of one length has a right ICRC. The PSNs of the two
  // must cancel out, as two versions of one packet do: here 102 in the unit is not the 102 that was coded.
  Sender other{100};
  (void)other.write(20, 256);  // what comes next has other bytes
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

TEST_F(LowarBadInput, RandomForgeriesDeliverNoWrongByte) {
  std::mt19937 random(11);
  std::uint64_t failed = 0, recovered = 0;
  const std::vector<Frame> frames = data_frames(crossings);
  const std::set<Frame> sent(frames.begin(), frames.end());
  for (unsigned round = 0; round < 1500; round++) {
    Config config = coding(8, 1);
    config.adapt = round % 2;
    Gateway fresh(config);
    std::vector<Crossing> link = crossings;
    for (unsigned i = 0; i < 2; i++) link.erase(link.begin() + 1 + static_cast<std::ptrdiff_t>(random() % 15));
    for (std::size_t i = link.size(); i-- > 0;) {
      if (link[i].data || random() % 2) continue;
      const Crossing bent = forged(link[i], [&](Frame& frame) {
        for (auto changes = 1 + random() % 3; changes > 0; changes--) {
          const std::size_t span = random() % 3 ? sizeof(HeaderBytes) + sizeof(CodedPrefix) : frame.size() - kHeader;
          std::uint8_t& byte = frame[kHeader + 1 + random() % (std::min(span, frame.size() - kHeader) - 1)];
          byte = static_cast<std::uint8_t>(random() % 2 ? random() : byte ^ 1u << random() % 8);
        }
      });
      if (random() % 2)
        link[i] = bent;
      else
        link.insert(link.begin() + static_cast<std::ptrdiff_t>(random() % link.size()), bent);
    }
    for (const Frame& frame : fresh.decode(link)) ASSERT_TRUE(sent.contains(frame)) << round;
    ASSERT_EQ(fresh.conservation().held(), 0u);
    failed += fresh.count("decode_rebuild_failed");
    recovered += fresh.count("decode_recovered");
  }
  EXPECT_GT(failed, 100u);
  EXPECT_GT(recovered, 500u);
}

TEST_F(LowarBadInput, AFloodOfAnnouncementsIsBounded) {
  Config config = coding(8, 1);
  config.streams = 16;
  Gateway small(config);
  std::vector<Crossing> flood;
  for (unsigned i = 0; i < 500; i++)
    flood.push_back(forged(crossings[0], [&](Frame& frame) {
      frame[kHeader + 2] = static_cast<std::uint8_t>(i >> 8), frame[kHeader + 3] = static_cast<std::uint8_t>(i);
    }));
  EXPECT_TRUE(small.decode(flood).empty());
  EXPECT_EQ(small.count("decode_streams"), 16u);
  EXPECT_EQ(small.count("decode_streams_full"), 484u);
  EXPECT_EQ(small.decode(crossings), data_frames(crossings)) << "passed as they are";
}

TEST_F(LowarBadInput, AFloodForUnknownStreamsLeavesNothing) {
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

TEST_F(LowarBadInput, RepairPacketsWithoutDataAreBounded) {
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

}  // namespace
}  // namespace rocebox::lowar
