// SPDX-License-Identifier: BSD-3-Clause
// Lists of flows as other simulators write them.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::nic_model {

/// A transfer between two nodes of a file.
struct FileFlow {
  std::uint32_t source = 0, destination = 0;
  std::uint64_t bytes = 0;
  Nanos start = 0;            ///< from the beginning; of no meaning where a trigger starts it
  std::uint32_t trigger = 0;  ///< that starts it, as a place in FlowFile::triggers plus one; 0: its time does
  std::uint32_t fires[2]{};   ///< triggers that its end counts for, in the same way
  int line = 0;
};

/// Flows begin when so many others have ended.
struct FileTrigger {
  std::uint32_t needed = 1;
};

struct FlowFile {
  std::vector<FileFlow> flows;
  std::vector<FileTrigger> triggers;
};

/// htsim's connection matrix (.cm): `Nodes N`, `Connections N`, then lines `A->B start PICOSECONDS size BYTES` with
/// `id`, `trigger`, `send_done_trigger`, `recv_done_trigger` and `prio`, which says nothing here; and `trigger id N
/// oneshot` or `trigger id N barrier count N`. Empty after a mistake.
FlowFile parse_connection_matrix(std::string_view text, const OnMistake& mistake);

/// A flow file of HPCC's or ConWeave's ns-3 simulators: a number of flows, and so many lines `SOURCE DESTINATION
/// PRIORITY [PORT] BYTES SECONDS`; what follows is no part of it, as these simulators read it. PRIORITY says nothing
/// here. Their simulations begin at some later time: times come out counted from the earliest. Empty after a mistake.
FlowFile parse_ns3_flows(std::string_view text, const OnMistake& mistake);

/// A distribution of sizes, from a cumulative one.
class SizeDistribution {
 public:
  /// Lines `BYTES SHARE`, both rising, the last share being 1 or, in percent, 100; between two points it is linear.
  static SizeDistribution parse(std::string_view text, const OnMistake& mistake);

  bool empty() const { return points_.empty(); }
  double mean() const;
  /// The size that a share `u` of all does not exceed, 1 at least; `u` from 0 to below 1.
  std::uint64_t at(double u) const;

 private:
  struct Point {
    double bytes, share;
  };
  std::vector<Point> points_;
};

}  // namespace rocebox::nic_model
