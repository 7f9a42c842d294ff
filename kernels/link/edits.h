// SPDX-License-Identifier: BSD-3-Clause
// What a link does to the bytes of a packet. All keep the metadata in step with the bytes.
#pragma once
#include <cstdint>

#include "kernels/link/config.h"
#include "runtime/packet/packet.h"

namespace rocebox::link {

/// Flips one bit that `draw` chooses: for packets with a readable BTH from BTH through the ICRC but
/// for the byte of BTH that the ICRC does not cover, for others behind the Ethernet header. Only
/// bytes held are touched. With Icrc::kRepaired only packets whose ICRC is held are touched, and not in the ICRC
/// itself. False when there is no such byte.
bool corrupt_bit(Packet packet, std::uint64_t draw, Icrc icrc);
/// Flips the bits of `mask` (0: one that `draw` chooses) in the byte at `offset`; false when it is
/// not held, or with Icrc::kRepaired when it does not lie from BTH to before an ICRC that is held.
bool corrupt_byte(Packet packet, std::uint32_t offset, std::uint8_t mask, std::uint64_t draw, Icrc icrc);

/// Length of the frame through the last extended transport header; 0 when these headers are not all
/// held.
std::uint32_t header_bytes(Packet packet);
/// Cuts payload and ICRC off and sets the DSCP unless it is -1. IP and UDP lengths stay, so that
/// the next parse sees a trimmed packet. False when there is no payload on the wire or the headers
/// are not held.
bool trim(Packet packet, std::int64_t dscp);

}  // namespace rocebox::link
