// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/erasure_coding.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace rocebox::sdr {
namespace {

Time share_of(Time time, double factor) { return std::llround(factor * static_cast<double>(time)); }

}  // namespace

Time fallback_timeout(const CodingOptions& options, std::uint32_t chunks) {
  if (options.fallback == FallbackTimeout::kDataOnly)
    return chunks * options.injection + share_of(options.rtt, 0.5 * options.alpha);
  const std::uint64_t parity =
      (std::uint64_t{chunks} * options.shape.parity + options.shape.data - 1) / options.shape.data;
  return static_cast<Time>(chunks + parity) * options.injection + share_of(options.rtt, options.beta);
}

CodingReceiver::CodingReceiver(const CodingOptions& options, std::uint32_t chunks_max)
    : options_(options),
      parts_{chunks_max, options.shape},
      failed_(parts_.count()),
      present_(options.shape.data + options.shape.parity) {}

void CodingReceiver::start(std::uint32_t chunks, Time now) {
  parts_.chunks = chunks;
  assert(chunks >= 1 && parts_.count() <= failed_.size());
  failed_count_ = settled_ = come_ = 0;
  give_up_ = now + options_.global_timeout;
  ask_ = kNoTime;
  over_ = asked_ = false;
}

std::span<const std::uint8_t> CodingReceiver::present(std::uint32_t submessage, std::span<const std::uint8_t> data,
                                                      std::span<const std::uint8_t> parity) {
  const std::uint32_t k = parts_.data(submessage), m = parts_.parity(submessage);
  std::copy_n(data.begin() + parts_.first(submessage), k, present_.begin());
  std::copy_n(parity.begin() + parts_.first_parity(submessage), m, present_.begin() + k);
  return {present_.data(), k + m};
}

bool CodingReceiver::recoverable(std::uint32_t submessage, std::span<const std::uint8_t> data,
                                 std::span<const std::uint8_t> parity) {
  const std::span<const std::uint8_t> here = present(submessage, data, parity);
  const std::uint32_t k = parts_.data(submessage), m = parts_.parity(submessage);
  return recoverable_of({options_.shape.kind, k, m}, here);
}

CodingReceiver::Action CodingReceiver::poll(std::span<const std::uint8_t> data, std::span<const std::uint8_t> parity,
                                            Time now) {
  if (over_) return Action::kNone;
  const auto come = [](std::span<const std::uint8_t> bitmap, std::uint32_t count) {
    return static_cast<std::uint32_t>(std::count(bitmap.begin(), bitmap.begin() + count, 1));
  };
  const std::uint32_t here = come(data, parts_.chunks) + come(parity, parts_.parity_chunks());
  if (come_ == 0 && here > 0) ask_ = now + fallback_timeout(options_, parts_.chunks);
  // What was asked for comes: the NACK was heard.
  if (asked_ && here > come_) ask_ = now + options_.rtt + share_of(options_.rtt, options_.alpha);
  come_ = here;
  while (settled_ < parts_.count() && recoverable(settled_, data, parity)) settled_++;
  if (settled_ == parts_.count()) return over_ = true, Action::kAck;
  if (now >= give_up_) return over_ = true, Action::kFailed;
  if (now < ask_) return Action::kNone;
  failed_count_ = 0;
  for (std::uint32_t i = settled_; i < parts_.count(); i++)
    if (!recoverable(i, data, parity)) failed_[failed_count_++] = i;
  if (failed_count_ == 0) return over_ = true, Action::kAck;
  asked_ = true;
  ask_ = now + options_.rtt + share_of(options_.rtt, options_.alpha);
  return Action::kNack;
}

Time CodingReceiver::due() const { return over_ ? kNoTime : std::min(give_up_, ask_); }

CodingSender::CodingSender(const CodingOptions& options, std::uint32_t chunks_max)
    : options_(options),
      parts_{chunks_max, options.shape},
      repeat_({options.rtt, options.alpha}, chunks_max),
      repeated_(chunks_max) {}

void CodingSender::start(std::uint32_t chunks, Time now) {
  assert(chunks >= 1 && chunks <= repeated_.size());
  parts_.chunks = chunks;
  repeated_count_ = submessage_ = within_ = 0;
  give_up_ = now + options_.global_timeout;
  done_ = repeating_ = false;
}

CodingSender::Chunk CodingSender::next(Time now) {
  using Kind = Chunk::Kind;
  if (done_) return {};
  if (submessage_ == parts_.count()) {
    if (!repeating_) return {};
    const std::uint32_t chunk = repeat_.next(now);
    return chunk == RepeatSender::kNone ? Chunk{} : Chunk{Kind::kData, repeated_[chunk]};
  }
  const std::uint32_t data = parts_.data(submessage_), at = within_++;
  const Chunk chunk = at < data ? Chunk{Kind::kData, parts_.first(submessage_) + at}
                                : Chunk{Kind::kParity, parts_.first_parity(submessage_) + at - data};
  if (within_ == data + parts_.parity(submessage_)) submessage_++, within_ = 0;
  return chunk;
}

Time CodingSender::due() const {
  if (done_) return kNoTime;
  if (submessage_ < parts_.count()) return 0;
  return repeating_ ? repeat_.due() : kNoTime;
}

void CodingSender::on_nack(std::span<const std::uint32_t> failed) {
  if (done_ || repeating_) return;  // what it named is being repeated until it is acknowledged
  std::uint32_t last = 0;
  for (const std::uint32_t submessage : failed) {
    if (submessage >= parts_.count() || (repeated_count_ > 0 && submessage <= last)) continue;
    for (std::uint32_t i = 0; i < parts_.data(submessage); i++)
      repeated_[repeated_count_++] = parts_.first(submessage) + i;
    last = submessage;
  }
  repeating_ = repeated_count_ > 0;
  if (repeating_) repeat_.start(repeated_count_);
}

// The bitmap of the whole message, seen as that of what is repeated.
void CodingSender::on_repeat_ack(const SelectiveAck& ack, Time now) {
  if (!repeating_) return;
  const auto here = [&](std::uint32_t chunk) {
    if (chunk < ack.cumulative) return true;
    const std::uint32_t bit = chunk - ack.cumulative;
    return bit < std::min(ack.bits, kSelectiveBits) && (ack.selective[bit / 64] >> bit % 64 & 1) != 0;
  };
  SelectiveAck own;
  while (own.cumulative < repeated_count_ && here(repeated_[own.cumulative])) own.cumulative++;
  own.bits = std::min(kSelectiveBits, repeated_count_ - own.cumulative);
  for (std::uint32_t bit = 0; bit < own.bits; bit++)
    if (here(repeated_[own.cumulative + bit])) own.selective[bit / 64] |= 1ull << bit % 64;
  repeat_.on_ack(own, now);
}

}  // namespace rocebox::sdr
