// SPDX-License-Identifier: BSD-3-Clause
// Next hops: what forwarding chooses among, and what a program behind it may choose otherwise.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"

namespace rocebox::switch_model {

using roce::Mac;

/// A port, and the MAC address that a routed packet gets there. Bridged packets keep theirs.
struct NextHop {
  Port port = 0;
  bool routed = false;
  Mac mac{};
  auto operator<=>(const NextHop&) const = default;
};

/// Next hops that are equal in cost stand side by side.
struct EcmpGroup {
  std::uint16_t first = 0, count = 0;

  /// The next hop of a flow with this hash of `width` bits.
  std::uint32_t pick(std::uint32_t hash, unsigned width) const {
    return first + static_cast<std::uint32_t>(std::uint64_t{hash} * count >> width);
  }
};

/// Filled by `forward` when it is made, and anew when its routes or addresses are reloaded; programs behind it in
/// `programs:` read it, and keep no copy. Both tables have room for more than is used. In ingress, `forward` leaves its
/// choice in two words of PacketState::metadata:
///   metadata[group_word]   the number of the packet's group plus one; 0: the packet has none (flooded, dropped)
///   metadata[hop_word]     the number of the next hop chosen, plus one; its egress control rewrites MACs by it
/// A program that chooses another member of the group sets the second, and egress_port to that hop's port. A packet
/// that is recirculated keeps its hop; one that sets the second to 0 before has it forwarded anew.
/// Where `balance` says more than the flow's hash, a packet that carries data of RoCEv2 leaves `forward` with
/// egress_port kBalancedPort, metadata[hop_word] its flow's next hop, and
///   metadata[draw_word]    what the switch chooses by behind the ingress control, unless a program has set egress_port
struct NextHops {
  std::vector<NextHop> hops;
  std::vector<EcmpGroup> groups;
  std::vector<Mac> port_macs;  ///< by port: of a routed next hop there, the last in the configuration; 0: there is none
  unsigned group_word = 0, hop_word = 0, draw_word = 0;
  bool filled = false;          ///< `forward` stands before
  bool routes = false;          ///< it is a router: next hops may have MAC addresses
  unsigned hash_algorithm = 0;  ///< of flows, in crc_algorithms()
  std::uint32_t hash_seed = 0;
  std::uint32_t hash_polynomial = 0;  ///< in place of the algorithm's; 0: its own
  bool least_queue = false;           ///< the draw decides among ports with equal queues only

  /// The group of a packet, by its metadata; null when it has none.
  template <class Metadata>
  const EcmpGroup* group_of(const Metadata& metadata) const {
    const std::uint32_t number = metadata[group_word];
    return number ? &groups[number - 1] : nullptr;
  }
};

}  // namespace rocebox::switch_model
