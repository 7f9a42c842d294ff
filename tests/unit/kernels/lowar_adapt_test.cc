// SPDX-License-Identifier: BSD-3-Clause
// Adaptation between two gateways, in virtual seconds.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/kernels/lowar_pair.h"

namespace rocebox::lowar {
namespace {

using namespace kit;
using oracle::bernoulli;
using oracle::Channel;

TEST(LowarAdapt, OffOnACleanLinkOnWithLossAndOffAgain) {
  Pair pair(adaptive(1e-3), adaptive(1e-3));
  Sender sender;
  pair.send_messages(sender, 7000);
  EXPECT_EQ(pair.setting(sender), (Coding{32, 1})) << "not known to be clean yet";
  pair.send_messages(sender, 12'000);
  EXPECT_TRUE(pair.setting(sender).off());
  const std::uint64_t repairs = pair.near->count("encode_repairs");
  pair.send_messages(sender, 5000);
  EXPECT_EQ(pair.near->count("encode_repairs"), repairs) << "no byte of redundancy";
  EXPECT_EQ(pair.near->count("encode_changes"), 1u);

  pair.link.change(bernoulli(0.01));
  pair.send_messages(sender, 4000);
  EXPECT_FALSE(pair.setting(sender).off());
  pair.send_messages(sender, 10'000);
  const std::uint64_t lost = pair.not_delivered;
  pair.send_messages(sender, 40'000);
  EXPECT_LE(pair.not_delivered - lost, 40u) << "the target of a thousandth";
  EXPECT_GT(pair.far->count("decode_recovered"), 300u);

  pair.link.change({});
  pair.send_messages(sender, 60'000);
  EXPECT_TRUE(pair.setting(sender).off());
  EXPECT_LE(pair.near->count("encode_changes"), 8u);
}

TEST(LowarAdapt, MeetsTheTargetWithinAStepOfTheOptimum) {
  struct Case {
    Channel channel;
    double target;
  };
  for (const Case& c : {Case{bernoulli(0.03), 5e-3}, {bernoulli(0.01), 1e-3}, {{0.02, 3}, 5e-3}, {{0.02, 8}, 5e-3}}) {
    SCOPED_TRACE(std::to_string(c.channel.rate) + " " + std::to_string(c.channel.burst));
    Pair pair(adaptive(c.target), adaptive(c.target), c.channel, 4);
    Sender sender;
    pair.send_messages(sender, 120'000, 512);
    const Coding setting = pair.setting(sender);
    EXPECT_LE(oracle::residual(setting, c.channel), 1.1 * c.target);
    EXPECT_GE(oracle::packets_a_repair(setting), oracle::most_packets_a_repair(c.channel, c.target) / 2)
        << setting.r << ", " << int{setting.c};
    const std::uint64_t before = pair.not_delivered, changes = pair.near->count("encode_changes");
    pair.send_messages(sender, 60'000, 512);
    EXPECT_LE(static_cast<double>(pair.not_delivered - before), 1.4 * 60'000 * c.target) << "as it came out";
    EXPECT_LE(changes, 5u);
    EXPECT_LE(pair.near->count("encode_changes"), changes + 1);
  }
}

TEST(LowarAdapt, RequestsMayBeLost) {
  Pair pair(adaptive(1e-3), adaptive(1e-3));
  pair.back_link.change(bernoulli(0.7));
  Sender sender;
  pair.send_messages(sender, 100'000);  // a second
  EXPECT_TRUE(pair.setting(sender).off());
  EXPECT_EQ(pair.near->count("encode_changes"), 1u);
  EXPECT_EQ(pair.far->count("adapt_changes"), 1u);
}

TEST(LowarAdapt, TheReceiverChangesNothingBeforeDwell) {
  Config config = adaptive(1e-3);
  config.dwell = 50 * kMillisecond;
  Pair pair(config, config);
  Sender sender;
  for (unsigned i = 0; i < 12; i++) {  // for 150 ms each: what is due is due long before dwell ends
    pair.link.change(i % 2 ? bernoulli(0.1) : bernoulli(0.003));
    pair.send_messages(sender, 15'000);
  }
  ASSERT_GT(pair.asked_at.size(), 3u);
  for (std::size_t i = 1; i < pair.asked_at.size(); i++)
    EXPECT_GE(pair.asked_at[i] - pair.asked_at[i - 1], config.dwell) << i;
  EXPECT_EQ(pair.near->count("encode_requests_refused"), 0u);
}

TEST(LowarAdapt, WhereNobodyHeedsRequestsEnd) {
  Pair pair(adaptive(1e-3), adaptive(1e-3));
  pair.back_link.change({1, 1e9});
  Sender sender;
  pair.clock = kSecond;
  for (unsigned i = 0; i < 40; i++) {
    pair.send_messages(sender, 1000);
    pair.clock += kSecond;
  }
  EXPECT_GT(pair.requests, 2u);
  EXPECT_LE(pair.requests, kRequestsMax * pair.far->count("adapt_changes"));
  EXPECT_LE(pair.far->count("adapt_changes"), 4u) << "for each doubling of what was seen";
  EXPECT_GE(pair.far->count("adapt_unheeded"), 1u);
  EXPECT_EQ(pair.setting(sender), (Coding{32, 1}));
}

TEST(LowarAdapt, StreamsAreIndependent) {
  Pair pair(adaptive(1e-3), adaptive(1e-3));
  Sender a(0, 0x10), b(5000, 0x20);
  oracle::LossProcess lossy(bernoulli(0.02), 3);
  for (unsigned i = 0; i < 1500; i++) {
    pair.link.change({});
    pair.send(a.write(16, 256));
    for (const Frame& frame : b.write(16, 256)) {
      pair.link.change({lossy.next_is_lost() ? 1.0 : 0.0, 1});
      pair.send(frame);
    }
  }
  EXPECT_TRUE(pair.setting(a).off());
  EXPECT_FALSE(pair.setting(b).off());
  EXPECT_LE(pair.setting(b).r / pair.setting(b).c, 8);
}

TEST(LowarAdapt, AFixedSenderIsNotAsked) {
  Pair pair(coding(32, 1), adaptive(1e-3));
  Sender sender;
  pair.send_messages(sender, 20'000);
  EXPECT_EQ(pair.requests, 0u);
  EXPECT_EQ(pair.setting(sender), (Coding{32, 1}));
  EXPECT_EQ(pair.near->count("encode_announcements"), 1u) << "where the stream began, and no status";
}

TEST(LowarAdapt, AFixedReceiverDoesNotAsk) {
  Pair pair(adaptive(1e-3), coding(32, 1), bernoulli(0.02));
  Sender sender;
  pair.send_messages(sender, 20'000);
  EXPECT_EQ(pair.requests, 0u);
  EXPECT_EQ(pair.setting(sender), (Coding{32, 1}));
}

TEST(LowarAdapt, WithoutAGatewayAtTheFarEndNothingIsAsked) {
  Gateway far(adaptive(1e-3));
  Sender sender;
  std::mt19937 random(2);
  unsigned sent = 0;
  for (unsigned i = 0; i < 1000; i++)
    for (const Frame& frame : sender.write(16, 256))
      if (random() % 50) sent++, far.send(far.clock += 10'000, kLink, frame);
  far.drain();
  EXPECT_EQ(far.out.size(), sent);
  for (const test::Out& o : far.out) ASSERT_EQ(o.port, kHost);
  EXPECT_EQ(far.count("adapt_requests"), 0u);
}

TEST(LowarAdapt, ARestartedDecoderFindsItsWay) {
  const Config config = adaptive(1e-3);
  Pair pair(config, config);
  Sender sender;
  pair.send_messages(sender, 20'000);
  ASSERT_TRUE(pair.setting(sender).off());
  pair.far = std::make_unique<Gateway>(config);
  pair.send_messages(sender, 2000);
  pair.link.change(bernoulli(0.02));
  pair.send_messages(sender, 10'000);
  EXPECT_FALSE(pair.setting(sender).off()) << "the serial number goes on from what the sender says";
  pair.far = std::make_unique<Gateway>(config);
  pair.send_messages(sender, 10'000);
  const std::uint64_t lost = pair.not_delivered;
  pair.send_messages(sender, 20'000);
  EXPECT_LE(pair.not_delivered - lost, 40u);
}

TEST(LowarAdapt, ARestartedEncoderIsAskedAgain) {
  const Config config = adaptive(1e-3);
  Pair pair(config, config);
  Sender sender;
  pair.send_messages(sender, 20'000);
  ASSERT_TRUE(pair.setting(sender).off());
  pair.near = std::make_unique<Gateway>(config);
  pair.send(sender.write(16));
  EXPECT_EQ(pair.setting(sender), (Coding{32, 1})) << "as it is configured";
  pair.send_messages(sender, 40'000);
  EXPECT_TRUE(pair.setting(sender).off());
}

TEST(LowarAdapt, ReadResponsesAndIpv6AreAskedForToo) {
  for (const std::uint8_t ip : {std::uint8_t{4}, std::uint8_t{6}}) {
    Pair pair(adaptive(1e-3), adaptive(1e-3));
    Sender sender;
    sender.ip_version = ip;
    for (unsigned i = 0; i < 1500; i++) pair.send(sender.read_response(16, 256));
    EXPECT_TRUE(pair.setting(sender).off()) << int{ip};
    EXPECT_EQ(pair.near->count("drop_lowar_icrc") + pair.near->count("drop_lowar_malformed"), 0u);
  }
}

// What a forger, or an old packet, may bring about at the sender.
class LowarForgedRequest : public testing::Test {
 protected:
  LowarForgedRequest() : near(adaptive(1e-3)) {
    near.out.clear();
    for (const Frame& frame : sender.write(16, 256)) near.send(near.clock += 1000, kHost, frame);
    const auto header = negotiation_of(near.out.at(0));
    EXPECT_TRUE(header && header->kind == NegotiationKind::kAnnounce);
    token = header->token;
    EXPECT_NE(token, 0u);
    back = near.out.at(0).bytes;  // its addresses are turned round
    for (unsigned i = 0; i < 4; i++) std::swap(back[26 + i], back[30 + i]);
  }
  void request(Coding asked, std::uint16_t serial, std::uint32_t with_token, bool responses = false) {
    NegotiationHeader header{sender.qpn, NegotiationKind::kRequest, asked, 0, responses};
    header.serial = serial, header.token = with_token;
    const HeaderBytes bytes = encode(header);
    const Crossing made =
        forged({back, false, {}, 0}, [&](Frame& frame) { std::memcpy(frame.data() + kHeader, &bytes, sizeof bytes); });
    near.send(near.clock += 1000, kLink, made.bytes);
  }
  Coding next_message() {
    const std::vector<Crossing> crossings = near.encode(sender.write(16, 256));
    for (const Crossing& crossing : crossings)
      if (crossing.repair) return crossing.repair->block.coding;
    return {};
  }
  Gateway near;
  Sender sender{100};
  Frame back;
  std::uint32_t token = 0;
};

TEST_F(LowarForgedRequest, TheRightOneIsHeededAtTheNextMessage) {
  request({16, 2}, 1, token);
  EXPECT_EQ(next_message(), (Coding{16, 2}));
  EXPECT_EQ(near.count("encode_changes"), 1u);
  near.clock += kSecond;
  request({}, 2, token);
  EXPECT_EQ(next_message(), Coding{});
  EXPECT_EQ(near.count("encode_uncoded"), 16u);
}

TEST_F(LowarForgedRequest, OneThatComesInAMessageWaitsForTheNext) {
  const std::vector<Frame> message = sender.write(80, 256);
  (void)near.encode({message.begin(), message.begin() + 20});
  request({16, 2}, 1, token);
  unsigned repairs = 0;
  for (const Crossing& crossing : near.encode({message.begin() + 20, message.end()})) {
    if (!crossing.repair) continue;
    EXPECT_EQ(crossing.repair->block.coding, (Coding{32, 1}));
    repairs++;
  }
  EXPECT_EQ(repairs, 3u);
  EXPECT_EQ(next_message(), (Coding{16, 2}));
}

TEST_F(LowarForgedRequest, ThoseOfOthersAreIgnored) {
  request({16, 2}, 1, token + 2);
  request({16, 2}, 1, 0);
  request({16, 2}, 1, token, true);  // a stream that there is not
  EXPECT_EQ(near.count("encode_requests_ignored"), 3u);
  EXPECT_EQ(next_message(), (Coding{32, 1}));
}

TEST_F(LowarForgedRequest, OldOnesDoNotWin) {
  request({16, 2}, 5, token);
  EXPECT_EQ(next_message(), (Coding{16, 2}));
  near.clock += kSecond;
  request({4, 2}, 5, token);
  request({4, 2}, 4, token);
  request({4, 2}, 0x8006, token);
  EXPECT_EQ(next_message(), (Coding{16, 2}));
  EXPECT_EQ(near.count("encode_requests_old"), 3u);
}

TEST_F(LowarForgedRequest, WhatIsNotAllowedOrTooSoonIsRefused) {
  request({4, 4}, 1, token);  // all of it again: more than half
  EXPECT_EQ(next_message(), (Coding{32, 1}));
  request({16, 2}, 1, token);
  for (std::uint16_t serial = 2; serial < 100; serial++) request({4, 2}, serial, token);
  EXPECT_EQ(next_message(), (Coding{16, 2}));
  EXPECT_EQ(near.count("encode_requests_refused"), 99u);
}

TEST_F(LowarForgedRequest, AFixedSenderIgnoresAll) {
  Gateway fixed(coding(32, 1));
  (void)fixed.encode(sender.write(16, 256));
  const NegotiationHeader header{sender.qpn, NegotiationKind::kRequest, {4, 1}, 0, false};
  const HeaderBytes bytes = encode(header);
  fixed.out.clear();
  fixed.send(fixed.clock += 1000, kLink, forged({back, false, {}, 0}, [&](Frame& frame) {
                                           std::memcpy(frame.data() + kHeader, &bytes, sizeof bytes);
                                         }).bytes);
  EXPECT_TRUE(fixed.out.empty());
  EXPECT_EQ(fixed.count("encode_requests_ignored"), 1u);
}

}  // namespace
}  // namespace rocebox::lowar
