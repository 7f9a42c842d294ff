// SPDX-License-Identifier: BSD-3-Clause
// The paper's examples that need more than an encoder: figure 7 with a depth for each connection, figures 11 and 13.
// Figures 6 and 14 are with the encoder's tests, figure 8 with the header's, table I with the state's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "tests/unit/kernels/lowar_pair.h"
#include "tests/unit/kernels/lowar_patterns.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

// As the far gateway would: another (r, c) for the stream that this announcement begins.
void ask(Gateway& near, const Crossing& announcement, Coding coding) {
  const auto span = std::span(announcement.bytes).subspan(kHeader, sizeof(HeaderBytes));
  const auto said = parse_negotiation(span);
  ASSERT_TRUE(said && said->kind == NegotiationKind::kAnnounce);
  NegotiationHeader header{said->qpn, NegotiationKind::kRequest, coding, said->base_psn, false};
  header.serial = 1, header.token = said->token;
  const HeaderBytes bytes = encode(header);
  const Crossing request = forged(announcement, [&](Frame& frame) {
    for (unsigned i = 0; i < 4; i++) std::swap(frame[26 + i], frame[30 + i]);  // the IPv4 addresses
    std::memcpy(frame.data() + kHeader, &bytes, sizeof bytes);
  });
  near.send(near.clock += kMicrosecond, kLink, request.bytes);
}

std::vector<Frame> repairs_from(const std::vector<Crossing>& crossings, std::uint32_t qpn, std::uint32_t psn) {
  std::vector<Frame> result;
  for (const Crossing& crossing : crossings)
    if (crossing.repair && crossing.repair->qpn == qpn && crossing.repair->block.base_psn >= psn)
      result.push_back(crossing.bytes);
  return result;
}

TEST(LowarPaper, Figure7SevenUnitsOfThreeConnectionsWithTheirOwnDepths) {
  Gateway near(adaptive(1e-3));
  std::vector<std::vector<Frame>> messages, alone;
  for (std::uint32_t qpn = 2; qpn <= 4; qpn++) {
    const std::uint8_t c = static_cast<std::uint8_t>(1u << (4 - qpn));  // 4, 2 and 1 units: 0 to 6
    Sender sender(qpn * 100, qpn);
    const std::vector<Frame> first = sender.write(1);
    const std::vector<Crossing> began = near.encode(first);
    ask(near, began.at(0), {8, c});
    messages.push_back(sender.write(21));
    Gateway other(coding(8, c));
    other.encode(first);
    alone.push_back(repairs_from(other.encode(messages.back()), qpn, qpn * 100 + 1));
    ASSERT_EQ(alone.back().size(), 3u * c) << "two whole blocks, and one of five packets";
  }
  EXPECT_EQ(near.count("encode_requests_refused") + near.count("encode_requests_ignored"), 0u);
  std::vector<Frame> mixed;
  for (std::size_t i = 0; i < messages[0].size(); i++)
    for (const auto& message : messages) mixed.push_back(message[i]);
  const std::vector<Crossing> crossings = near.encode(mixed);
  for (std::uint32_t qpn = 2; qpn <= 4; qpn++)
    EXPECT_EQ(repairs_from(crossings, qpn, qpn * 100 + 1), alone[qpn - 2]) << "QPN " << qpn;
  EXPECT_EQ(near.count("encode_units_max"), 7u);
}

// "LoWAR(64, 8) demonstrated stable goodput ... until burst lengths surpassed 8; when the burst length exceeds 8, LoWAR
// maintains the resistance to bursty losses, as the bursty losses may fall into different coding blocks."
TEST(LowarPaper, Figure11BurstsOfUpToEightWithLowar64And8) {
  Patterns patterns(coding(64, 8));
  const auto send = [](Sender& sender) {
    sender.mtu = 40;
    return sender.write(192, 40);
  };
  constexpr std::size_t kPeriod = 64 + 8, kFirstRepair = 1 + 64;  // behind the announcement
  for (unsigned length = 1; length <= 12; length++) {
    unsigned whole = 0;
    for (std::size_t start = kFirstRepair; start < kFirstRepair + kPeriod; start++)
      whole += patterns.check(patterns.coded(send), burst(start, length),
                              std::to_string(length) + " from " + std::to_string(start));
    if (testing::Test::HasFailure()) return;
    // Longer ones are repaired where they take the last repair packets of one block and up to 8 packets of the next.
    EXPECT_EQ(whole, length <= 8 ? kPeriod : 17 - length) << length;
  }
}

// A packet crosses the link each microsecond, two messages of two blocks. How much later each lost one is handed over
// than it would have come.
std::vector<Nanos> latencies(int r, int c, const std::vector<std::uint32_t>& lost) {
  Gateway near(coding(r, c)), far(coding(r, c));
  Sender sender;
  sender.mtu = 40;
  const std::vector<Crossing> all = near.encode(sender.write(static_cast<unsigned>(2 * r), 40));
  std::map<std::uint32_t, Nanos> was_due;
  far.out.clear();
  Nanos at = 0;
  for (const Crossing& crossing : all) {
    at += kMicrosecond;
    if (crossing.data && std::find(lost.begin(), lost.end(), crossing.psn) != lost.end())
      was_due[crossing.psn] = at;
    else
      far.send(at, kLink, crossing.bytes);
  }
  far.drain();
  EXPECT_EQ(far.out.size(), 2u * static_cast<unsigned>(r));
  EXPECT_EQ(far.count("decode_recovered"), lost.size());
  std::vector<Nanos> result;
  for (const std::uint32_t psn : lost) result.push_back(far.out.at(psn).at - was_due[psn]);
  return result;
}
Nanos sum(const std::vector<Nanos>& values) { return std::accumulate(values.begin(), values.end(), Nanos{0}); }

TEST(LowarPaper, Figure13bTwoLossesInTwoBlocksWaitTwiceAsLongAsOne) {
  for (const int r : {8, 32, 128}) {
    Nanos one = 0, two = 0;
    for (int place = 0; place < r; place += r / 8) {
      const auto psn = static_cast<std::uint32_t>(place);
      one += sum(latencies(r, 1, {psn}));
      two += sum(latencies(r, 1, {psn, psn + static_cast<std::uint32_t>(r)}));
    }
    EXPECT_EQ(two, 2 * one) << r;
  }
}

TEST(LowarPaper, Figure13cSixteenLossesInARowWaitAsLongAsOne) {
  constexpr std::uint32_t kRow = 16, kBlock = 128;
  Nanos one = 0, row = 0;
  unsigned places = 0;
  for (std::uint32_t first = 0; first + kRow <= kBlock; first += 7, places++) {
    const Nanos alone = latencies(kBlock, kRow, {first}).front();
    EXPECT_EQ(alone, (kBlock - first + first % kRow) * kMicrosecond) << "until its share's repair packet";
    one += alone;
    std::vector<std::uint32_t> lost(kRow);
    std::iota(lost.begin(), lost.end(), first);
    const std::vector<Nanos> late = latencies(kBlock, kRow, lost);
    std::uint32_t share = 0;
    for (std::uint32_t i = 0; i < kRow; i++) {
      share = std::max(share, (first + i) % kRow);  // in order: not before those ahead of it
      EXPECT_EQ(late[i], (kBlock + share - (first + i)) * kMicrosecond) << first << " + " << i;
    }
    row += sum(late) / kRow;
  }
  EXPECT_NEAR(static_cast<double>(row), static_cast<double>(one), 0.06 * static_cast<double>(one)) << places;
}

}  // namespace
}  // namespace rocebox::lowar
