// SPDX-License-Identifier: BSD-3-Clause
// An oracle of its own for LoWAR's adaptation: what stays lost on a Gilbert channel, summed packet by packet over a
// whole block, and the least redundancy that is enough.
#pragma once
#include <array>
#include <optional>
#include <random>

#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar::oracle {

/// A channel of two states, of which one loses every packet: `rate` is the share lost, `burst` the mean length.
struct Channel {
  double rate = 0, burst = 1;  ///< a burst of 1 / (1 - rate) is Bernoulli
  double leave() const { return 1 / burst; }
  double enter() const { return rate < 1 ? rate * leave() / (1 - rate) : 1; }
};
inline Channel bernoulli(double rate) { return {rate, 1 / (1 - rate)}; }

/// The fates of the packets of a channel, one after the other.
class Fates {
 public:
  Fates(Channel channel, std::uint64_t seed) : channel_(channel), random_(seed) {}
  void change(Channel channel) { channel_ = channel; }
  bool lost() {
    const double p = std::uniform_real_distribution<double>()(random_);
    return bad_ = bad_ ? p >= channel_.leave() : p < channel_.enter();
  }

 private:
  Channel channel_;
  std::mt19937_64 random_;
  bool bad_ = false;
};

/// Walks the block's packets with the probabilities of both states: a data packet stays lost when it is lost and
/// something else of what its repair packet covers, or that one, is lost, too.
inline double residual(Coding coding, Channel channel) {
  if (coding.off()) return channel.rate;
  double stays = 0;
  for (unsigned mine = 0; mine < coding.r; mine++) {
    double good = 1 - channel.rate, bad = channel.rate;  // of the chain before the first packet, at rest
    for (unsigned at = 0; at < coding.r + 0u + coding.c; at++) {
      const double now_bad = good * channel.enter() + bad * (1 - channel.leave());
      const double now_good = good * (1 - channel.enter()) + bad * channel.leave();
      const bool same_share = at < coding.r ? at % coding.c == mine % coding.c : at - coding.r == mine % coding.c;
      good = at == mine ? 0 : now_good;
      bad = same_share && at != mine ? 0 : now_bad;
    }
    stays += channel.rate - (good + bad);  // lost, less lost and everything else of the share come
  }
  return stays / coding.r;
}

/// The largest n = r / c of the ladder whose best interleaving is enough: 0 is none, 512 stands for uncoded.
inline unsigned most_packets_a_repair(Channel channel, double target, unsigned n_min = 1) {
  if (channel.rate <= target) return 512;
  for (unsigned n = 256; n >= n_min; n /= 2)
    for (unsigned c = 1; c <= 32 && n * c <= 256; c *= 2)
      if (residual({static_cast<std::uint16_t>(n * c), static_cast<std::uint8_t>(c)}, channel) <= target) return n;
  return 0;
}
/// The same of a setting.
inline unsigned packets_a_repair(Coding coding) { return coding.off() ? 512 : coding.r / coding.c; }

}  // namespace rocebox::lowar::oracle
