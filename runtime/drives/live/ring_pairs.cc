// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/ring_pairs.h"

#include <fmt/format.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <bit>

namespace rocebox {
bool RingPairs::make_port(const std::string& name, unsigned packets, std::uint16_t& port, std::string& why) {
  Pair& pair = pairs_[name];
  if (pair.ports == 2) {
    why = "two ports have this name already; a pair has two ends";
    return false;
  }
  for (unsigned side = 0; side < 2 && !pair.rings[side]; side++)
    pair.rings[side] =
        rte_ring_create(fmt::format("rb_{}_{}", name, side).c_str(), std::bit_ceil(packets + 1), SOCKET_ID_ANY, 0);
  if (!pair.rings[0] || !pair.rings[1]) {
    why = "there is no memory for its queues";
    return false;
  }
  rte_ring* rx = pair.rings[pair.ports];
  rte_ring* tx = pair.rings[1 - pair.ports];
  const int id = rte_eth_from_rings(fmt::format("rb_{}_{}", name, pair.ports).c_str(), &rx, 1, &tx, 1,
                                    static_cast<unsigned>(SOCKET_ID_ANY));
  if (id < 0) {
    why = "DPDK cannot make a port of its queues";
    return false;
  }
  pair.ports++;
  port = static_cast<std::uint16_t>(id);
  return true;
}

RingPairs::~RingPairs() {
  for (auto& [name, pair] : pairs_) {
    for (rte_ring* ring : pair.rings) {
      void* packet = nullptr;
      while (ring && rte_ring_dequeue(ring, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
      rte_ring_free(ring);
    }
  }
}

}  // namespace rocebox
