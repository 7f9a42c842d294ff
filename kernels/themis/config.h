// SPDX-License-Identifier: BSD-3-Clause
// What can be written about Themis.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/themis/limits.h"
#include "switch_model/program.h"

namespace rocebox::themis {

/// A connection that is known beforehand.
struct ConnectionConfig {
  std::optional<roce::IpAddress> local, remote;
  std::int64_t local_qpn = 2, remote_qpn = 2, first_psn = -1;
  void fields(Fields& fields);
};

enum class Spray : std::uint8_t { kOff, kEgressPort, kUdpSourcePort };

struct Config {
  std::vector<std::string> hosts;
  Spray spray = Spray::kEgressPort;
  std::int64_t paths = 2, paths_max = 0;
  std::vector<std::string> path_map;
  std::vector<std::string> operations = {"write"};
  std::int64_t qps = 8192, window = 512, ooo_threshold = 448, avoidance_window = 2'000'000, path_avoidance_bit = 0,
               turned_class = 7;
  Nanos stash_timeout = kMillisecond, qp_timeout = 60 * kSecond;
  bool learning = true, reroute_timeouts = true;
  std::vector<std::string> without;
  std::vector<ConnectionConfig> connections;
  void fields(Fields& fields, const switch_model::SwitchInfo& info);
  /// At a ToR of a topology its hosts are those that it has there, and the paths its ports to other switches; elsewhere
  /// nothing is done.
  void place(const Placement& placement, const switch_model::SwitchInfo& info);

  std::uint32_t paths_count() const { return static_cast<std::uint32_t>(paths); }
  /// Paths that there is room for.
  std::uint32_t paths_max_count() const { return static_cast<std::uint32_t>(std::max(paths, paths_max)); }
  /// QPs with state in each pipe: those of `hosts` share them equally.
  std::uint32_t slots_per_pipe(const switch_model::SwitchInfo& info) const;
  /// Whether a part of the design is there.
  bool has(std::string_view part) const { return std::ranges::find(without, part) == without.end(); }
  /// Whether packets of each opcode are sprayed.
  std::array<bool, 256> sprayed_opcodes() const;
  /// What is put on the UDP source port by exclusive or for path number `path`; 0 without a PathMap.
  std::uint16_t path_delta(std::uint32_t path) const;
};

}  // namespace rocebox::themis
