// SPDX-License-Identifier: BSD-3-Clause
// PacketState: one packet on its way through a switch, with its intrinsic metadata.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/kernel/counter.h"
#include "runtime/packet/packet.h"
#include "switch_model/limits.h"

namespace rocebox::switch_model {

enum class Gress : std::uint8_t { kIngress, kEgress };

/// How a packet came to the control that sees it.
enum class Instance : std::uint8_t {
  kNormal,        ///< as it came in by a port
  kReplica,       ///< a copy that a multicast group made; see PacketState::replica
  kMirror,        ///< a copy that a program asked for with Pass::mirror; it enters egress
  kRecirculated,  ///< sent back to ingress by Pass::recirculate
  kGenerated,     ///< made by the packet generator, and enters ingress (PacketState::application is its number), or by
                  ///< a program's control plane with Pass::generate, and enters egress (the number is 0)
};

inline constexpr Port kNoPort = 0xFF;
/// Behind ingress the switch takes one of the packet's equal next hops; see NextHops.
inline constexpr Port kBalancedPort = 0xFE;
/// The group that floods: every port but the one a packet came in by.
inline constexpr std::uint16_t kFloodGroup = 0xFFFF;

/// One packet in a control. Programs read all of it, and write what is not const by convention: egress_port,
/// multicast_group, traffic_class, metadata. What they decide beyond goes through Pass. One cache line.
struct PacketState {
  Packet packet;
  Counter* drop_reason = nullptr;                        ///< not null: it ends behind this control; see Pass::drop
  std::array<std::uint32_t, kMetadataWords> metadata{};  ///< bridged to egress and into mirrors; see Layout::metadata
  std::uint16_t multicast_group = 0;                     ///< ingress: replicate to this group; 0: none
  Port mirror_port = kNoPort;                            ///< where the mirror that was asked for goes
  bool recirculate : 1 = false;
  std::uint8_t application : 7 = 0;  ///< of the packet generator that made it, from 1; 0: another packet
  Port egress_port = kNoPort;        ///< ingress decides, egress reads
  Port ingress_port = 0;
  std::uint8_t pipe = 0;           ///< of the control that sees the packet
  std::uint8_t traffic_class = 0;  ///< priority 0 to 7: the queue at the egress port
  std::uint16_t mirror_bytes = 0;  ///< truncation of the mirror that was asked for; 0: none
  std::uint8_t passes = 0;         ///< how often it went round, by mirror or recirculation
  Instance instance = Instance::kNormal;
  std::uint16_t replica = 0;          ///< kReplica: number within its group; kGenerated: within its batch; from 0
  std::uint16_t generator_batch = 0;  ///< kGenerated: number of its batch, from 0 with each trigger
};
static_assert(sizeof(PacketState) == 64, "one cache line");

/// How a packet passed the queue of its egress port.
struct Queueing {
  Nanos enq_tstamp = 0;
  std::uint64_t enq_qdepth = 0, deq_qdepth = 0;
};

/// What a chip's intrinsic metadata say of a packet, by their names in Tofino's native architecture (TNA); whole
/// numbers of nanoseconds and bytes, which neither wrap nor count cells of 176 bytes as there. Pass::intrinsic() makes
/// it when called: PacketState stays one cache line, and packets for which it is not called cost nothing.
struct Intrinsic {
  Port ingress_port;
  Nanos ingress_mac_tstamp;  ///< when it came to the switch, going round or not; made by the switch: when that was
  Nanos global_tstamp;       ///< of the control that sees it: Pass::now()
  // Egress only; 0 in ingress.
  Port egress_port;
  Nanos enq_tstamp;          ///< when it entered its queue
  std::uint64_t enq_qdepth;  ///< bytes of frames that it found in this queue, without what was in transmission
  std::uint64_t deq_qdepth;  ///< bytes of frames that it left behind there
  Nanos deq_timedelta;       ///< time in the queue
  std::uint16_t egress_rid;  ///< number within its multicast group's replicas; 0: none is, or the first
  bool egress_rid_first;     ///< the first of them
  std::uint8_t egress_qid;   ///< the queue of the port; one a class, so that it is `egress_cos`, too
  std::uint8_t egress_cos;   ///< traffic class
  std::uint32_t pkt_length;  ///< bytes of the frame on the wire without FCS
};

/// Behind a control: nothing is to be done but to hand the packet on to egress_port.
inline bool is_plain(const PacketState& p) {
  // multicast_group, mirror_port and recirculate are one word.
  constexpr std::size_t kWord = offsetof(PacketState, multicast_group);
  static_assert(offsetof(PacketState, mirror_port) == kWord + 2 && std::endian::native == std::endian::little);
  std::uint32_t word;
  std::memcpy(&word, reinterpret_cast<const std::uint8_t*>(&p) + kWord, sizeof word);
  return !p.drop_reason && (word & 0x01FFFFFF) == std::uint32_t{kNoPort} << 16;
}

}  // namespace rocebox::switch_model
