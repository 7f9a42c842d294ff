// SPDX-License-Identifier: BSD-3-Clause
// What the link does to one stream: how many packets are lost, and how losses stick together. Fed with what became of
// each packet in the order of PSNs, recovered or not; answers with bounds, not with ratios.
#pragma once
#include <array>
#include <cstdint>

namespace rocebox::lowar {

/// Distances, in packets, at which it is counted whether a loss follows a loss: the interleaving depths of the ladder.
inline constexpr std::array<unsigned, 6> kLags = {1, 2, 4, 8, 16, 32};

/// A loss process, as much of it as the choice of (r, c) needs.
struct Loss {
  double rate = 0;                           ///< share of packets lost
  std::array<double, kLags.size()> after{};  ///< share of losses that have another kLags[i] packets before them
};

class LossMeter {
 public:
  /// The next packet came.
  void came() { window_.packets++; }
  /// The next `count` packets did not.
  void lost(std::uint32_t count);
  /// `count` of the packets since some time did not: nobody knows which, so they are taken for independent.
  void lost_apart(std::uint32_t count);
  /// One that counts as lost had only been overtaken.
  void take_back();

  /// Whether it is time to look().
  bool due() const { return window_.packets >= next_look_; }
  /// Looks at the window, when due(). True: (r, c) is to be chosen again, then done(): since then packets or clusters
  /// of losses of the window have doubled, or a new window has begun because the newest losses, or their absence, are
  /// certainly of another rate. A stream's n packets mean O(log n) decisions.
  bool look();
  /// The bounds have been looked at.
  void done();

  /// What the process is not better than, what it looks like, and what it is not worse than: three standard deviations
  /// of a Poisson process of clusters out (one look in about a thousand errs to either side).
  Loss low() const { return bounds(-1); }
  Loss mean() const { return bounds(0); }
  Loss high() const { return bounds(1); }
  /// Whether mean() can be taken for the truth.
  bool is_exact() const;
  std::uint32_t packets() const { return window_.packets; }
  std::uint32_t losses() const { return window_.lost; }

 private:
  struct Counts {
    std::uint32_t packets = 0;
    std::uint16_t lost = 0, clusters = 0;  // losses farther apart than kClusterGap are of different clusters
    std::array<std::uint16_t, kLags.size()> after{};
  };
  Loss bounds(int side) const;
  void lose_one();
  void end_block();
  void begin_window(const Counts& counts);
  void plan_decision();
  void plan_look();
  void forget_older_half();
  bool has_become_clean() const;

  Counts window_, block_;        // block_: as the window was when its newest block of kBlockClusters began
  std::uint32_t last_loss_ = 0;  // packets of the window up to and with the last lost one
  std::uint32_t history_ = 0;    // bit i: packet i before the last lost one was lost, too
  std::uint32_t next_look_ = 256, next_decision_ = 256;  // packets of the window
  std::uint16_t next_clusters_ = 1;                      // also a decision
};

}  // namespace rocebox::lowar
