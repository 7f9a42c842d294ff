// SPDX-License-Identifier: BSD-3-Clause
// The traffic of a scenario: queue pairs of RC, UC and UD with messages, acknowledgements and go-back-N, and among them
// whatever else a wire carries.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/swarm/scenario.h"

namespace rocebox::swarm {

/// One packet that comes in.
struct Sent {
  Nanos at;
  unsigned edge;  ///< of Scenario::edges
  std::vector<std::uint8_t> bytes;
  std::uint32_t wire_bytes;
  std::uint64_t mark;  ///< first eight bytes of the payload, which no other payload has; 0: none
  int flow;            ///< packets of one flow have one order; -1: of none
};

/// What is known of a payload, by its mark: independent of all that rocebox computes.
struct Payload {
  std::uint64_t digest;
  std::uint32_t bytes;
  bool right;  ///< it was sent with a right ICRC
};

struct Traffic {
  std::vector<Sent> packets;
  std::unordered_map<std::uint64_t, Payload> payloads;
};

Traffic make_traffic(const Scenario& scenario, std::uint64_t seed, std::size_t packets);

std::uint64_t digest_of(const std::uint8_t* data, std::size_t bytes);

}  // namespace rocebox::swarm
