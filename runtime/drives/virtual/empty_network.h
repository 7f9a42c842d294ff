// SPDX-License-Identifier: BSD-3-Clause
// EmptyNetwork: how long a transfer takes at least, alone on the wires of a configuration.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox {

/// On the wire beyond the frame: preamble 8, FCS 4, gap 12.
inline constexpr std::uint64_t kWireOverhead = 24;

/// Over a path with the fewest links: the delays of its links, the bytes at the rate of the slowest, and a packet at
/// that of each other one, which stores it before it sends it on. Headers are not counted, and no device's own time.
class EmptyNetwork {
 public:
  explicit EmptyNetwork(const config::RunConfig& config);
  /// 0 where nothing is known: no path, or one without delays and rates.
  double nanos(unsigned source, unsigned destination, std::uint64_t bytes);

  /// The rate of a link's direction from its end `from`; 0: no limit.
  static std::uint64_t rate_of(const config::LinkConfig& link, Port from);

 private:
  struct Hop {
    unsigned to, link;
    Port side;  ///< of the link
  };
  struct Step {
    unsigned before = 0, link = 0;
    Port side = 0;
    bool reached = false;
  };
  const std::vector<Step>& paths_from(unsigned source);

  const config::RunConfig& config_;
  std::vector<std::vector<Hop>> hops_;  // by device
  std::unordered_map<unsigned, std::vector<Step>> paths_;
};

}  // namespace rocebox
