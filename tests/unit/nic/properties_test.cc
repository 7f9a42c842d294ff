// SPDX-License-Identifier: BSD-3-Clause
// What must hold of every run: random messages both ways over a wire that loses, reorders and doubles, thousands of
// them.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/nic/properties_kit.h"

namespace rocebox::test::properties {
namespace {

constexpr ibv_wr_opcode kReliable[] = {IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                       IBV_WR_SEND_WITH_IMM,        IBV_WR_SEND_WITH_INV,       IBV_WR_RDMA_READ,
                                       IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,  IBV_WR_LOCAL_INV};
constexpr ibv_wr_opcode kWithImmediate[] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
constexpr ibv_wr_opcode kDatagrams[] = {IBV_WR_SEND_WITH_IMM};

struct NicKind {
  const char* options;
  bool draws_recovery = false;  // of each connection
};
constexpr NicKind kNics[] = {
    {"recovery: go_back_n"},
    {"recovery: rnic_sr"},
    {"recovery: selective"},
    {"recovery: timeout_only"},
    {"recovery: rnic_sr\nwindow: 7\nretransmit_stall: 3us"},
    {"recovery: selective\nwindow: 16\nack_every: 3"},
    {"recovery: go_back_n\nwindow: 64", true},
    {"recovery: selective\nack_every: 2", true},
    {"credits: true"},
    {"scheduler: {policy: greedy}\npcie: {bandwidth: 50Gbps, outstanding_reads: 3}\nlimiter: {qp_rate: 20Gbps, "
     "qp_burst: 16KiB, port_rate: 40Gbps}"}};
constexpr const char* kLinks[] = {
    "delay: 1us\nloss: 2%\nreorder: 2%\nduplicate: 2%", "delay: 3us\njitter: 4us\njitter_reorders: true\nloss: 1%",
    "delay: 1us\nburst_loss: {enter: 3%, leave: 60%, loss_bad: 60%}\nduplicate: 10%", "delay: 1us\ncorrupt: 3%"};

// Every byte is placed once where it belongs, in whole packets and in headers alone, which behave alike to the last
// counter and nanosecond; completions come in order; nothing is left of a queue pair that was destroyed.
TEST(NicProperties, EveryByteIsPlacedOnceWhateverTheWireDoes) {
  std::uint64_t again = 0, not_ready = 0;
  for (const auto& [nic, draws] : kNics)
    for (const char* link : kLinks) {
      SCOPED_TRACE(std::string(nic) + "\n" + link + (draws ? ", recovery drawn" : ""));
      Lossy whole({nic, link, false, draws}), alone({nic, link, true, draws});
      for (unsigned round = 0; round < kRounds / 4; round++) {
        SCOPED_TRACE("round " + std::to_string(round));
        for (Lossy* one : {&whole, &alone}) {
          std::mt19937_64 random(round);
          one->connect(IBV_QPT_RC, random);
          one->draw(kReliable, random);
          one->post();
          one->box.run();
          for (unsigned side = 0; side < 2; side++) {
            one->expect_in_order(side);
            one->expect_placed(side);
          }
          one->end();
        }
        EXPECT_TRUE(whole.seen == alone.seen) << "completions and their times";
        // Which bit is flipped decides by which counter a packet goes.
        EXPECT_TRUE(std::string_view(link).ends_with("corrupt: 3%") || whole.counters() == alone.counters());
        if (testing::Test::HasFailure()) return;
      }
      again += whole.box.count(0, "retransmitted_packets");
      not_ready += whole.box.count(0, "out_of_buffer");
    }
  EXPECT_GT(again, kRounds) << "else nothing was lost";
  EXPECT_GT(not_ready, 0u) << "else no message came before its receive request";
}

// UC: messages that are whole arrive, once and in order while the wire keeps order and makes no copies; of others no
// completion tells. One that comes twice, or late, is a message of its own to UC's responder, whole too.
TEST(NicProperties, UnreliableMessagesArriveWholeOrNotAtAll) {
  constexpr const char* kLossOnly = "delay: 1us\nloss: 3%";
  for (const char* nic : {"recovery: go_back_n", "recovery: rnic_sr"})
    for (const char* link : {kLossOnly, kLinks[0], kLinks[1], kLinks[2], kLinks[3]})
      for (const bool header_only : {false, true}) {
        SCOPED_TRACE(std::string(nic) + "\n" + link + (header_only ? ", headers alone" : ""));
        Lossy one({nic, link, header_only});
        one.receives_in = kAnswers;  // a SEND takes the next receive request, whichever message it is
        const bool keeps_order = link == kLossOnly || link == kLinks[3];
        std::size_t arrived = 0, sent = 0;
        for (unsigned round = 0; round < kRounds / 4; round++) {
          std::mt19937_64 random(round);
          one.connect(IBV_QPT_UC, random);
          one.draw(kWithImmediate, random);
          one.post();
          one.box.run();
          std::int64_t last[2] = {-1, -1};
          for (const Seen& seen : one.seen) {
            EXPECT_EQ(seen.wc.status, IBV_WC_SUCCESS);
            if (!seen.is_receive()) continue;
            const std::uint32_t i = be32toh(seen.wc.imm_data);
            const std::int64_t before = std::exchange(last[seen.side], i);
            EXPECT_TRUE(!keeps_order || i > before) << i << " after " << before << ": in order, none twice";
            one.expect_says(seen.wc, 1 - seen.side, i);
            one.expect_received(seen);
            arrived++;
          }
          sent += 2 * kMessages;
          one.end();
          if (testing::Test::HasFailure()) return;
        }
        EXPECT_GT(arrived, sent / 4);
        EXPECT_LT(arrived, sent);
      }
}

// UD: each datagram that is received is one that was sent, whole, behind its GRH; without copies on the wire none comes
// twice.
TEST(NicProperties, DatagramsArriveWholeOrNotAtAll) {
  for (const char* link : kLinks)
    for (const bool header_only : {false, true}) {
      SCOPED_TRACE(std::string(link) + (header_only ? ", headers alone" : ""));
      Lossy one({"recovery: go_back_n", link, header_only});
      one.receives_in = kAnswers;
      const bool makes_copies = std::string_view(link).find("duplicate") != std::string_view::npos;
      std::size_t arrived = 0, sent = 0;
      for (unsigned round = 0; round < kRounds / 4; round++) {
        std::mt19937_64 random(round);
        one.connect(IBV_QPT_UD, random);
        one.draw(kDatagrams, random);
        nic_model::AddressHandle handles[2];
        for (unsigned side = 0; side < 2; side++) {
          for (Message& message : one.messages[side]) message.cut_to(4096);
          one.find_way(side, handles[side]);
        }
        one.post();
        one.box.run();
        std::vector<unsigned> times(2 * kMessages);
        for (const Seen& seen : one.seen) {
          EXPECT_EQ(seen.wc.status, IBV_WC_SUCCESS);
          if (!seen.is_receive()) continue;
          const std::uint32_t i = be32toh(seen.wc.imm_data);
          EXPECT_TRUE(times[seen.side * kMessages + i]++ == 0 || makes_copies) << i;
          EXPECT_EQ(seen.wc.byte_len, 40 + one.messages[1 - seen.side][i].bytes);
          EXPECT_EQ(seen.wc.src_qp, one.box.sides[1 - seen.side].qp->number());
          EXPECT_TRUE(seen.wc.wc_flags & IBV_WC_GRH);
          one.expect_received(seen, 40);
          arrived++;
        }
        sent += 2 * kMessages;
        one.end();
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(arrived, sent / 2);
      EXPECT_LT(arrived, makes_copies ? sent * 11 / 10 : sent);
    }
}

// In the midst of everything one side goes: the other one gives up, and nothing is left of either.
TEST(NicProperties, NothingIsLeftOfAQueuePairThatIsDestroyed) {
  for (unsigned run = 0; run < 2 * std::size(kNics); run++) {
    const auto& [nic, draws] = kNics[run / 2];
    SCOPED_TRACE(nic);
    Lossy one({nic, kLinks[0], run % 2 != 0, draws});  // whole packets, and headers alone
    for (unsigned round = 0; round < kRounds / 4; round++) {
      std::mt19937_64 random(round);
      one.connect(IBV_QPT_RC, random);
      one.draw(kReliable, random);
      one.post();
      one.box.run(static_cast<Nanos>(random() % 30000));
      const auto first = static_cast<unsigned>(random() % 2);
      one.box.on(first, [&](Host& host) {
        one.box.disconnect(host, first);
        one.remove_windows(host, first);
      });
      one.box.run();
      unsigned complete = 0;
      for (const Seen& seen : one.seen) complete += seen.side != first && !seen.is_receive();
      EXPECT_EQ(complete, kMessages) << "the other side's requests have ended, if in error";
      one.box.on(1 - first, [&](Host& host) {
        one.box.disconnect(host, 1 - first);
        one.remove_windows(host, 1 - first);
      });
      one.box.run();
      one.expect_idle();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rocebox::test::properties
