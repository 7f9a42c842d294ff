// SPDX-License-Identifier: BSD-3-Clause
// An oracle of its own for LoWAR's adaptation: what stays lost on a Gilbert channel, summed packet by packet over a
// block, and the least redundancy that is enough.
#pragma once
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar::oracle {

/// A channel of two states, of which one loses every packet: `rate` is the share lost, `burst` the mean length.
struct Channel {
  double rate = 0, burst = 1;  ///< a burst of 1 / (1 - rate) is Bernoulli
  double leave() const { return 1 / burst; }
  double enter() const { return rate < 1 ? rate * leave() / (1 - rate) : 1; }
};
inline Channel bernoulli(double rate) { return {rate, 1 / (1 - rate)}; }

/// Which packets a channel loses, one after the other.
class LossProcess {
 public:
  LossProcess(Channel channel, std::uint64_t seed) : channel_(channel), random_(seed) {}
  void change(Channel channel) { channel_ = channel; }
  /// Draws for the next packet.
  bool next_is_lost() {
    const double p = std::uniform_real_distribution<double>()(random_);
    return bad_ = bad_ ? p >= channel_.leave() : p < channel_.enter();
  }

 private:
  Channel channel_;
  std::mt19937_64 random_;
  bool bad_ = false;
};

/// What stays lost of a block of so many packets, of those of r and c: walks the packets with the probabilities of both
/// states. A data packet stays lost when it is lost and something else of what its repair packet covers, or that one,
/// is lost, too. The block's repair packets follow its last packet.
inline double stays_lost(unsigned packets, unsigned c, Channel channel) {
  const unsigned repairs = std::min(packets, c);
  double stays = 0;
  for (unsigned mine = 0; mine < packets; mine++) {
    double good = 1 - channel.rate, bad = channel.rate;  // of the chain before the first packet, at rest
    for (unsigned at = 0; at < packets + repairs; at++) {
      const double now_bad = good * channel.enter() + bad * (1 - channel.leave());
      const double now_good = good * (1 - channel.enter()) + bad * channel.leave();
      const bool same_share = at < packets ? at % c == mine % c : at - packets == mine % c;
      good = at == mine ? 0 : now_good;
      bad = same_share && at != mine ? 0 : now_bad;
    }
    stays += channel.rate - (good + bad);  // lost, less lost and everything else of the share come
  }
  return stays;
}

/// The share that stays lost, in messages of a multiple of r packets.
inline double residual(Coding coding, Channel channel) {
  return coding.off() ? channel.rate : stays_lost(coding.r, coding.c, channel) / coding.r;
}

/// Lengths of messages, in packets, one as frequent as the other.
using Lengths = std::vector<unsigned>;

inline double packets_of(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), 0.0); }

/// The share that stays lost in such messages.
inline double residual(Coding coding, Channel channel, const Lengths& lengths) {
  if (coding.off()) return channel.rate;
  const double whole = stays_lost(coding.r, coding.c, channel);
  double stays = 0;
  for (const unsigned length : lengths)
    stays += length / coding.r * whole + stays_lost(length % coding.r, coding.c, channel);
  return stays / packets_of(lengths);
}

/// Repair packets for a data packet of such messages.
inline double overhead(Coding coding, const Lengths& lengths) {
  if (coding.off()) return 0;
  double repairs = 0;
  for (const unsigned length : lengths)
    repairs += length / coding.r * coding.c + std::min<unsigned>(length % coding.r, coding.c);
  return repairs / packets_of(lengths);
}

/// Calls `use` with each setting that adaptation may choose.
template <class Use>
void each_setting(Use use) {
  use(Coding{});
  for (unsigned c = 1; c <= 32; c *= 2)
    for (unsigned r = c; r <= 256; r *= 2) use(Coding{static_cast<std::uint16_t>(r), static_cast<std::uint8_t>(c)});
}

/// The least overhead, up to `most`, of which the target is met; above 1 is none.
inline double least_overhead(Channel channel, const Lengths& lengths, double target, double most) {
  double least = 2;
  each_setting([&](Coding coding) {
    const double cost = overhead(coding, lengths);
    if (cost <= most && cost < least && residual(coding, channel, lengths) <= target) least = cost;
  });
  return least;
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
