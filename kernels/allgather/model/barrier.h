// SPDX-License-Identifier: BSD-3-Clause
// Barrier: by recursive doubling (V-A). Of P ranks the first 2^k <= P exchange messages with partners 1, 2, 4, ...
// apart; each rank beyond them tells one of the first ranks before, and is told by it afterwards.
#pragma once
#include <bit>
#include <cstdint>
#include <set>

#include "kernels/allgather/limits.h"

namespace rocebox::allgather {

class Barrier {
 public:
  Barrier(unsigned rank, unsigned ranks)
      : rank_(rank), core_(std::bit_floor(ranks)), extra_(ranks - core_), rounds_(std::countr_zero(core_)) {}

  /// Who a message of `step` comes from, or goes to: 0 to the core, 1 to k within it, k + 1 from it. Nobody: -1.
  int sender(unsigned step) const { return partner(step, is_extra() ? rounds_ + 1 : 0); }
  int receiver(unsigned step) const { return partner(step, is_extra() ? 0 : rounds_ + 1); }
  unsigned steps() const { return rounds_ + 2; }
  /// All of them, each once.
  std::set<unsigned> partners() const {
    std::set<unsigned> all;
    for (unsigned step = 0; step < steps(); step++)
      for (const int one : {sender(step), receiver(step)})
        if (one >= 0) all.insert(static_cast<unsigned>(one));
    return all;
  }

  /// A message that its sender could send: not twice, of a step in which it sends to this rank.
  bool accept(unsigned from, unsigned step) {
    if (step >= steps() || sender(step) != static_cast<int>(from) || came_ >> step & 1) return false;
    came_ |= 1u << step;
    return true;
  }
  /// Goes on as far as what has come allows; `send(to, step)`. Called after start and after each message.
  template <class Send>
  void advance(Send&& send) {
    while (step_ < steps()) {
      if (!sent_) {
        sent_ = true;
        if (const int to = receiver(step_); to >= 0) send(static_cast<unsigned>(to), step_);
      }
      if (sender(step_) >= 0 && !(came_ >> step_ & 1)) return;
      step_++;
      sent_ = false;
    }
  }
  bool done() const { return step_ == steps(); }

 private:
  bool is_extra() const { return rank_ >= core_; }
  // `alone`: the step in which an exchange goes one way alone, the way asked for.
  int partner(unsigned step, unsigned alone) const {
    if (step >= 1 && step <= rounds_) return is_extra() ? -1 : static_cast<int>(rank_ ^ (1u << (step - 1)));
    if (step != alone) return -1;
    if (is_extra()) return static_cast<int>(rank_ - core_);
    return rank_ < extra_ ? static_cast<int>(rank_ + core_) : -1;
  }

  unsigned rank_, core_, extra_, rounds_;
  unsigned step_ = 0;
  std::uint32_t came_ = 0;  // steps whose message has come, a bit each
  bool sent_ = false;       // the message of `step_`
};

}  // namespace rocebox::allgather
