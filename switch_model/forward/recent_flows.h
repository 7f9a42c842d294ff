// SPDX-License-Identifier: BSD-3-Clause
// RecentFlows: where RoCEv2 flows over IPv4 were routed to lately. What prefix, group and hash say of a flow is the
// same for all its packets until routes change, so that they are asked for its first one only: a shortcut of the
// software, which strict mode does not take, and which changes no answer.
#pragma once
#include <rte_hash_crc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/flows/flow_table.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/parse.h"
#include "switch_model/limits.h"

namespace rocebox::switch_model::forward {

class RecentFlows {
 public:
  /// What tells these flows apart; their UDP destination port is always the same.
  struct Key {
    std::uint64_t addresses;  ///< source and destination, as they lie in the packet
    std::uint16_t source_port;
  };
  /// Numbers, from 0, of the group of next hops and of the one that was chosen in it.
  struct Way {
    std::uint16_t group, hop;
  };
  struct Flow {
    std::uint64_t addresses;
    std::uint32_t source_port_and_round;
    Way way;
  };

  RecentFlows() : flows_(kRecentFlows) {}

  /// Whether packets of this kind are remembered.
  static bool concerns(const PacketMeta& meta) { return meta.status == ParseStatus::kRoce && meta.ip_version == 4; }
  static Key key_of(Packet packet) {
    const std::uint8_t* data = packet.data();
    const PacketMeta& meta = packet.meta();
    Key key;
    std::memcpy(&key.addresses, data + meta.l3_offset + offsetof(roce::Ipv4, source), sizeof key.addresses);
    std::memcpy(&key.source_port, data + meta.udp_offset, sizeof key.source_port);
    return key;
  }
  /// The place of a flow; it may hold another one.
  Flow& place(const Key& key) {
    return flows_[rte_hash_crc_8byte(key.addresses, key.source_port) & (kRecentFlows - 1)];
  }
  bool holds(const Flow& place, const Key& key) const {
    return place.addresses == key.addresses && place.source_port_and_round == both(key);
  }
  void remember(const Key& key, Way way) { place(key) = {key.addresses, both(key), way}; }
  /// Routes have changed.
  void forget() {
    if (++round_ != 0) return;
    std::fill_n(flows_.data(), flows_.size(), Flow{});
    round_ = 1;
  }

 private:
  std::uint32_t both(const Key& key) const { return std::uint32_t{key.source_port} << 16 | round_; }

  static_assert((kRecentFlows & (kRecentFlows - 1)) == 0);
  flows::ZeroedArray<Flow> flows_;
  std::uint16_t round_ = 1;  // of what is remembered since the last change; places are empty with 0
};
static_assert(sizeof(RecentFlows::Flow) == 16, "four in a cache line");

}  // namespace rocebox::switch_model::forward
