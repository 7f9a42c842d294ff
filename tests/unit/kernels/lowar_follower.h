// SPDX-License-Identifier: BSD-3-Clause
// What the decoder does with what it measures, without packets.
#pragma once
#include <cmath>
#include <string>

#include "kernels/lowar/redundancy.h"
#include "tests/unit/kernels/lowar_oracle.h"

namespace rocebox::lowar::oracle {

inline std::string name(Coding coding) {
  return "(" + std::to_string(coding.r) + ", " + std::to_string(coding.c) + ")";
}
inline std::string name(const Lengths& lengths) {
  std::string text = "messages of";
  for (const unsigned length : lengths) text += " " + std::to_string(length);
  return text;
}
inline std::string name(Channel channel) {
  return "loss " + std::to_string(channel.rate) + " in bursts of " + std::to_string(channel.burst);
}

/// What the meter would know of the channel in the end.
inline Loss true_loss(Channel channel) {
  Loss loss;
  loss.rate = channel.rate;
  const double memory = 1 - channel.leave() - channel.enter();
  for (unsigned i = 0; i < kLags.size(); i++)
    loss.after[i] = channel.rate + (1 - channel.rate) * std::pow(memory, kLags[i]);
  return loss;
}

/// Measures losses and messages, and changes the setting at once where another one is chosen, as the decoder does.
struct Follower {
  Aim aim;
  Lengths lengths;  ///< empty: one message without end
  Coding coding{32, 1};
  LossMeter meter;
  MessageMeter messages;
  unsigned changes = 0;
  std::mt19937 random{7};
  std::uint64_t run_packets = 0;
  double repairs = 0;

  void run(LossProcess& losses, std::uint64_t count) {
    for (std::uint64_t end = run_packets + count; run_packets < end;) {
      const auto length = lengths.empty() ? static_cast<unsigned>(count) : lengths[random() % lengths.size()];
      message(losses, length);
      if (!lengths.empty()) messages.ended(length);
      run_packets += length;
    }
  }
  // A message in use has the setting that it began with; one without end, the newest from the next block on.
  void message(LossProcess& losses, unsigned length) {
    Coding used = coding;
    for (unsigned i = 0, block = 0; i < length; i++) {
      if (losses.next_is_lost())
        meter.lost(1);
      else
        meter.came();
      if (meter.due() || messages.due()) consider(i + 1);
      if (!used.off() && ++block < used.r && i + 1 < length) continue;
      for (unsigned repair = 0; repair < std::min<unsigned>(block, used.c); repair++) (void)losses.next_is_lost();
      repairs += std::min<unsigned>(block, used.c);
      block = 0;
      if (lengths.empty()) used = coding;
    }
  }
  // `under_way`: packets of the message that has begun.
  void consider(unsigned under_way) {
    const bool by_length = messages.due() && messages.look(coding, aim.redundancy_max);
    const bool by_loss = meter.due() && meter.look();
    if (!by_length && !by_loss) return;
    MessageMeter known = messages;
    if (under_way >= kBlockPacketsMax) known.ended(under_way / kBlockPacketsMax * kBlockPacketsMax);
    if (changes && known.cost(coding) > aim.redundancy_max) {
      messages.retreat();
      known.retreat();
    }
    messages.decided();
    const Coding chosen = choose(coding, meter, known, aim);
    if (by_loss) meter.done();
    if (chosen == coding) return;
    coding = chosen;
    changes++;
  }
};

}  // namespace rocebox::lowar::oracle
