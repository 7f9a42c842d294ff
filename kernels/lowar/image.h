// SPDX-License-Identifier: BSD-3-Clause
// What is coded of a data packet: a prefix and the transport packet with its own ICRC, so that a rebuilt packet proves
// itself; and the sums that say which packets went into an XOR.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/lowar/repair_header.h"
#include "runtime/packet/packet.h"
#include "runtime/roce/parse.h"

namespace rocebox::lowar {

/// Bytes from BTH up to and with the ICRC.
inline std::uint32_t transport_bytes(Packet packet) { return packet.meta().datagram_end - packet.meta().bth_offset; }
/// The transport packet's bytes. Needs roce::icrc_held(packet).
inline const std::uint8_t* transport(Packet packet) { return packet.data() + packet.meta().bth_offset; }
/// The prefix of a data packet's image.
CodedPrefix prefix_of(Packet packet);

/// Two sums over the packets in an XOR. XOR alone cannot tell whether the right packets went in: ICRCs are linear, so
/// one packet too few and two too many give a packet with a right ICRC and wrong bytes. These sums are not linear in
/// it. Both wrap.
struct Sums {
  std::uint32_t set = 0;   ///< over ICRC, PSN and the byte of BTH that the ICRC leaves out
  std::uint16_t hops = 0;  ///< over what hops change: TTL, ToS, flow label, UDP checksum
  Sums& operator+=(const Sums& o) {
    set += o.set;
    hops = static_cast<std::uint16_t>(hops + o.hops);
    return *this;
  }
  bool operator==(const Sums&) const = default;
};
/// A packet's share. Needs roce::icrc_held(packet).
Sums sums_of(Packet packet);

/// Has the caches fetch the transport packet of a packet of any kind, which need not have one.
void prefetch_transport(Packet packet);

/// to[i] ^= from[i] for `count` bytes; any alignment, no overlap.
void xor_into(std::uint8_t* to, const std::uint8_t* from, std::size_t count);

}  // namespace rocebox::lowar
