// SPDX-License-Identifier: BSD-3-Clause
// Selective Repeat in virtual seconds: what it does by hand-made losses, and how long it takes against the model.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/sdr/model/selective_repeat.h"
#include "kernels/sdr/reliability/selective_repeat.h"

namespace rocebox::sdr_repeat_test {
namespace {

using sdr::RepeatOptions, sdr::RepeatReceiver, sdr::RepeatSender, sdr::SelectiveAck, sdr::Time;

constexpr Time kRtt = 25'000'000, kInjection = 50'000;

struct Outcome {
  Time completion = 0;
  std::uint64_t sent = 0;
  std::vector<std::uint8_t> bitmap;
};

// A line that takes kInjection a chunk and half an RTT each way; `lost(chunk, transmission)` says what is lost of it,
// `ack_lost(number)` of ACKs.
Outcome run(
    std::uint32_t chunks, const RepeatOptions& options, const std::function<bool(std::uint32_t, unsigned)>& lost,
    const std::function<bool(unsigned)>& ack_lost = [](unsigned) { return false; }) {
  RepeatSender sender(options, chunks);
  RepeatReceiver receiver(options);
  sender.start(chunks);
  receiver.start(chunks);
  Outcome result;
  result.bitmap.assign(chunks, 0);
  std::multimap<Time, std::uint32_t> data;
  std::multimap<Time, SelectiveAck> acks;
  std::map<std::uint32_t, unsigned> times;
  Time now = 0, free = 0;
  unsigned acks_sent = 0;
  while (!sender.done()) {
    Time next = std::max(free, sender.due());
    if (!data.empty()) next = std::min(next, data.begin()->first);
    if (!acks.empty()) next = std::min(next, acks.begin()->first);
    now = std::max(now, next);
    if (now > 1000 * kRtt) break;
    for (; !acks.empty() && acks.begin()->first <= now; acks.erase(acks.begin()))
      sender.on_ack(acks.begin()->second, now);
    bool again = false;
    for (; !data.empty() && data.begin()->first <= now; data.erase(data.begin())) {
      again = again || result.bitmap[data.begin()->second];
      result.bitmap[data.begin()->second] = 1;
    }
    SelectiveAck ack;
    bool tell = receiver.poll(result.bitmap, ack);
    if (!tell && again) receiver.repeat(result.bitmap, ack), tell = true;
    if (tell && !ack_lost(acks_sent++)) acks.emplace(now + kRtt / 2, ack);
    if (free > now) continue;
    const std::uint32_t chunk = sender.next(now);
    if (chunk == RepeatSender::kNone) continue;
    result.sent++;
    free = now + kInjection;
    if (!lost(chunk, times[chunk]++)) data.emplace(free + kRtt / 2, chunk);
  }
  result.completion = now;
  return result;
}

TEST(SdrRepeat, WithoutLossNothingIsSentTwiceAndItTakesInjectionAndAnRtt) {
  const Outcome one = run(100, {kRtt, 2}, [](std::uint32_t, unsigned) { return false; });
  EXPECT_EQ(one.sent, 100u);
  EXPECT_EQ(one.completion, 100 * kInjection + kRtt);
}

// Figure 8, left: four packets, one of them lost.
TEST(SdrRepeat, WhatIsLostIsSentAgainWhenItsRtoHasPassed) {
  const Outcome one = run(4, {kRtt, 2}, [](std::uint32_t chunk, unsigned time) { return chunk == 1 && time == 0; });
  EXPECT_EQ(one.sent, 5u);
  EXPECT_EQ(one.completion, kInjection + 3 * kRtt + kInjection + kRtt);
  const Outcome twice = run(4, {kRtt, 2}, [](std::uint32_t chunk, unsigned time) { return chunk == 1 && time < 2; });
  EXPECT_EQ(twice.sent, 6u);
  EXPECT_EQ(twice.completion, one.completion + 3 * kRtt);
}

TEST(SdrRepeat, ANackHasItSentAgainAnRttAfterItWasSent) {
  const auto lost = [](std::uint32_t chunk, unsigned time) { return chunk == 1 && time == 0; };
  const Outcome one = run(4, {kRtt, 2, true}, lost);
  EXPECT_EQ(one.sent, 5u);
  // Chunk 2 shows the gap: it comes a chunk later than chunk 1 would have.
  EXPECT_LE(one.completion, 2 * kRtt + 5 * kInjection);
  EXPECT_LT(one.completion, run(4, {kRtt, 2}, lost).completion);
}

TEST(SdrRepeat, LostAcksAreMadeUpForByLaterOnes) {
  const auto none = [](std::uint32_t, unsigned) { return false; };
  EXPECT_EQ(run(50, {kRtt, 2}, none, [](unsigned ack) { return ack < 49; }).sent, 50u);  // the last one covers all
  const Outcome last = run(50, {kRtt, 2}, none, [](unsigned ack) { return ack == 49; });
  EXPECT_EQ(last.sent, 51u);
  EXPECT_EQ(last.completion, 49 * kInjection + 3 * kRtt + kInjection + kRtt);
}

TEST(SdrRepeat, AForgedAckAcknowledgesNothingThatWasNotSent) {
  RepeatSender sender({kRtt, 2, true}, 8);
  sender.start(8);
  EXPECT_EQ(sender.next(0), 0u);
  SelectiveAck forged;
  forged.cumulative = 0xFFFFFFF0;
  forged.bits = forged.missing_below = 0xFFFFFFFF;
  std::fill(std::begin(forged.selective), std::end(forged.selective), ~0ull);
  sender.on_ack(forged, 1);
  forged.cumulative = 0;
  sender.on_ack(forged, 1);
  EXPECT_FALSE(sender.done());
  for (std::uint32_t chunk = 1; chunk < 8; chunk++) EXPECT_EQ(sender.next(2), chunk);
}

// Where its assumptions hold, within 10%: the model's chunks are lost on their own, and ACKs are not.
TEST(SdrRepeat, TakesAsLongAsTheModelSays) {
  std::mt19937_64 random(4);
  for (const double drop : {0.001, 0.01, 0.1})
    for (const std::uint32_t chunks : {20u, 300u}) {
      double sum = 0;
      constexpr int kRuns = 150;
      std::bernoulli_distribution is_lost(drop);
      for (int i = 0; i < kRuns; i++) {
        const Outcome one = run(chunks, {kRtt, 2}, [&](std::uint32_t, unsigned) { return is_lost(random); });
        ASSERT_EQ(std::count(one.bitmap.begin(), one.bitmap.end(), 1), chunks);
        sum += static_cast<double>(one.completion) / 1e9;
      }
      const sdr::Channel channel{4096 * 8 / (kInjection / 1e9), kRtt / 1e9, 4096, drop};
      const double mean = sdr::SelectiveRepeat(channel, 3 * channel.rtt).mean(chunks);
      EXPECT_NEAR(sum / kRuns / mean, 1, 0.1) << drop << ' ' << chunks;
    }
}

// Losses, lost ACKs and messages longer than an ACK's bitmap: all of it comes.
TEST(SdrRepeat, EveryMessageIsDelivered) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 12; i++) {
    std::bernoulli_distribution is_lost(0.05 * (i % 4)), is_ack_lost(0.1 * (i % 3));
    const std::uint32_t chunks = i == 11 ? 6000 : 1 + static_cast<std::uint32_t>(random() % 600);
    const Outcome one = run(
        chunks, {kRtt, 0.5, i % 2 == 1}, [&](std::uint32_t, unsigned) { return is_lost(random); },
        [&](unsigned) { return is_ack_lost(random); });
    EXPECT_EQ(std::count(one.bitmap.begin(), one.bitmap.end(), 1), chunks);
    EXPECT_LT(one.completion, 1000 * kRtt);
  }
}

}  // namespace
}  // namespace rocebox::sdr_repeat_test
