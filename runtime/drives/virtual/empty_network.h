// SPDX-License-Identifier: BSD-3-Clause
// EmptyNetwork: how long a transfer takes at least, alone on the wires of a configuration.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox {

/// On the wire beyond the frame: preamble 8, FCS 4, gap 12.
inline constexpr std::uint64_t kWireOverhead = 24;

/// How fast links are sent into: at the rate of the device at that end, or else as a topology says, and no faster than
/// the link's own rate.
class LinkRates {
 public:
  explicit LinkRates(const config::RunConfig& config);
  /// Bits per second of the direction from a link's end `from`; 0: no limit, or none that is known.
  std::uint64_t of(std::size_t link, Port from) const { return rates_[link][from]; }

 private:
  std::vector<std::array<std::uint64_t, 2>> rates_;
};

/// Over a path as routes have it, with the fewest links: the delays of its links, the bytes at the rate of the slowest,
/// and a packet at that of each other one, which stores it before it sends it on. Headers are not counted, and no
/// device's own time.
class EmptyNetwork {
 public:
  explicit EmptyNetwork(const config::RunConfig& config);
  /// 0 where nothing is known: no path, or one on which no rate is.
  double nanos(unsigned source, unsigned destination, std::uint64_t bytes);

 private:
  static constexpr unsigned kNoWay = UINT32_MAX;
  struct Hop {
    unsigned to, link;
    Port side;  ///< of the link
  };
  struct Step {
    unsigned before = 0, link = 0;
    Port side = 0;
    unsigned cost = kNoWay;
  };
  const std::vector<Step>& paths_from(unsigned source);

  const config::RunConfig& config_;
  const LinkRates rates_;
  std::vector<std::vector<Hop>> hops_;  // by device
  std::unordered_map<unsigned, std::vector<Step>> paths_;
};

}  // namespace rocebox
