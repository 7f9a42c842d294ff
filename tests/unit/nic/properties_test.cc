// SPDX-License-Identifier: BSD-3-Clause
// What must hold of every run: random messages both ways over a wire that loses, reorders and doubles, thousands of
// them.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/nic/properties_kit.h"

namespace rocebox::test::properties {
namespace {

constexpr const char* kNics[] = {
    "recovery: go_back_n",
    "recovery: rnic_sr",
    "recovery: selective",
    "recovery: timeout_only",
    "recovery: rnic_sr\nwindow: 7\nretransmit_stall: 3us",
    "recovery: selective\nwindow: 16\nack_every: 3",
    "credits: true",
    ("scheduler: {policy: greedy}\npcie: {bandwidth: 50Gbps, outstanding_reads: 3}\nlimiter: {qp_rate: 20Gbps, "
     "qp_burst: 16KiB, port_rate: 40Gbps}")};
constexpr const char* kLinks[] = {
    "delay: 1us\nloss: 2%\nreorder: 2%\nduplicate: 2%", "delay: 3us\njitter: 4us\njitter_reorders: true\nloss: 1%",
    "delay: 1us\nburst_loss: {enter: 3%, leave: 60%, loss_bad: 60%}\nduplicate: 10%", "delay: 1us\ncorrupt: 3%"};

// Every byte is placed once where it belongs, in whole packets and in headers alone, which behave alike to the last
// counter and nanosecond; completions come in order; nothing is left of a queue pair that was destroyed.
TEST(NicProperties, EveryByteIsPlacedOnceWhateverTheWireDoes) {
  std::uint64_t again = 0;
  for (const char* nic : kNics)
    for (const char* link : kLinks) {
      SCOPED_TRACE(std::string(nic) + "\n" + link);
      Lossy whole({nic, link, false}), alone({nic, link, true});
      for (unsigned round = 0; round < kRounds / 4; round++) {
        SCOPED_TRACE("round " + std::to_string(round));
        for (Lossy* one : {&whole, &alone}) {
          std::mt19937_64 random(round);
          one->connect(IBV_QPT_RC, random);
          one->draw(IBV_QPT_RC, random);
          one->post();
          one->box.run();
          for (unsigned side = 0; side < 2; side++) {
            one->expect_in_order(side);
            one->expect_placed(side);
          }
          one->disconnect();
          one->box.run();
          one->expect_idle();
        }
        EXPECT_TRUE(whole.seen == alone.seen) << "completions and their times";
        // Which bit is flipped decides by which counter a packet goes.
        EXPECT_TRUE(std::string_view(link).ends_with("corrupt: 3%") || whole.counters() == alone.counters());
        if (testing::Test::HasFailure()) return;
      }
      again += whole.box.count(0, "retransmitted_packets");
    }
  EXPECT_GT(again, kRounds) << "else nothing was lost";
}

// UC: messages that are whole arrive in order, once; of others no completion tells.
TEST(NicProperties, UnreliableMessagesArriveWholeOrNotAtAll) {
  for (const char* nic : {"recovery: go_back_n", "recovery: rnic_sr"})
    for (const bool header_only : {false, true}) {
      SCOPED_TRACE(std::string(nic) + (header_only ? ", headers alone" : ""));
      Lossy one({nic, "delay: 1us\nloss: 3%", header_only});
      std::size_t arrived = 0, sent = 0;
      for (unsigned round = 0; round < kRounds; round++) {
        std::mt19937_64 random(round);
        one.connect(IBV_QPT_UC, random);
        one.draw(IBV_QPT_UC, random);
        // All in one area: a SEND takes the next receive request, whichever message it is.
        for (auto& all : one.messages)
          for (Message& message : all) message.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        one.post();
        one.box.run();
        std::int64_t last[2] = {-1, -1};
        const nic_model::Region* regions[2];
        for (unsigned side = 0; side < 2; side++)
          regions[side] = one.box.sides[side].host->host.memory().find(one.box.sides[side].key);
        for (const Seen& seen : one.seen) {
          if (seen.wc.wr_id < 1000) continue;
          const std::uint32_t i = be32toh(seen.wc.imm_data);
          const Message& message = one.messages[1 - seen.side][i];
          EXPECT_GT(static_cast<std::int64_t>(i), std::exchange(last[seen.side], i)) << "in order, none twice";
          EXPECT_EQ(seen.wc.byte_len, message.bytes);
          if (header_only)
            EXPECT_TRUE(regions[seen.side]->placed->covers(kTheirs + i * kSlot, message.bytes));
          else
            EXPECT_TRUE(one.holds(seen.side, kTheirs, i, message.bytes));
          arrived++;
        }
        sent += 2 * kMessages;
        one.disconnect();
        one.box.run();
        one.expect_idle();
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(arrived, sent / 2);
      EXPECT_LT(arrived, sent);
    }
}

// In the midst of everything one side goes: the other one gives up, and nothing is left of either.
TEST(NicProperties, NothingIsLeftOfAQueuePairThatIsDestroyed) {
  for (const char* nic : kNics) {
    SCOPED_TRACE(nic);
    Lossy one({nic, kLinks[0], false});
    for (unsigned round = 0; round < kRounds / 4; round++) {
      std::mt19937_64 random(round);
      one.connect(IBV_QPT_RC, random);
      one.draw(IBV_QPT_RC, random);
      one.post();
      one.box.run(static_cast<Nanos>(random() % 30000));
      const auto first = static_cast<unsigned>(random() % 2);
      one.box.on(first, [&](Host& host) {
        host.destroy_qp(*std::exchange(one.box.sides[first].qp, nullptr));
        EXPECT_TRUE(host.memory().remove(one.box.sides[first].key));
        one.remove_window(host, first);
      });
      one.box.run();
      unsigned complete = 0;
      for (const Seen& seen : one.seen) complete += seen.side != first && seen.wc.wr_id < 1000;
      EXPECT_EQ(complete, kMessages) << "the other side's requests have ended, if in error";
      one.box.on(1 - first, [&](Host& host) {
        host.destroy_qp(*std::exchange(one.box.sides[1 - first].qp, nullptr));
        EXPECT_TRUE(host.memory().remove(one.box.sides[1 - first].key));
        one.remove_window(host, 1 - first);
      });
      one.box.run();
      one.expect_idle();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rocebox::test::properties
