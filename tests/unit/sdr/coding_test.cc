// SPDX-License-Identifier: BSD-3-Clause
// Erasure coding as a reliability layer, in virtual seconds and with every byte: when it recovers, when it falls back,
// and how long it takes against the model.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "kernels/sdr/model/erasure_coding.h"
#include "kernels/sdr/reliability/erasure_coding.h"

namespace rocebox::sdr_coding_test {
namespace {

using sdr::CodeKind, sdr::CodingOptions, sdr::CodingReceiver, sdr::CodingSender, sdr::ErasureCodec, sdr::RepeatReceiver,
    sdr::SelectiveAck, sdr::Time;
using Kind = CodingSender::Chunk::Kind;

constexpr Time kRtt = 25'000'000, kInjection = 50'000;
constexpr std::size_t kBytes = 16;  // of a chunk

CodingOptions options_of(CodeKind kind, unsigned data, unsigned parity) {
  CodingOptions options;
  options.shape = {kind, data, parity};
  options.injection = kInjection;
  options.rtt = kRtt;
  return options;
}

struct Outcome {
  Time completion = 0;
  std::uint64_t sent = 0;
  unsigned nacks = 0;
  bool intact = false, done = false, gave_up = false;
};

// What travels back.
struct Told {
  bool ack = false;
  std::vector<std::uint32_t> failed;
  std::optional<SelectiveAck> repeat;
};

// Both ends with the line between them: kInjection a chunk, half an RTT each way.
struct Bed {
  Bed(const CodingOptions& o, std::uint32_t message)
      : options(o), chunks(message), sender(o, message), receiver(o, message) {
    sender.start(chunks, 0);
    receiver.start(chunks, 0);
    repeat.start(chunks);
    const std::uint32_t all = receiver.submessages().parity_chunks();
    original.resize(chunks * kBytes);
    for (std::size_t i = 0; i < original.size(); i++) original[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
    parity_sent.resize(all * kBytes);
    data_here.assign(original.size(), 0);
    parity_here.assign(parity_sent.size(), 0);
    data_bits.assign(chunks, 0);
    parity_bits.assign(all, 0);
    each([&](ErasureCodec& codec, std::uint8_t** at,
             std::uint32_t) { codec.encode(at, at + codec.shape().data, kBytes); },
         original, parity_sent);
  }
  // Calls with a codec and the chunks of each submessage.
  template <class Call>
  void each(Call&& call, std::vector<std::uint8_t>& data, std::vector<std::uint8_t>& parity) {
    const sdr::Submessages& parts = receiver.submessages();
    for (std::uint32_t i = 0; i < parts.count(); i++) {
      ErasureCodec codec({options.shape.kind, parts.data(i), parts.parity(i)});
      std::vector<std::uint8_t*> at;
      for (std::uint32_t j = 0; j < parts.data(i); j++) at.push_back(&data[(parts.first(i) + j) * kBytes]);
      for (std::uint32_t j = 0; j < parts.parity(i); j++) at.push_back(&parity[(parts.first_parity(i) + j) * kBytes]);
      call(codec, at.data(), i);
    }
  }
  void place(const CodingSender::Chunk& chunk) {
    const bool data = chunk.kind == Kind::kData;
    const auto& from = data ? original : parity_sent;
    std::copy_n(&from[chunk.number * kBytes], kBytes, &(data ? data_here : parity_here)[chunk.number * kBytes]);
    (data ? data_bits : parity_bits)[chunk.number] = 1;
  }
  void recover() {
    each(
        [&](ErasureCodec& codec, std::uint8_t** at, std::uint32_t number) {
          EXPECT_TRUE(codec.recover(at, receiver.present(number, data_bits, parity_bits), kBytes));
        },
        data_here, parity_here);
  }

  CodingOptions options;
  std::uint32_t chunks;
  CodingSender sender;
  CodingReceiver receiver;
  RepeatReceiver repeat{{kRtt, 2}};
  std::vector<std::uint8_t> original, parity_sent, data_here, parity_here, data_bits, parity_bits;
};

using Lost = std::function<bool(const CodingSender::Chunk&, unsigned time)>;

Outcome run(const CodingOptions& options, std::uint32_t chunks, const Lost& lost, unsigned nacks_lost = 0) {
  Bed bed(options, chunks);
  Outcome result;
  std::multimap<Time, CodingSender::Chunk> forward;
  std::multimap<Time, Told> back;
  std::map<std::pair<Kind, std::uint32_t>, unsigned> times;
  Time now = 0, free = 0;
  while (!bed.sender.done() && !result.gave_up) {
    Time next = std::min(std::max(free, bed.sender.due()), bed.receiver.due());
    if (!forward.empty()) next = std::min(next, forward.begin()->first);
    if (!back.empty()) next = std::min(next, back.begin()->first);
    now = std::max(now, next);
    if (now >= 10'000 * kRtt) break;
    for (; !back.empty() && back.begin()->first <= now; back.erase(back.begin())) {
      const Told& told = back.begin()->second;
      if (told.ack) bed.sender.on_ack();
      if (!told.failed.empty()) bed.sender.on_nack(told.failed);
      if (told.repeat) bed.sender.on_repeat_ack(*told.repeat, now);
    }
    for (; !forward.empty() && forward.begin()->first <= now; forward.erase(forward.begin()))
      bed.place(forward.begin()->second);
    Told told;
    switch (bed.receiver.poll(bed.data_bits, bed.parity_bits, now)) {
      case CodingReceiver::Action::kAck:
        bed.recover();
        result.intact = bed.data_here == bed.original;
        told.ack = true;
        break;
      case CodingReceiver::Action::kNack:
        if (result.nacks++ >= nacks_lost)
          told.failed.assign(bed.receiver.failed().begin(), bed.receiver.failed().end());
        break;
      case CodingReceiver::Action::kFailed:
        result.gave_up = true;
        break;
      case CodingReceiver::Action::kNone:
        break;
    }
    SelectiveAck ack;
    if (bed.sender.fallen_back() && bed.repeat.poll(bed.data_bits, ack)) told.repeat = ack;
    if (told.ack || told.repeat || !told.failed.empty()) back.emplace(now + kRtt / 2, told);
    if (free > now) continue;
    const CodingSender::Chunk chunk = bed.sender.next(now);
    if (chunk.kind == Kind::kNone) continue;
    result.sent++;
    free = now + kInjection;
    if (!lost(chunk, times[{chunk.kind, chunk.number}]++)) forward.emplace(free + kRtt / 2, chunk);
  }
  result.done = bed.sender.done();
  result.completion = now;
  return result;
}

bool nothing(const CodingSender::Chunk&, unsigned) { return false; }

// Figure 8, right: EC(2, 1), eight packets, one lost of each submessage.
TEST(SdrCoding, WhatParityCoversCostsNoRoundTrip) {
  const CodingOptions options = options_of(CodeKind::kMds, 2, 1);
  const Outcome clean = run(options, 8, nothing);
  const Outcome one =
      run(options, 8, [](const auto& c, unsigned) { return c.kind == Kind::kData && c.number % 2 == 0; });
  for (const Outcome& each : {clean, one}) {
    EXPECT_TRUE(each.done && each.intact);
    EXPECT_EQ(each.nacks, 0u);
    EXPECT_LE(each.completion, 12 * kInjection + kRtt);
  }
}

TEST(SdrCoding, WhatItDoesNotCoverFallsBackWhenTheFtoHasPassed) {
  const CodingOptions options = options_of(CodeKind::kMds, 4, 2);
  const auto lost = [](const auto& c, unsigned time) {
    return time == 0 && ((c.kind == Kind::kData && c.number >= 4 && c.number < 7));
  };
  const Outcome one = run(options, 16, lost);
  EXPECT_TRUE(one.done && one.intact);
  EXPECT_EQ(one.nacks, 1u);
  EXPECT_LE(one.sent, 24u + 4u);
  // First chunk, FTO, NACK, four chunks, ACK.
  const Time first = kInjection + kRtt / 2, fto = sdr::fallback_timeout(options, 16);
  EXPECT_EQ(fto, 24 * kInjection + kRtt);
  EXPECT_LE(one.completion, first + fto + kRtt / 2 + 4 * kInjection + kRtt);
  EXPECT_GE(one.completion, first + fto + kRtt);
  const Outcome deaf = run(options, 16, lost, 1);  // the NACK is lost, and sent again an RTO later
  EXPECT_TRUE(deaf.done && deaf.intact);
  EXPECT_EQ(deaf.nacks, 2u);
  EXPECT_EQ(deaf.completion, one.completion + 3 * kRtt);
}

TEST(SdrCoding, TheOtherFtoIsAnOption) {
  CodingOptions options = options_of(CodeKind::kMds, 32, 8);
  EXPECT_EQ(sdr::fallback_timeout(options, 33), (33 + 9) * kInjection + kRtt);
  options.fallback = sdr::FallbackTimeout::kDataOnly;
  options.alpha = 0.5;
  EXPECT_EQ(sdr::fallback_timeout(options, 33), 33 * kInjection + kRtt / 4);
}

TEST(SdrCoding, WithoutAnyChunkTheGlobalTimeoutEndsIt) {
  CodingOptions options = options_of(CodeKind::kXor, 4, 2);
  options.global_timeout = 10 * kRtt;
  const Outcome one = run(options, 16, [](const auto&, unsigned) { return true; });
  EXPECT_TRUE(one.gave_up);
  EXPECT_EQ(one.completion, 10 * kRtt);
  EXPECT_EQ(one.nacks, 0u);
}

TEST(SdrCoding, AForgedNackRepeatsNothingThatIsNotThere) {
  CodingSender sender(options_of(CodeKind::kMds, 4, 2), 10);
  sender.start(10, 0);
  const std::uint32_t forged[] = {7, 0xFFFFFFFF, 2, 2, 1};
  sender.on_nack(forged);
  unsigned data = 0;
  for (unsigned i = 0; i < 15 + 2; i++) data += sender.next(0).kind == Kind::kData;
  EXPECT_EQ(data, 10u + 2u);  // submessage 2 has two chunks
  EXPECT_EQ(sender.next(0).kind, Kind::kNone);
}

TEST(SdrCoding, EveryByteIsDelivered) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 24; i++) {
    std::bernoulli_distribution is_lost(0.02 * (i % 6));
    const CodingOptions options = options_of(i % 2 ? CodeKind::kMds : CodeKind::kXor, i % 3 ? 8 : 5, i % 3 ? 4 : 2);
    const auto chunks = 1 + static_cast<std::uint32_t>(random() % 200);
    const Outcome one = run(options, chunks, [&](const auto&, unsigned) { return is_lost(random); });
    EXPECT_TRUE(one.done && one.intact) << i;
  }
}

// The model has every chunk of a failed submessage come again; ours is done as soon as code and repetition together do,
// so where repetitions are lost as well it is faster, and never slower.
TEST(SdrCoding, TakesAsLongAsTheModelSays) {
  std::mt19937_64 random(6);
  for (const CodeKind kind : {CodeKind::kMds, CodeKind::kXor})
    for (const double drop : {0.001, 0.005, 0.01, 0.03, 0.1}) {
      constexpr std::uint32_t kChunks = 128;
      double sum = 0;
      constexpr int kRuns = 120;
      std::bernoulli_distribution is_lost(drop);
      for (int i = 0; i < kRuns; i++) {
        const Outcome one =
            run(options_of(kind, 32, 8), kChunks, [&](const auto&, unsigned) { return is_lost(random); });
        ASSERT_TRUE(one.done && one.intact);
        sum += static_cast<double>(one.completion) / 1e9;
      }
      const sdr::Channel channel{4096 * 8 / (kInjection / 1e9), kRtt / 1e9, 4096, drop};
      const double mean = sdr::ErasureCoding(channel, {kind, 32, 8}, 3 * channel.rtt, 1).mean(kChunks);
      const bool assumed = drop <= 0.01;
      EXPECT_LT(sum / kRuns / mean, 1.1) << static_cast<int>(kind) << ' ' << drop;
      EXPECT_GT(sum / kRuns / mean, assumed ? 0.9 : 0.4) << static_cast<int>(kind) << ' ' << drop;
    }
}

// No chunk is whole, so no FTO begins: the sender's question begins it.
TEST(SdrCoding, WhereNothingHasComeAQuestionHasItAskedFor) {
  sdr::CodingOptions options;
  options.shape = {sdr::CodeKind::kMds, 4, 2};
  sdr::CodingReceiver receiver(options, 8);
  receiver.start(8, 0);
  const std::vector<std::uint8_t> data(8), parity(4);
  EXPECT_EQ(receiver.poll(data, parity, options.rtt * 10), sdr::CodingReceiver::Action::kNone);
  receiver.hasten(options.rtt * 11);
  EXPECT_EQ(receiver.poll(data, parity, options.rtt * 11), sdr::CodingReceiver::Action::kNack);
  EXPECT_EQ(receiver.failed().size(), 2u);
  EXPECT_EQ(receiver.poll(data, parity, options.rtt * 11 + 1), sdr::CodingReceiver::Action::kNone);
}

}  // namespace
}  // namespace rocebox::sdr_coding_test
