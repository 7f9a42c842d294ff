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
#include "runtime/packet/prefetch.h"
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
  /// The place of a flow, or the one that it would take, whose flow is another one.
  Flow& place(const Key& key) {
    const std::uint32_t hash = hash_of(key);
    Flow* line = &flows_[start_of_line(hash)];
    for (unsigned i = 0; i < kLine; i++)
      if (holds(line[i], key)) return line[i];
    for (unsigned i = 0; i < kLine; i++)
      if (!is_in_use(line[i])) return line[i];
    return line[hash >> kHashShift];
  }
  void prefetch(const Key& key) const { prefetch_line(&flows_[start_of_line(hash_of(key))]); }
  bool holds(const Flow& place, const Key& key) const {
    return place.addresses == key.addresses && place.source_port_and_round == both(key);
  }
  void remember(const Key& key, Way way) {
    Flow& flow = place(key);
    const bool taken = is_in_use(flow) && !holds(flow, key);
    flow = {key.addresses, both(key), way};
    if (taken) displace();
  }
  /// Routes have changed.
  void forget() {
    if (++round_ != 0) return;
    std::fill_n(flows_.data(), flows_.size(), Flow{});
    round_ = 1;
  }

 private:
  static constexpr unsigned kLine = 4;        // places of a line of the cache
  static constexpr unsigned kHashShift = 30;  // the hash's bits for one of them
  static std::uint32_t hash_of(const Key& key) { return rte_hash_crc_8byte(key.addresses, key.source_port); }
  std::size_t start_of_line(std::uint32_t hash) const { return hash & mask_ & ~(kLine - 1); }
  bool is_in_use(const Flow& flow) const { return static_cast<std::uint16_t>(flow.source_port_and_round) == round_; }
  std::uint32_t both(const Key& key) const { return std::uint32_t{key.source_port} << 16 | round_; }

  // As few places as the flows need, so that they share lines and pages of memory: twice as many when a quarter of them
  // has lost its flow to another one. What then stands elsewhere is looked up anew.
  void displace() {
    if (++displaced_ <= mask_ / 4 || mask_ + 1 == kRecentFlows) return;
    mask_ = 2 * mask_ + 1;
    displaced_ = 0;
  }

  static_assert((kRecentFlows & (kRecentFlows - 1)) == 0 && (kRecentFlowsAtFirst & (kRecentFlowsAtFirst - 1)) == 0 &&
                kRecentFlowsAtFirst <= kRecentFlows);
  flows::ZeroedArray<Flow> flows_;
  std::uint32_t mask_ = kRecentFlowsAtFirst - 1, displaced_ = 0;
  std::uint16_t round_ = 1;  // of what is remembered since the last change; places are empty with 0
};
static_assert(sizeof(RecentFlows::Flow) == 16, "four in a cache line");

}  // namespace rocebox::switch_model::forward
