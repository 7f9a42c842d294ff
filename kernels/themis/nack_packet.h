// SPDX-License-Identifier: BSD-3-Clause
// The NACK that is made from the stash, out of a copy of the data packet that resolved it (section 5), or out of
// nothing when the stash has aged.
#pragma once
#include "kernels/themis/decision.h"
#include "runtime/roce/build.h"

namespace rocebox::themis {

/// Bytes of a packet that are copied for it: all up to a NACK's ICRC. `packet` is a RoCE packet.
std::uint16_t nack_bytes(Packet packet);

/// Makes `spec` a NACK as it was stashed; its underlay and what BTH says of the path are left as they are.
void set_nack(roce::PacketSpec& spec, const StashedNack& nack);

/// What a NACK from the receiver of `data`, a RoCE packet or a copy cut to nack_bytes(), says: addresses and MACs
/// swapped, ECN cleared.
roce::PacketSpec nack_spec(Packet data, const StashedNack& nack);

/// Makes `packet` the NACK of nack_spec(), in place, with a right ICRC. False, and nothing is changed, when it has no
/// room or no headers.
bool make_nack(Packet packet, const StashedNack& nack, std::uint8_t avoidance_mask);

/// The mask in BTH's byte 4 of reserved bit `bit`.
constexpr std::uint8_t avoidance_mask(std::int64_t bit) { return static_cast<std::uint8_t>(1u << bit); }

}  // namespace rocebox::themis
