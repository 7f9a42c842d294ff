// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/selective_repeat.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace rocebox::sdr {

RepeatSender::RepeatSender(const RepeatOptions& options, std::uint32_t chunks_max)
    : rto_(options.rtt + std::llround(options.alpha * static_cast<double>(options.rtt))),
      rtt_(options.rtt),
      nack_(options.nack),
      state_(chunks_max),
      missed_(chunks_max) {}

void RepeatSender::start(std::uint32_t chunks) {
  assert(chunks <= state_.size());
  chunks_ = chunks;
  fresh_ = acked_ = cumulative_ = missed_first_ = missed_count_ = 0;
  oldest_ = newest_ = kNone;
  std::fill_n(state_.begin(), chunks, Chunk{0, kNone, kNone, false, false});
}

// Transmissions are listed in their order, so the oldest one's RTO is the next to pass.
void RepeatSender::list(std::uint32_t chunk, Time now) {
  Chunk& one = state_[chunk];
  one.sent = now;
  one.listed = true;
  one.before = newest_;
  one.after = kNone;
  (newest_ == kNone ? oldest_ : state_[newest_].after) = chunk;
  newest_ = chunk;
}

void RepeatSender::unlist(std::uint32_t chunk) {
  Chunk& one = state_[chunk];
  if (!one.listed) return;
  (one.before == kNone ? oldest_ : state_[one.before].after) = one.after;
  (one.after == kNone ? newest_ : state_[one.after].before) = one.before;
  one.listed = false;
}

std::uint32_t RepeatSender::again(std::uint32_t chunk, Time now) {
  unlist(chunk);
  list(chunk, now);
  repetitions_++;
  return chunk;
}

std::uint32_t RepeatSender::next(Time now) {
  while (missed_count_ > 0) {
    const std::uint32_t chunk = missed_[missed_first_];
    missed_first_ = (missed_first_ + 1) % static_cast<std::uint32_t>(missed_.size());
    missed_count_--;
    if (!state_[chunk].acked) return again(chunk, now);
  }
  if (oldest_ != kNone && now - state_[oldest_].sent >= rto_) return again(oldest_, now);
  if (fresh_ == chunks_) return kNone;
  list(fresh_, now);
  return fresh_++;
}

Time RepeatSender::due() const {
  if (missed_count_ > 0 || fresh_ < chunks_) return 0;
  return oldest_ == kNone ? kNoTime : state_[oldest_].sent + rto_;
}

void RepeatSender::acknowledge(std::uint32_t chunk) {
  if (chunk >= fresh_ || state_[chunk].acked) return;  // what was not sent is not acknowledged, whoever says so
  state_[chunk].acked = true;
  acked_++;
  unlist(chunk);
}

void RepeatSender::on_ack(const SelectiveAck& ack, Time now) {
  for (; cumulative_ < std::min(ack.cumulative, fresh_); cumulative_++) acknowledge(cumulative_);
  const std::uint32_t bits = std::min({ack.bits, kSelectiveBits, chunks_ - std::min(chunks_, ack.cumulative)});
  for (std::uint32_t bit = 0; bit < bits; bit++) {
    const std::uint32_t chunk = ack.cumulative + bit;
    if (ack.selective[bit / 64] >> bit % 64 & 1) {
      acknowledge(chunk);
    } else if (nack_ && chunk < ack.missing_below && chunk < fresh_ && state_[chunk].listed &&
               now - state_[chunk].sent >= rtt_) {
      // Out of the list until it is sent, so that it is told of once.
      unlist(chunk);
      missed_[(missed_first_ + missed_count_++) % missed_.size()] = chunk;
    }
  }
}

bool RepeatReceiver::poll(std::span<const std::uint8_t> bitmap, SelectiveAck& ack) {
  while (cumulative_ < chunks_ && bitmap[cumulative_]) cumulative_++;
  std::uint64_t come = cumulative_;
  const std::uint32_t end = std::min(chunks_, cumulative_ + kSelectiveBits);
  for (std::uint32_t chunk = cumulative_; chunk < end; chunk++)
    if (bitmap[chunk]) come++, seen_ = std::max(seen_, chunk + 1);
  if (come == told_) return false;
  told_ = come;
  fill(bitmap, ack);
  return true;
}

void RepeatReceiver::fill(std::span<const std::uint8_t> bitmap, SelectiveAck& ack) const {
  ack = SelectiveAck{};
  ack.cumulative = cumulative_;
  ack.missing_below = options_.nack ? seen_ : 0;
  ack.bits = std::min(kSelectiveBits, chunks_ - cumulative_);
  for (std::uint32_t bit = 0; bit < ack.bits; bit++)
    if (bitmap[cumulative_ + bit]) ack.selective[bit / 64] |= 1ull << bit % 64;
}

}  // namespace rocebox::sdr
