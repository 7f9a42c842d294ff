// SPDX-License-Identifier: BSD-3-Clause
// Encoder to decoder: what is delivered is what was sent, for every pattern of losses that LoWAR(r, c) repairs, and in
// order without a wrong byte for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/kernels/lowar_patterns.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

std::vector<Frame> three_messages(Sender& sender) {
  std::vector<Frame> frames = sender.write(1);
  append(frames, sender.write(5, 3));
  append(frames, sender.write(21, 256));
  append(frames, sender.uc_send_imm(3));
  append(frames, sender.read_response(10));
  return frames;
}

Coded coded(const Config& config, std::vector<Frame> frames) {
  Gateway near(config);
  Coded result{std::move(frames), {}};
  result.crossings = near.encode(result.sent);
  return result;
}

void check(const Config& config, const Coded& coded, const std::set<std::size_t>& lost, const std::string& what) {
  SCOPED_TRACE(what);
  Gateway far(config);
  const std::vector<Crossing> came = without(coded.crossings, lost);
  const std::vector<Frame> got = far.decode(came);
  if (repairable(coded.crossings, lost)) {
    ASSERT_EQ(got.size(), coded.sent.size());
    ASSERT_EQ(got, coded.sent);
    ASSERT_EQ(far.count("decode_released"), 0u);
  } else {
    expect_in_order_part(got, coded.sent, what);
    expect_all_that_came(got, came, far.count("decode_recovered"), what);
  }
  ASSERT_EQ(far.count("decode_rebuild_failed"), 0u);
  ASSERT_EQ(far.conservation().held(), 0u);
  const std::size_t gone = coded.sent.size() - got.size();
  ASSERT_LE(far.count("decode_released") + far.count("decode_missed"), gone) << "nothing else counts as lost";
}

TEST(LowarRoundTrip, WithoutLossNothingChangesAndNothingWaits) {
  for (auto [r, c] : {std::pair{8, 1}, {8, 2}, {4, 2}, {1, 1}, {32, 8}}) {
    Sender sender(0xFFFFFA);
    const Coded all = coded(coding(r, c), three_messages(sender));
    Gateway far(coding(r, c));
    far.out.clear();
    std::size_t data = 0;
    for (const Crossing& crossing : all.crossings) {
      far.send(far.clock += 1000, kLink, crossing.bytes);
      data += crossing.data;
      ASSERT_EQ(far.out.size(), data) << "each packet leaves in its own instant";
    }
    for (std::size_t i = 0; i < data; i++) ASSERT_EQ(far.out[i].bytes, all.sent[i]);
    EXPECT_EQ(far.count("decode_held"), 0u);
    EXPECT_EQ(far.count("drop_repair_unused") + far.count("drop_negotiation") + data, all.crossings.size());
  }
}

TEST(LowarRoundTrip, EverySingleLoss) {
  for (auto [r, c] : {std::pair{8, 1}, {8, 2}, {4, 2}}) {
    for (const std::uint8_t ip : {std::uint8_t{4}, std::uint8_t{6}}) {
      Sender sender(0xFFFFFA);
      sender.ip_version = ip;
      const Coded all = coded(coding(r, c), three_messages(sender));
      for (std::size_t lost = 0; lost < all.crossings.size(); lost++) {
        check(coding(r, c), all, {lost},
              "(" + std::to_string(r) + "," + std::to_string(c) + ") lost " + std::to_string(lost));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(LowarRoundTrip, EveryDoubleLoss) {
  for (auto [r, c] : {std::pair{8, 1}, {8, 2}, {4, 2}}) {
    Sender sender(0xFFFFFA);
    std::vector<Frame> frames = sender.write(3);
    append(frames, sender.write(1));
    append(frames, sender.write(13, 256));
    append(frames, sender.write(2, 4));
    const Coded all = coded(coding(r, c), frames);
    const std::size_t count = all.crossings.size();
    EXPECT_TRUE(is_announcement(all.crossings[0]));
    unsigned repaired = 0;
    for (std::size_t i = 0; i < count; i++)
      for (std::size_t j = i + 1; j < count; j++) {
        repaired += repairable(all.crossings, {i, j});
        check(coding(r, c), all, {i, j},
              "(" + std::to_string(r) + "," + std::to_string(c) + ") lost " + std::to_string(i) + " and " +
                  std::to_string(j));
        if (testing::Test::HasFatalFailure()) return;
      }
    EXPECT_GT(repaired, count);
  }
}

// The data packets of which a repair packet came, and everything else that this covers: by the format alone.
std::vector<Frame> repairable_packets(const std::vector<Crossing>& crossings, const std::set<std::size_t>& lost) {
  std::map<std::uint32_t, std::size_t> at;  // by PSN
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].data) at[crossings[i].psn] = i;
  std::vector<Frame> result;
  for (std::size_t i = 0; i < crossings.size(); i++) {
    if (!crossings[i].repair || lost.contains(i)) continue;
    const RepairHeader& header = *crossings[i].repair;
    std::vector<std::size_t> gone;
    for (unsigned place = header.isn; place < header.block.packets; place += header.block.coding.c)
      if (const std::size_t data = at.at(header.block.base_psn + place); lost.contains(data)) gone.push_back(data);
    if (gone.size() == 1) result.push_back(crossings[gone[0]].bytes);
  }
  return result;
}

// However much is lost, of messages of all kinds, where no packet overtakes another: to know more of blocks ahead of
// their packets would not repair one more.
TEST(LowarRoundTrip, EveryPacketThatTheCodeCanRepairIsRepaired) {
  std::mt19937 random(11);
  std::size_t could = 0, did = 0;
  for (unsigned round = 0; round < 60; round++) {
    const int c = 1 + static_cast<int>(random() % 8), r = c + static_cast<int>(random() % 30);
    Sender sender(random() & 0x7FFFFF);
    std::vector<Frame> frames;
    const bool responses = round % 3 == 2;
    while (frames.size() < 1000) {
      const auto length = static_cast<unsigned>(1 + random() % (round % 2 ? 60 : 4));
      if (responses) sender.psn += static_cast<std::uint32_t>(random() % 3);  // other requests
      append(frames, responses ? sender.read_response(length) : sender.write(length));
    }
    const Coded all = coded(coding(r, c), frames);
    std::set<std::size_t> lost;
    for (std::size_t place = 1; place < all.crossings.size(); place++)  // but for the announcement
      if (random() % (round % 5 ? 50 : 8) == 0) lost.insert(place);
    Gateway far(coding(r, c));
    const std::vector<Frame> got = far.decode(without(all.crossings, lost)),
                             wanted = repairable_packets(all.crossings, lost);
    const std::set<Frame> came(got.begin(), got.end());
    could += wanted.size();
    did += static_cast<std::size_t>(
        std::count_if(wanted.begin(), wanted.end(), [&](const Frame& f) { return came.contains(f); }));
  }
  EXPECT_GT(could, 1000u);
  EXPECT_EQ(did, could);
}

TEST(LowarRoundTrip, RandomLossReorderingAndDuplicates) {
  std::mt19937 random(3);
  std::uint64_t recovered = 0;
  for (unsigned round = 0; round < 120; round++) {
    const int c = 1 + static_cast<int>(random() % 8), r = c + static_cast<int>(random() % 30);
    Sender sender(random() & 0xFFFFFF);
    std::vector<Frame> frames;
    for (unsigned messages = 0; messages < 12; messages++)
      append(frames, sender.write(static_cast<unsigned>(1 + random() % 40), 1 + random() % 256));
    const Coded all = coded(coding(r, c), frames);
    std::set<std::size_t> lost;
    for (std::size_t place = 0; place < all.crossings.size(); place++)
      if (random() % 25 == 0) lost.insert(place);
    check(coding(r, c), all, lost, "round " + std::to_string(round));
    if (testing::Test::HasFatalFailure()) return;

    // Overtaken by up to four and doubled besides: every packet that comes out was sent, and none is lost that came.
    std::vector<Crossing> link = without(all.crossings, lost);
    for (std::size_t i = 1; i + 5 < link.size(); i++)
      if (random() % 20 == 0) std::rotate(link.begin() + i, link.begin() + i + 1, link.begin() + i + 1 + random() % 4);
    for (std::size_t i = link.size(); i-- > 1;)
      if (random() % 30 == 0) link.insert(link.begin() + static_cast<std::ptrdiff_t>(i), link[i]);
    Gateway far(coding(r, c));
    const std::vector<Frame> got = far.decode(link);
    expect_in_order_part(without_copies(got), frames, "round " + std::to_string(round));
    if (testing::Test::HasFatalFailure()) return;
    std::map<Frame, unsigned> copies;  // that may still come out
    for (const Crossing& crossing : link) copies[crossing.bytes] += crossing.data;
    const std::set<Frame> came(got.begin(), got.end());
    for (const auto& [frame, count] : copies) ASSERT_TRUE(!count || came.contains(frame)) << "round " << round;
    for (const Frame& frame : came) copies.try_emplace(frame, 1);  // recovered
    for (const Frame& frame : got) ASSERT_GT(copies[frame]--, 0u) << "round " << round << ": once too often";
    ASSERT_EQ(far.count("decode_rebuild_failed"), 0u);
    recovered += far.count("decode_recovered");
  }
  EXPECT_GT(recovered, 500u);
}

}  // namespace
}  // namespace rocebox::lowar
