// SPDX-License-Identifier: BSD-3-Clause
// What a gateway keeps, in bytes beside the paper's table I; and how long a recovery takes, as its figure 13.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

// The table of the README, to the byte.
TEST(LowarState, IsWhatTheReadmeSays) {
  Config config;  // the defaults
  const StateBytes bytes = state_bytes(config);
  EXPECT_EQ(bytes.encoder_streams, 4096u * 216);
  EXPECT_EQ(bytes.decoder_streams, 4096u * 856);
  EXPECT_EQ(bytes.units, 1024u * 4238);
  EXPECT_EQ(bytes.reordering, 65'536u);
  config.roce_mtu = 2;  // 1024
  EXPECT_EQ(state_bytes(config).units, 1024u * 1166);
}

// Table I, "extra memory breakdown", in bytes: of a state table for 512 QPs, 1024 coding units each way, a reordering
// buffer for 2048 packets, at a RoCE MTU of 1024.
constexpr double kPaperStateTable = 0.3e6, kPaperUnits = 1.1e6, kPaperReordering = 2.4e6;

TEST(LowarState, IsOfThePapersOrder) {
  Config config;  // the prototype's setting
  config.streams = 512, config.units = 1024, config.reordering = 2048, config.roce_mtu = 2;
  const StateBytes bytes = state_bytes(config);
  EXPECT_NEAR(static_cast<double>(bytes.units), kPaperUnits, 0.1 * kPaperUnits) << "encoding, and again decoding";
  EXPECT_LT(static_cast<double>(bytes.encoder_streams + bytes.decoder_streams), 2 * kPaperStateTable)
      << "the paper's measures neither losses nor messages";
  // There the buffer has the packets in it, here slots for packets that lie in the pool.
  Sender sender;
  sender.mtu = 1024;
  const std::size_t packet = sender.write(2)[0].size();
  EXPECT_NEAR(static_cast<double>(bytes.reordering + 2048 * packet), kPaperReordering, 0.1 * kPaperReordering);
}

// Packets come each microsecond. One of a block is lost: those behind it wait for the block's repair packet.
TEST(LowarState, RecoveryTakesThePacketsOfTheBlockThatFollow) {
  for (const int r : {8, 16, 32, 64, 128}) {
    Gateway near(coding(r, 1)), far(coding(r, 1));
    Sender sender;
    const std::vector<Crossing> all = near.encode(sender.write(static_cast<unsigned>(2 * r), 256));
    Nanos sum = 0;
    for (int lost = 0; lost < r; lost++) {
      Gateway fresh(coding(r, 1));
      fresh.out.clear();
      Nanos at = 0, lost_at = 0;
      for (std::size_t i = 0; i < all.size(); i++) {
        at += kMicrosecond;
        if (all[i].data && all[i].psn == static_cast<std::uint32_t>(lost))
          lost_at = at;
        else
          fresh.send(at, kLink, all[i].bytes);
      }
      fresh.drain();
      ASSERT_EQ(fresh.out.size(), 2u * static_cast<unsigned>(r));
      ASSERT_EQ(fresh.count("decode_recovered"), 1u);
      const Nanos latency = fresh.out[static_cast<std::size_t>(lost)].at - lost_at;
      ASSERT_EQ(latency, (r - lost) * kMicrosecond) << "the rest of the block, and the repair packet";
      sum += latency;
    }
    EXPECT_EQ(sum / r, (r + 1) * kMicrosecond / 2) << "in proportion to r, as in figure 13";
  }
}

}  // namespace
}  // namespace rocebox::lowar
