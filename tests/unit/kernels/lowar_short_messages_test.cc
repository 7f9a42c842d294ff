// SPDX-License-Identifier: BSD-3-Clause
// Adaptation between two gateways where messages are short: what they cost, counted on the link, and what stays lost.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_follower.h"
#include "tests/unit/kernels/lowar_pair.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using oracle::bernoulli;
using oracle::Channel;
using oracle::Lengths;

// Draws of its own for each pair of gateways: what a test sees must not depend on those that ran before it.
struct MixPair : Pair {
  using Pair::Pair;
  std::mt19937 random{9};
};

void send_mix(MixPair& pair, Sender& sender, const Lengths& lengths, unsigned packets) {
  for (unsigned sum = 0; sum < packets;) {
    const unsigned length = lengths[pair.random() % lengths.size()];
    pair.send(sender.write(length, 256));
    sum += length;
  }
}

// From here on.
struct Count {
  explicit Count(Pair& pair)
      : pair_(pair),
        repairs_(pair.near->count("encode_repairs")),
        data_(data()),
        lost_(pair.not_delivered),
        changes_(pair.near->count("encode_changes")) {}
  double overhead() const {
    return static_cast<double>(pair_.near->count("encode_repairs") - repairs_) / (data() - data_);
  }
  double left() const { return static_cast<double>(pair_.not_delivered - lost_) / (data() - data_); }
  std::uint64_t changes() const { return pair_.near->count("encode_changes") - changes_; }

 private:
  double data() const {
    return static_cast<double>(pair_.near->count("encode_packets") + pair_.near->count("encode_uncoded"));
  }
  Pair& pair_;
  std::uint64_t repairs_;
  double data_;
  std::uint64_t lost_, changes_;
};

struct ShortCase {
  Lengths lengths;
  Channel channel;
  double target, most;
};
std::string name(const ShortCase& c) {
  return oracle::name(c.lengths) + ", " + oracle::name(c.channel) + ", within " + std::to_string(c.most);
}

TEST(LowarShortMessages, NeverCostMoreThanAllowed) {
  std::vector<ShortCase> cases;
  for (const Lengths& lengths : {Lengths{1}, {2}, {3}, {10}, {1, 2, 3, 10}, {1, 1, 1, 1, 40}})
    for (const Channel channel : {bernoulli(0.01), bernoulli(0.05), Channel{0.05, 4}})
      for (const double most : {0.25, 0.5}) cases.push_back({lengths, channel, 5e-3, most});
  for (const ShortCase& c : cases) {
    SCOPED_TRACE(name(c));
    MixPair pair(adaptive(c.target, c.most), adaptive(c.target, c.most), c.channel, 4);
    Sender sender;
    send_mix(pair, sender, c.lengths, 5000);
    const Count count(pair);
    send_mix(pair, sender, c.lengths, 10'000);
    EXPECT_LE(count.overhead(), c.most);
    EXPECT_LE(count.changes(), 3u);
  }
}

TEST(LowarShortMessages, MeetTheTargetWhereThatIsAllowed) {
  for (const ShortCase& c : {ShortCase{{1}, bernoulli(0.01), 1e-3, 1},
                             {{1}, bernoulli(0.05), 5e-3, 1},
                             {{2}, bernoulli(0.01), 1e-3, 0.5},
                             {{2}, bernoulli(0.05), 8e-3, 0.5},
                             {{3}, bernoulli(0.01), 1e-3, 0.34},
                             {{10}, bernoulli(0.01), 2e-3, 0.25},
                             {{10}, bernoulli(0.05), 8e-3, 0.4},
                             {{10}, {0.02, 3}, 8e-3, 0.4},
                             {{1, 2, 3, 10}, bernoulli(0.01), 2e-3, 0.5},
                             {{1, 1, 1, 1, 40}, bernoulli(0.01), 2e-3, 0.5}}) {
    SCOPED_TRACE(name(c));
    MixPair pair(adaptive(c.target, c.most), adaptive(c.target, c.most), c.channel, 4);
    Sender sender;
    send_mix(pair, sender, c.lengths, 80'000);
    const Count count(pair);
    send_mix(pair, sender, c.lengths, 40'000);
    EXPECT_LE(count.left(), 1.4 * c.target) << "as it came out";
    EXPECT_LE(count.overhead(), c.most);
    EXPECT_LE(oracle::residual(pair.setting(sender), c.channel, c.lengths), 1.1 * c.target);
    const double least = oracle::least_overhead(c.channel, c.lengths, 0.5 * c.target, c.most);
    EXPECT_LE(count.overhead(), std::min(least, 1.0) * 1.05);
    EXPECT_LE(count.changes(), 1u);
  }
}

// One-packet messages cost 100% however they are coded.
TEST(LowarShortMessages, OfOnePacketGoUncodedWhereLessThanAllOfItAgainIsAllowed) {
  MixPair pair(adaptive(1e-3, 0.99), adaptive(1e-3, 0.99), bernoulli(0.01), 4);
  Sender sender;
  send_mix(pair, sender, {1}, 10'000);
  EXPECT_TRUE(pair.setting(sender).off());
  send_mix(pair, sender, {300}, 60'000);
  EXPECT_FALSE(pair.setting(sender).off()) << "and long ones are coded again";
  const Count count(pair);
  send_mix(pair, sender, {300}, 60'000);
  EXPECT_LE(count.left(), 1.4e-3);
}

// What costs too much is left soon, also where nothing is lost that would be cause to look.
TEST(LowarShortMessages, AfterLongOnesAreNoticed) {
  MixPair pair(adaptive(2e-3, 0.25), adaptive(2e-3, 0.25), bernoulli(0.01), 4);
  Sender sender;
  send_mix(pair, sender, {512}, 150'000);
  ASSERT_FALSE(pair.setting(sender).off());
  send_mix(pair, sender, {1}, 10'000);
  EXPECT_TRUE(pair.setting(sender).off());
  const Count count(pair);
  send_mix(pair, sender, {1}, 20'000);
  EXPECT_EQ(count.overhead(), 0);
  EXPECT_EQ(count.changes(), 0u);
}

// A host that goes back after each loss sends most of a long message again: that is no message of its own.
TEST(LowarShortMessages, RetransmissionsAreNotTakenForThem) {
  MixPair pair(adaptive(1e-3, 0.25), adaptive(1e-3, 0.25));
  Sender sender;
  std::mt19937 random(3);
  for (unsigned i = 0; i < 400; i++) {
    const std::vector<Frame> message = sender.write(200, 256);
    const std::size_t at = 20 + random() % 150;
    for (std::size_t k = 0; k < at + 10; k++) pair.send(message[k]);
    pair.send(std::vector<Frame>(message.begin() + static_cast<std::ptrdiff_t>(at), message.end()));
  }
  pair.link.change(bernoulli(0.01));
  send_mix(pair, sender, {200}, 20'000);
  EXPECT_FALSE(pair.setting(sender).off());
}

}  // namespace
}  // namespace rocebox::lowar
