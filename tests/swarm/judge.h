// SPDX-License-Identifier: BSD-3-Clause
// What a run of a scenario shows, and what must be true of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/swarm/flows.h"
#include "tests/swarm/scenario.h"

namespace rocebox::swarm {

/// A packet of ours that has left: whose, and whether it is what was sent.
struct Left {
  std::uint64_t mark;
  std::uint64_t digest;
  std::uint32_t payload_bytes;
  Nanos at;
  bool right;  ///< its ICRC is right
};

struct Outcome {
  std::map<std::pair<unsigned, unsigned>, std::uint64_t>
      hashes;  ///< by port: times, lengths and bytes of all that left
  std::map<std::pair<unsigned, unsigned>, std::vector<Left>> left;  ///< empty unless it was asked for
  std::uint64_t injected = 0, delivered = 0;
  std::vector<std::string> mistakes;
  std::uint64_t heap_growth = 0;  ///< while packets came, their first tenth left out
};

/// Runs a scenario. `batch_max`: see Testbed; `keep`: fills `left`.
Outcome run_scenario(const Scenario& scenario, const Traffic& traffic, Pool& pool, unsigned batch_max, bool keep);

/// How much was looked at: checks that never see a packet find nothing.
struct Looked {
  std::uint64_t runs = 0, delivered = 0, payloads = 0, in_order = 0, cuts = 0;
  // Of networks: those that promise most, their transfers, and runs in which something gave up.
  std::uint64_t fabrics = 0, clean = 0, transfers = 0, gave_up = 0;
};

/// What the process uses now: a run that is over must leave nothing.
struct MemoryUse {
  std::uint64_t heap, tables;
  static MemoryUse now();
  /// What has not been given back since `before`, in words; empty: nothing.
  std::string beyond(const MemoryUse& before) const;
};

/// All that is wrong with a scenario, one a line; empty: nothing.
std::string judge(const Scenario& scenario, const Traffic& traffic, Pool& pool, Looked& looked);

}  // namespace rocebox::swarm
