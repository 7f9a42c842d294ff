// SPDX-License-Identifier: BSD-3-Clause
// Ports that are joined back to back by queues, inside one process.
#pragma once
#include <cstdint>
#include <map>
#include <string>

struct rte_ring;

namespace rocebox {

class RingPairs {
 public:
  RingPairs() = default;
  /// The ports must be closed before.
  ~RingPairs();
  RingPairs(const RingPairs&) = delete;
  RingPairs& operator=(const RingPairs&) = delete;

  /// Makes the first or the second port of the pair `name`: what one sends, the other receives, up to `packets`
  /// waiting. Says in `why` what went wrong: a third port of that name, no memory.
  bool make_port(const std::string& name, unsigned packets, std::uint16_t& port, std::string& why);

 private:
  struct Pair {
    rte_ring* rings[2] = {};
    unsigned ports = 0;
  };
  std::map<std::string, Pair> pairs_;
};

}  // namespace rocebox
