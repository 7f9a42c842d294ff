// SPDX-License-Identifier: BSD-3-Clause
// Balancer: the next hop of a RoCEv2 packet among equal ones where that is not its flow's: flowlets, random packet
// spray, least queue.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "runtime/roce/parse.h"
#include "switch_model/forward/config.h"
#include "switch_model/tables/index_table.h"

namespace rocebox::switch_model::forward {

class Balancer {
 public:
  /// With `balance: flow` it concerns nothing.
  Balancer(const Config& config, const Build& build);

  /// Stages of ingress between the flow's hash and the next hop.
  static unsigned stages(const Config& config) { return config.balance == Balance::kFlowlet; }
  bool off() const { return balance_ == Balance::kFlow; }
  /// Whether packets of this kind are spread; others keep their flow's path.
  bool concerns(Packet packet) const { return roce::is_roce(packet) && concerned_[packet.meta().opcode]; }

  /// A packet that concerns() and has several next hops, `flow_hop` by its flow's hash: choose() has the rest.
  void mark(PacketState& p, std::uint32_t flow_hop, std::uint32_t hash) const {
    p.metadata[next_hops_.hop_word] = flow_hop + 1;
    p.metadata[next_hops_.draw_word] = hash;
    p.egress_port = kBalancedPort;
  }
  /// Of all that are marked, in the order of packets: in which the random numbers are drawn.
  template <class Access>
  void choose(Access& access, Pass& pass, const IndexTable<NextHop>& hops) {
    for (PacketState& p : pass) {
      const EcmpGroup* group = p.egress_port == kBalancedPort ? next_hops_.group_of(p.metadata) : nullptr;
      if (!group || p.drop_reason) continue;
      std::uint32_t& draw = p.metadata[next_hops_.draw_word];
      draw = cells_ ? flowlet(access, pass, p, draw) : draw_of(pass);
      if (balance_ == Balance::kLeastQueue) continue;
      const std::uint32_t hop = group->pick(draw, 32);
      const Port port = hops.value(access.lookup(p, hops, hop)).port;
      if (carries_data(p.packet)) continue;  // a program behind may choose; else the switch does, by the draw
      p.metadata[next_hops_.hop_word] = hop + 1;
      p.egress_port = port;
    }
  }

 private:
  struct Flowlet {
    std::uint32_t last_packet;  // nanoseconds, modulo 2^32
    std::uint32_t draw;         // never 0 once it is set
  };

  // An answer's port is settled here: Themis turns ACKs by it.
  static bool carries_data(Packet packet) {
    return roce::opcode_info(packet).has(roce::kIsRequest | roce::kIsReadResponse);
  }
  static std::uint32_t draw_of(Pass& pass) { return static_cast<std::uint32_t>(pass.random() >> 32); }
  // The draw of the flowlet that the packet belongs to. On a chip the number is drawn before the register is looked at.
  template <class Access>
  std::uint32_t flowlet(Access& access, Pass& pass, const PacketState& p, std::uint32_t hash) {
    const auto now = static_cast<std::uint32_t>(pass.now());
    const std::uint64_t index = std::uint64_t{hash} * cells_->entries() >> hash_width_;
    return access.update(p, *cells_, index, [&](Flowlet& cell) {
      if (cell.draw == 0 || now - cell.last_packet > gap_) {
        cell.draw = draw_of(pass) | 1;
        flowlets_->add();
      }
      cell.last_packet = now;
      return cell.draw;
    });
  }

  const NextHops& next_hops_;
  Balance balance_;
  std::uint32_t gap_;
  unsigned hash_width_;
  std::array<bool, 256> concerned_;
  std::optional<RegisterArray<Flowlet>> cells_;  // with flowlets
  Counter* flowlets_ = nullptr;
};

}  // namespace rocebox::switch_model::forward
